#!/usr/bin/env python3
"""Accounts for every byte of a device: what `strandline watch` reports, beside what is true.

    bench/device/account.py --run 'run.sh ROOT' --strandline ./strandline

Needs no GPU: --run starts a Python script with arguments where a real PyTorch uses a
stand-in of the CUDA driver, which writes each allocation to the file FAKE_CUDA_LOG in
the folder RIG_OUT. The library of the driver (NVML) is host/gpu/nvml/testdata/fake.c, which
counts what those files say, and a context for each process.

Two processes hold tensors, cache and buffers of a library, of which the second takes 16 MiB
a second more; a third one is killed, and the driver goes on counting what it had. The
driver also has 256 MiB that it counts for none. Fails if a part differs from the truth, the
remainder is above 1 % of the device, or the leak is not found outside PyTorch's memory. The
part that leaks may be what it was in the last five seconds.
"""
import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
TOTAL, CONTEXT, DRIVER, LEAK = 80 << 30, 500 * MIB, 256 * MIB, 16 * MIB


def held(log):
    """What a process has of the device, by its calls of the driver."""
    live = {}
    for line in open(log):
        m = re.match(r"(\w+) dev=0 size=(\d+) addr=(\w+)", line)
        if m and m[1] == "malloc":
            live[m[3]] = int(m[2])
        elif re.match(r"free\b", line):
            live.pop(re.search(r"addr=(\w+)", line)[1], None)
    return sum(live.values())


def used(out, n):
    return held(os.path.join(out, f"{n}.log")) + CONTEXT


def start(run, out, n, *sizes):
    env = dict(os.environ, RIG_OUT=out, FAKE_CUDA_LOG=f"/rig/out/{n}.log", FAKE_CUDA_CONTEXT_MEM="500m")
    p = subprocess.Popen([*run, os.path.join(HERE, "process.py"), *map(str, sizes)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return p, json.loads(p.stdout.readline())


def say(out, processes):
    """Has the library say what the processes hold now."""
    uses = [used(out, n) for n in range(len(processes))]
    lines = [f"device GPU-0 Stand-in {TOTAL} {sum(uses) + DRIVER} {TOTAL - DRIVER - sum(uses)} 0"]
    lines += [f"process compute {p['pid']} {u}" for p, u in zip(processes, uses)]
    with open(os.path.join(out, "new"), "w") as f:
        f.write("\n".join(lines) + "\n")
    os.rename(os.path.join(out, "new"), os.path.join(out, "says"))
    return uses


def watch(strandline, out, processes):
    """The document of a watch, and what the processes held in its last five seconds."""
    library = os.path.join(out, "libnvidia-ml.so.1")
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", library, os.path.join(HERE, "../../host/gpu/nvml/testdata/fake.c")], check=True)
    env = dict(os.environ, LD_LIBRARY_PATH=out, FAKE_NVML=os.path.join(out, "says"))
    said = [(time.monotonic(), say(out, processes))]
    with open(os.path.join(out, "watched"), "w+") as f:
        running = subprocess.Popen([strandline, "watch", "--json", "--duration", "40s", "--interval", "500ms"], env=env, stdout=f)
        while running.poll() is None:
            said.append((time.monotonic(), say(out, processes)))
            time.sleep(0.1)
        f.seek(0)
        doc = json.loads(f.read().splitlines()[-1])
    end = said[-1][0]
    return doc, [u for at, u in said if at > end - 5]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True)
    parser.add_argument("--strandline", default="strandline")
    args = parser.parse_args()
    run = shlex.split(args.run)
    wrong = 0
    with tempfile.TemporaryDirectory() as out:
        sizes = [(3000, 500, 2000), (500, 7000, 300, LEAK // MIB), (1000, 0, 600)]
        started = [start(run, out, n, *of) for n, of in enumerate(sizes)]
        dead, gone = started[-1]
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        doc, last = watch(os.path.abspath(args.strandline), out, [s for _, s in started])
        for p, _ in started[:-1]:
            p.stdin.close()
            p.wait()
    device = doc["devices"][0]
    print(f"{'pid':>8} {'part':>10} {'true':>12} {'watch':>12}")

    def compare(who, part, true, watched):
        """One of the last seconds' values is true."""
        true = min(true, key=lambda x: abs(x - (watched or 0)))
        print(f"{who:>8} {part:>10} {true:>12} {watched or 0:>12}")
        return true != watched

    for n, (_, s) in enumerate(started[:-1]):
        share = next(p for p in doc["processes"] if p["pid"] == s["pid"])["devices"][0]
        parts = {"allocated": [s["allocated"]], "cached": [s["cached"]], "other": [u[n] - s["allocated"] - s["cached"] for u in last]}
        for part, true in parts.items():
            wrong += compare(s["pid"], part, true, share[part + "_bytes"])
    wrong += compare("", "ended", [last[0][-1]], device["unowned_bytes"])
    wrong += compare("", "remainder", [DRIVER], device["remainder_bytes"])
    print(f"remainder: {device['remainder_bytes'] / TOTAL:.2%} of the device")
    leaks = [f["title"] for f in doc["findings"] if f["severity"] == "problem"]
    print("\n".join(leaks))
    wrong += abs(device["remainder_bytes"]) > TOTAL / 100
    wrong += not any(str(started[1][1]["pid"]) in title and "outside PyTorch" in title for title in leaks)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
