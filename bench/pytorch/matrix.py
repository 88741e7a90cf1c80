#!/usr/bin/env python3
"""Compare strandline with each release of PyTorch, feature by feature.

    matrix.py [-o OUT] [-b STRANDLINE] [-s] [-d N] DIR...

DIR are environments of setup.sh. Runs workloads/features.py in each (-s: compares the
files of the last run again), then prints a table, release by feature. A cell is

    ok          state and peaks equal memory_stats(), and every driver call, block and
                final segment is replayed exactly
    FAIL        a figure differs
    inexact     no figure differs, but the replay is not exact, and strandline says so
    unverified  nothing differs, but strandline names something that it does not know
    -           the release cannot run it

and a line for each cell that is not ok says why. Exit status 1 if anything fails.

    matrix.py -c [-o OUT] [-b STRANDLINE] [-s] DIR...

runs the commands beside PyTorch instead (commands.sh): a row for each step of bench/gpu.

    matrix.py -d N [-n OPS] [-f FIRST] [-o OUT] [-b STRANDLINE] DIR...

runs N random programs of OPS operations under drawn settings in each release instead,
with the seeds from FIRST on. It keeps the recordings that are not ok alone.
"""
import argparse
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
STATE = {  # of inspect, and of memory_stats()
    "reserved_bytes": "reserved_bytes.all.current",
    "allocated_bytes": "allocated_bytes.all.current",
    "active_bytes": "active_bytes.all.current",
    "requested_bytes": "requested_bytes.all.current",
}
REPLAY = {  # of simulate, for a history that begins with the program
    "peak_reserved_bytes": "reserved_bytes.all.peak",
    "peak_allocated_bytes": "allocated_bytes.all.peak",
    "alloc_retries": "num_alloc_retries",
    "ooms": "num_ooms",
}
HOST = {  # of inspect, and of host_memory_stats()
    "reserved_bytes": "allocated_bytes.current",
    "peak_reserved_bytes": "allocated_bytes.peak",
    "active_bytes": "active_bytes.current",
}


def strandline(binary, command, path):
    out = subprocess.run([binary, command, path, "--json"], capture_output=True, text=True)
    if not out.stdout:
        raise RuntimeError(out.stderr.strip().split("\n")[-1])
    return json.loads(out.stdout)


def compare(binary, name, path, oracle):
    """The verdict on one snapshot, and its reason."""
    seen = strandline(binary, "inspect", path + ".pickle")
    run = strandline(binary, "simulate", path + ".pickle")
    wrong, unknown = [], []
    inexact = []
    for device, stats in enumerate(oracle["stats"]):
        if not stats.get("reserved_bytes.all.peak"):
            continue
        state = next(d for d in seen["devices"] if d["device"] == device and d.get("kind") != "host")
        replay = next(d for d in run["devices"] if d["device"] == device)
        pairs = [(k, state[k], stats[v]) for k, v in STATE.items()]
        if replay["exact"] and name != "late":
            pairs += [(k, replay[k], stats[v]) for k, v in REPLAY.items()]
        wrong += [f"{k} is {got}, PyTorch has {want}" for k, got, want in pairs if got not in (want, None)]
        unknown += replay.get("unverified", [])
        if not replay["exact"]:
            inexact.append(json.dumps(replay["first_difference"]))
    for host in (d for d in seen["devices"] if d.get("kind") == "host"):
        stats, replay = oracle["host"], next(d for d in run["devices"] if d.get("kind") == "host")
        pairs = [(k, host[k], stats[v]) for k, v in HOST.items()]
        wrong += [f"pinned {k} is {got}, PyTorch has {want}" for k, got, want in pairs if got != want]
        if not replay["exact"]:
            inexact.append("pinned: " + json.dumps(replay["first_difference"]))
    if wrong:
        return "FAIL", "; ".join(wrong)
    if inexact:
        return "inexact", "; ".join(inexact)
    return ("unverified", "; ".join(unknown)) if unknown else ("ok", "")


def cell(binary, out, name):
    path = os.path.join(out, name)
    if not os.path.exists(path + ".json"):
        return "-", "it did not run"
    with open(path + ".json", encoding="utf-8") as f:
        oracle = json.load(f)
    if "reason" in oracle:
        return "-", oracle["reason"]
    try:
        return compare(binary, name, path, oracle)
    except (RuntimeError, KeyError, StopIteration) as e:
        return "FAIL", f"{type(e).__name__}: {e}"


def features():
    with open(os.path.join(HERE, "workloads", "features.py"), encoding="utf-8") as f:
        lines = f.read().split("\n")
    names = [b[4:b.index("(")] for a, b in zip(lines, lines[1:]) if a.startswith("@feature")]
    with open(os.path.join(HERE, "workloads", "programs.py"), encoding="utf-8") as f:
        programs = between(f.read(), "NAMES = (", ")")
    return [n for n in names if n != "drawn"] + [n + end for n in re.findall(r'"(\w+)"', programs) for end in ("", "_expandable")]


def between(text, start, end):
    return text.partition(start)[2].partition(end)[0]


def run(directory, out):
    subprocess.run([os.path.join(HERE, "run.sh"), directory, os.path.join(HERE, "workloads", "features.py"), out],
                   stderr=subprocess.DEVNULL, check=False)


def drawn(args, directory, release):
    """Run random programs one by one, and judge each as it ends."""
    out = os.path.join(args.o, release)
    os.makedirs(out, exist_ok=True)
    command = [os.path.join(HERE, "run.sh"), directory, os.path.join(HERE, "workloads", "features.py"), out, "-"]
    counts = {}
    with subprocess.Popen(command, env={**os.environ, "OPS": str(args.n)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as program:
        for seed in range(args.f, args.f + args.d):
            name = f"drawn.{seed}"
            program.stdin.write(name + "\n")
            program.stdin.flush()
            while (line := program.stdout.readline()) and line.strip() != name:
                pass
            word, why = cell(args.b, out, name)
            counts[word] = counts.get(word, 0) + 1
            print(f"{release} seed {seed}: {word}", why, flush=True)
            if word == "ok":
                os.remove(os.path.join(out, name + ".pickle"))
        program.stdin.close()
    print(f"{release}, {args.n} operations each: " + ", ".join(f"{n} {w}" for w, n in counts.items()), flush=True)
    return "FAIL" in counts


COMMANDS = {  # rows, and the steps of bench/gpu/check.py
    "record --": "record", "record --pid": "outside", "trace --gpu": "trace", "watch": "watch",
    "pausable": "pause_torch", "pausable, preloaded": "pause_preload", "purposes": "purposes",
}


def commands(args, releases):
    """The table of commands, from what their steps print."""
    table, reasons = {}, []
    for release, directory in releases.items():
        out = os.path.join(args.o, release)
        os.makedirs(out, exist_ok=True)
        if not args.s:
            subprocess.run([os.path.join(HERE, "commands.sh"), directory, out, args.b, ",".join(COMMANDS.values())],
                           stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
        try:
            with open(os.path.join(out, "results.json"), encoding="utf-8") as f:
                rows = json.load(f)
        except OSError:
            rows = []
        table[release] = {}
        for name, step in COMMANDS.items():
            found = [r for r in rows if r["step"] == step and r["verdict"] != "measured"]
            bad = [f"{r['what']}: {r['figure']}" for r in found if r["verdict"] == "fail"]
            ran = any(r["verdict"] == "pass" for r in found)
            inexact = all(b.startswith("simulate of it: {") for b in bad)
            table[release][name] = ("inexact" if inexact else "FAIL") if bad else "ok" if ran else "-"
            if not ran or bad:
                reasons.append((name, release, table[release][name], "; ".join(bad or [r["figure"] for r in found]) or "it did not run"))
    return table, reasons


def main():
    parser = argparse.ArgumentParser(description="Compare strandline with PyTorch releases.")
    parser.add_argument("-o", default="out", help="folder for the recordings")
    parser.add_argument("-b", default="strandline", help="the program")
    parser.add_argument("-s", action="store_true", help="use the recordings that are there")
    parser.add_argument("-c", action="store_true", help="commands beside PyTorch")
    parser.add_argument("-d", type=int, default=0, help="random programs under drawn settings")
    parser.add_argument("-n", type=int, default=1_000_000, help="operations of each")
    parser.add_argument("-f", type=int, default=1, help="seed of the first")
    parser.add_argument("dirs", nargs="+")
    args = parser.parse_args()
    releases = {os.path.basename(os.path.normpath(d)): d for d in args.dirs}
    if args.d:
        sys.exit(any([drawn(args, d, release) for release, d in releases.items()]))
    if args.c:
        table, reasons = commands(args, releases)
        show(COMMANDS, table, reasons)
        sys.exit(any(word == "FAIL" for _, _, word, _ in reasons))
    table, reasons = {}, []
    for release, directory in releases.items():
        out = os.path.join(args.o, release)
        if not args.s:
            run(directory, out)
        table[release] = {}
        for name in features():
            table[release][name], why = cell(args.b, out, name)
            if why:
                reasons.append((name, release, table[release][name], why))
    show(features(), table, reasons)
    sys.exit(any(word == "FAIL" for _, _, word, _ in reasons))


def show(names, table, reasons):
    releases = list(table)
    print("| feature |", " | ".join(releases), "|")
    print("|---" * (len(releases) + 1) + "|")
    for name in names:
        print(f"| {name} |", " | ".join(table[r].get(name, "-") for r in releases), "|")
    print()
    for name, release, word, why in reasons:
        if word != "-" or not why.startswith("since"):
            print(f"- {name}, {release}: {word}: {why}")


if __name__ == "__main__":
    main()
