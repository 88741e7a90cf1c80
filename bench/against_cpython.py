#!/usr/bin/env python3
"""Time strandline against CPython's pickle.load on one uncompressed snapshot.

    bench/against_cpython.py FILE [STRANDLINE [RUNS]]

The time of pickle.load is that of the call alone, without Python's start; the
times of strandline are those of its whole process.

Only for snapshots that you trust: unlike strandline, pickle.load can run code.
"""
import os
import shutil
import statistics
import subprocess
import sys
import time

LOAD = """import pickle, sys, time
with open(sys.argv[1], 'rb') as f:
    start = time.perf_counter()
    snapshot = pickle.load(f)
    print(time.perf_counter() - start)
"""


def run(command, says_seconds):
    """Wall seconds, as the command reports or of all of it, and its peak memory in MB."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.stdout.close()
    process.returncode = code = os.waitstatus_to_exitcode(status)
    if code != 0 and (says_seconds or code != 1):  # 1: strandline found a problem
        sys.exit(f"{command[0]} {command[1]}: exit {code}")
    return float(output) if says_seconds else seconds, usage.ru_maxrss * 1024 / 1e6


def arguments():
    """The file, the program and the number of runs, or the end with a message."""
    args = sys.argv[1:]
    if "-h" in args or "--help" in args:
        print(__doc__.strip())
        sys.exit(0)
    if not 1 <= len(args) <= 3:
        sys.exit(__doc__.strip())
    path, name, runs = (args + ["strandline", "5"][len(args) - 1:])[:3]
    strandline = shutil.which(name)
    if strandline is None:
        sys.exit(f"{name}: no such program; build it with: go build -o strandline ./cmd/strandline, and give its path as ./strandline")
    if not os.path.isfile(path) or os.path.getsize(path) == 0:
        sys.exit(f"{path}: no such file, or an empty one")
    if not runs.isdecimal() or int(runs) == 0:
        sys.exit(f"{runs}: want a number of runs")
    return path, strandline, int(runs)


def main():
    path, strandline, runs = arguments()
    size = os.path.getsize(path) / 1e6
    python = "pickle.load"
    commands = {
        python: (sys.executable, "-c", LOAD, path),
        "strandline inspect": (strandline, "inspect", path),
        "strandline diagnose": (strandline, "diagnose", path),
    }
    results = {name: [] for name in commands}
    for _ in range(runs):  # in turn, so that a busy machine is busy for all
        for name, command in commands.items():
            results[name].append(run(command, name == python))
    base = statistics.median(s for s, _ in results[python])
    print(f"{path}: {size:.1f} MB, median of {runs} run{'s' * (runs > 1)}")
    for name, rows in results.items():
        seconds = statistics.median(s for s, _ in rows)
        memory = max(m for _, m in rows)
        print(f"  {name:20} {seconds:7.2f} s  {size / seconds:6.0f} MB/s  {base / seconds:5.1f} x  peak {memory:6.0f} MB = {memory / size:.2f} x the file")


if __name__ == "__main__":
    main()
