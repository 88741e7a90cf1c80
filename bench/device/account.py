#!/usr/bin/env python3
"""Accounts for every byte of a device: what `strandline watch` says against what is true.

    bench/device/account.py --run 'run.sh ROOT' --strandline ./strandline

Needs no GPU: --run starts a Python script with arguments where a real PyTorch uses a
stand-in of the CUDA driver, which writes each allocation to the file FAKE_CUDA_LOG in
the folder RIG_OUT. The library of the driver (NVML) is host/nvml/testdata/fake.c, which
counts what those files say, and a context for each process.

Two processes hold tensors, cache and buffers of a library; a third one is killed, and the
driver goes on counting what it had. The driver also has 256 MiB that it counts for none.
Fails if a part differs from the truth, or the remainder is above 1 % of the device.
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

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
TOTAL, CONTEXT, DRIVER = 80 << 30, 500 * MIB, 256 * MIB


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


def start(run, out, n, *sizes):
    env = dict(os.environ, RIG_OUT=out, FAKE_CUDA_LOG=f"/rig/out/{n}.log", FAKE_CUDA_CONTEXT_MEM="500m")
    p = subprocess.Popen([*run, os.path.join(HERE, "process.py"), *map(str, sizes)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    says = json.loads(p.stdout.readline())
    says["used"] = held(os.path.join(out, f"{n}.log")) + CONTEXT
    says["other"] = says["used"] - says["allocated"] - says["cached"]
    return p, says


def watch(strandline, out, processes):
    lines = [f"device GPU-0 Stand-in {TOTAL} {sum(p['used'] for p in processes) + DRIVER} {TOTAL - DRIVER - sum(p['used'] for p in processes)} 0"]
    lines += [f"process compute {p['pid']} {p['used']}" for p in processes]
    with open(os.path.join(out, "says"), "w") as f:
        f.write("\n".join(lines) + "\n")
    library = os.path.join(out, "libnvidia-ml.so.1")
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", library, os.path.join(HERE, "../../host/nvml/testdata/fake.c")], check=True)
    env = dict(os.environ, LD_LIBRARY_PATH=out, FAKE_NVML=os.path.join(out, "says"))
    done = subprocess.run([strandline, "watch", "--json", "--duration", "20s"], env=env, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True)
    parser.add_argument("--strandline", default="strandline")
    args = parser.parse_args()
    run = shlex.split(args.run)
    wrong = 0
    with tempfile.TemporaryDirectory() as out:
        started = [start(run, out, n, *sizes) for n, sizes in enumerate([(3000, 500, 2000), (500, 7000, 300), (1000, 0, 600)])]
        dead, gone = started.pop()
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        doc = watch(os.path.abspath(args.strandline), out, [s for _, s in started] + [gone])
        for p, _ in started:
            p.stdin.close()
            p.wait()
    device = doc["devices"][0]
    print(f"{'pid':>8} {'part':>10} {'true':>12} {'watch':>12}")
    for _, s in started:
        share = next(p for p in doc["processes"] if p["pid"] == s["pid"])["devices"][0]
        for part in ("allocated", "cached", "other"):
            print(f"{s['pid']:>8} {part:>10} {s[part]:>12} {share[part + '_bytes'] or 0:>12}")
            wrong += share[part + "_bytes"] != s[part]
    print(f"{'ended':>19} {gone['used']:>12} {device['unowned_bytes']:>12}")
    print(f"{'remainder':>19} {DRIVER:>12} {device['remainder_bytes']:>12}  {device['remainder_bytes'] / TOTAL:.2%} of the device")
    wrong += device["unowned_bytes"] != gone["used"] or abs(device["remainder_bytes"]) > TOTAL / 100
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
