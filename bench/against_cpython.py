#!/usr/bin/env python3
"""Time strandline against CPython's pickle.load on one uncompressed snapshot.

    bench/against_cpython.py FILE [STRANDLINE [RUNS]]

Only for snapshots that you trust: unlike strandline, pickle.load can run code.
"""
import os
import statistics
import subprocess
import sys
import time

LOAD = "import pickle, sys\nwith open(sys.argv[1], 'rb') as f: pickle.load(f)"


def run(*command):
    """Wall seconds and peak memory in MB of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 1):  # 1: a leak was found
        sys.exit(f"{' '.join(command)}: exit {code}")
    return seconds, usage.ru_maxrss * 1024 / 1e6


def main():
    path, *rest = sys.argv[1:] or sys.exit(__doc__)
    strandline = rest[0] if rest else "strandline"
    runs = int(rest[1]) if len(rest) > 1 else 5
    size = os.path.getsize(path) / 1e6
    commands = {
        "pickle.load": (sys.executable, "-c", LOAD, path),
        "strandline inspect": (strandline, "inspect", path),
        "strandline diagnose": (strandline, "diagnose", path),
    }
    results = {name: [] for name in commands}
    for _ in range(runs):  # in turn, so that a busy machine is busy for all
        for name, command in commands.items():
            results[name].append(run(*command))
    base = statistics.median(s for s, _ in results["pickle.load"])
    print(f"{path}: {size:.0f} MB, median of {runs} runs")
    for name, rows in results.items():
        seconds = statistics.median(s for s, _ in rows)
        memory = max(m for _, m in rows)
        print(f"  {name:20} {seconds:7.2f} s  {size / seconds:6.0f} MB/s  {base / seconds:5.1f} x  peak {memory:6.0f} MB = {memory / size:.2f} x the file")


if __name__ == "__main__":
    main()
