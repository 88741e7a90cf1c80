#!/usr/bin/env python3
"""Measures what strandline costs a program, and prints a table.

    bench/engines/overhead.py [OPTIONS] record|watch|soak...

    --torch DIR        PyTorch, as setup.sh leaves it (record)
    --strandline PATH  the program to try (default: built from this checkout)
    --rounds N         runs with it and runs without it, in turn (default 3)

record: the processor time of a step of a transformer, with and without, and that of an allocation in a step of a
model of real size, where kernels do nothing; and the time of steps whose kernels take some, meanwhile. watch: what it
takes of a core itself. soak: the latency of a server that it reads, to which it sends next to nothing, with a soak that
starts at each turn. A machine that does other work makes wall times say little, so that processor time is taken
where there is one.
"""
import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cases"))
from run import built  # noqa: E402

PROGRAMS = os.path.join(HERE, "programs")
STEPS = 200
RUNS = {  # with layers and width by which a step takes 100 ms and more
    "cuda": ("steps.py", 160, 128),
    "cpu": ("steps.py", 4, 256),
    "llama": ("large.py",),
}
KERNELS = (10_000, 20_000, 40_000)  # ns of each kernel of a step on the device; less than its launch takes, and more
KERNEL_STEPS = {"cuda": 40, "llama": 10}
# Seconds of a step of Llama 3.1 8B on 8 H100, of two times 8,192 tokens, by the tokens a second and device that torchtitan
# published: https://github.com/pytorch/torchtitan/blob/main/benchmarks/llama3_h100_202412_torchtitan.md, table 1, FSDP.
REAL_STEP = 2 * 8192 / 5762


def spent(line, **more):
    """The output of a command, its processor time and its time, in seconds."""
    began, before = time.time(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.time() - began


def line_of(name, text):
    """The numbers of a line that a program prints, none if it does not."""
    found = re.search(rf"^{name} (.*)", text, re.M)
    return [float(t) for t in found[1].split()] if found else []


def runs(o, device, names, kernel=0, steps=STEPS):
    """The outputs of some rounds of a program by name: alone, with record, and with PyTorch's history."""
    env = dict(os.environ, FAKE_CUDA_TOTAL_MEM="900g", FAKE_CUDA_KERNEL_NS=str(kernel), **({"CUDA_VISIBLE_DEVICES": "", "FAKE_CUDA_DEVICES": "0"} if device == "cpu" else {}))
    program = [os.path.join(HERE, "..", "pytorch", "run.sh"), o.torch, os.path.join(PROGRAMS, RUNS[device][0]), *map(str, RUNS[device][1:]), str(steps)]
    out = {name: [] for name in names}
    with tempfile.TemporaryDirectory(prefix="overhead-") as folder:
        for n in range(o.rounds):
            for name in names:
                before = [o.strandline, "record", "-o", os.path.join(folder, str(n)), "--"] if name == "record" else []
                out[name].append(spent(before + program + ["history"] * (name == "history"), env=env)[0])
    return out


def best(texts, line, of=statistics.median):
    """The least of all rounds. The first step sets up."""
    return min(of(line_of(line, text)[1:]) for text in texts)


def record(o):
    for device in RUNS:
        got = runs(o, device, ["alone", "record", *(["history"] if device == "cuda" else [])])
        a, r = best(got["alone"], "steps"), best(got["record"], "steps")
        b, s = best(got["alone"], "steps", sum), best(got["record"], "steps", sum)
        print(f"record {device}, a step: {1000 * a:.0f} ms, with it {100 * (r / a - 1):+.1f}%", flush=True)
        if "history" in got:
            print(f"PyTorch's history {device}, a step: {1000 * a:.0f} ms, with it alone {100 * (best(got['history'], 'steps') / a - 1):+.1f}%", flush=True)
        print(f"record {device}, {STEPS} steps: {b:.0f} s, with it {100 * (s / b - 1):+.1f}%", flush=True)
        made = line_of("made", got["alone"][0])
        if not made:
            continue
        allocations, launches = map(int, made)
        print(f"record {device}, an allocation and its free: {1e6 * (r - a) / allocations:.1f} µs, {1000 * (r - a):.1f} ms for the {allocations:,} of a step", flush=True)
        if device == "llama":
            print(f"record {device}, of a published step of {REAL_STEP:.2f} s, if the device waits for all of it: {100 * (r - a) / REAL_STEP:.2f}%", flush=True)
        for kernel in KERNELS if device == "cuda" else (round(1e9 * REAL_STEP / launches),):
            got = runs(o, device, ["alone", "record"], kernel, KERNEL_STEPS[device])
            (a, r), (b, s) = ([best(got[name], "walls", of) for name in got] for of in (statistics.median, sum))
            print(f"record {device}, a step of {launches:,} kernels of {kernel / 1000:.0f} µs: {1000 * a:.0f} ms, with it {100 * (r / a - 1):+.2f}%; {KERNEL_STEPS[device]} steps {100 * (s / b - 1):+.1f}%", flush=True)


def watch(o):
    out = []
    for _ in range(o.rounds):
        _, cpu, wall = spent([o.strandline, "watch", "--json", "--duration", "60s"])
        out.append(100 * cpu / wall)
    print(f"watch: {statistics.median(out):.2f}% of a core (from {min(out):.2f} to {max(out):.2f})", flush=True)


def latencies(port, seconds):
    """Of a request after another, in milliseconds."""
    body = json.dumps({"model": "none", "messages": [{"role": "user", "content": "hello"}]}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", body, {"Content-Type": "application/json"})
    out, end = [], time.time() + seconds
    while time.time() < end:
        began = time.perf_counter()
        with urllib.request.urlopen(request) as r:
            r.read()
        out.append(1000 * (time.perf_counter() - began))
        time.sleep(0.005)
    return out


def soak(o):
    server = subprocess.Popen([sys.executable, os.path.join(HERE, "..", "cases", "programs", "server.py"), "steady", "0", "1024"], stdout=subprocess.PIPE, text=True)
    port = int(server.stdout.readline())
    seconds, got = 6, {"alone": [], "soak": []}
    line = [o.strandline, "soak", "--json", "--url", f"http://127.0.0.1:{port}/v1", "--pid", str(server.pid), "--waves", "100", "--requests", "1", "--concurrency", "1", "--settle", "1s"]
    try:
        for _ in range(3 * o.rounds):
            for name in got:
                probes = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) if name == "soak" else None
                got[name].append(latencies(port, seconds))
                if probes:
                    probes.terminate()
                    probes.wait()
    finally:
        server.kill()
        server.wait()
    for word, i in (("p50", 49), ("p95", 94), ("p99", 98)):
        of = {}
        for name, turns in got.items():
            each = [statistics.quantiles(times, n=100)[i] for times in turns]
            of[name] = f"{statistics.quantiles(sum(turns, []), n=100)[i]:.2f} ms", f"{min(each):.2f} to {max(each):.2f}"
        print(f"soak {word}: {of['alone'][0]} alone, {of['soak'][0]} with it (by turn {of['alone'][1]}, {of['soak'][1]})", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--strandline")
    parser.add_argument("--torch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("what", nargs="+", choices=["record", "watch", "soak"])
    options = parser.parse_args()
    options.strandline = os.path.abspath(options.strandline or built())
    for what in options.what:
        {"record": record, "watch": watch, "soak": soak}[what](options)


if __name__ == "__main__":
    main()
