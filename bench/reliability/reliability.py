#!/usr/bin/env python3
"""Measure how often a stated confidence holds: reliability.py STRANDLINE FOLDER... [-v]

Each FOLDER is a corpus with answers, which its files tell apart:
  labels.jsonl      texts; oom, of and cause are the accepted answers
  *.jsonl.gz        series of t and v (times q bytes), with label and accept
  LABELS.csv        series of real programs, NAME.csv with seconds and bytes
  *.pickle, *.json  PyTorch snapshots, with their leaks in expect.leaks

A case is an answer with a confidence: that memory ran out of this cause, that a series
grows or does not, that this line leaks. The table has ten bins of confidence, the mean
stated in each, and the share that was right. Bins of 30 cases and more have to be
within five points: the exit status is 1 if one is not. -v prints the cases that are wrong.
"""
import collections
import concurrent.futures
import csv
import glob
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile

Case = collections.namedtuple("Case", "corpus name confidence right answer")

BINS = [0, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0001]
GROWS = {"growth", "sawtooth-growth"}
MIN_CASES = 30
MAX_POINTS = 5.0


def diagnose(binary, *paths):
    """The document of some files; None if they are refused."""
    p = subprocess.run([binary, "diagnose", "--json", *paths], capture_output=True, text=True, timeout=300)
    return json.loads(p.stdout) if p.returncode in (0, 1, 3) and p.stdout else None


def texts(binary, folder):
    """The first OOM of each text: is it one, of the accepted side and cause?"""
    for row in map(json.loads, open(os.path.join(folder, "labels.jsonl"), encoding="utf-8")):
        if row.get("oom") is None or row.get("oomjudge") is False:
            continue
        def cases(row=row):
            doc = diagnose(binary, os.path.join(folder, row["file"]))
            for f in (doc or {}).get("findings", []):
                if f["kind"] != "oom" or f["severity"] == "info":
                    continue
                e = f.get("evidence") or {}
                cause = e.get("cause") or "unspecified"
                right = row["oom"] and e.get("of") in row["of"] and cause in row["cause"]
                return [Case("texts", row["file"], f["confidence"], bool(right), f"{cause}, not {row.get('cause')}")]
            return []
        yield cases


def series_verdict(binary, corpus, name, rows, accepted):
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "series.csv")
        with open(path, "w", encoding="utf-8") as f:
            f.write("seconds,bytes\n")
            f.writelines(f"{t},{v}\n" for t, v in rows)
        doc = diagnose(binary, path)
    for f in (doc or {}).get("findings", []):
        verdict = (f.get("evidence") or {}).get("verdict")
        if verdict and verdict != "unknown":
            right = verdict in accepted or (verdict in GROWS) == bool(accepted & GROWS)
            return [Case(corpus, name, f["confidence"], right, f"{verdict}, not {sorted(accepted)}")]
    return []


def drawn_series(binary, folder):
    for path in glob.glob(os.path.join(folder, "*.jsonl.gz")):
        for x in map(json.loads, gzip.open(path, "rt")):
            if x["scored"] and x["label"] != "unknown":
                yield lambda x=x: series_verdict(binary, "drawn series", x["id"], [(t, v * x["q"]) for t, v in zip(x["t"], x["v"])],
                                                 {x["label"], *x["accept"]})


def real_series(binary, folder):
    with open(os.path.join(folder, "LABELS.csv"), newline="", encoding="utf-8") as f:
        for r in csv.DictReader(f):
            path = os.path.join(folder, r["name"] + ".csv")
            if r["confidence"] == "disputed" or r["label"] == "unknown" or not os.path.exists(path):
                continue
            rows = [line.strip().split(",") for line in open(path, encoding="utf-8").readlines()[1:] if line.strip()]
            yield lambda r=r, rows=rows: series_verdict(binary, "real series", r["name"], rows, {r["label"]})


def snapshots(binary, folder):
    """Each leaking place that is named, over the files of a program in their order."""
    programs = collections.defaultdict(list)
    for path in glob.glob(os.path.join(folder, "*.pickle")):
        programs[os.path.basename(path).rsplit(".", 2)[0]].append(path)
    for name, paths in sorted(programs.items()):
        paths.sort(key=lambda p: [int(x) if x.isdigit() else x for x in re.split(r"(\d+)", p)])
        oracle = paths[-1][: -len("pickle")] + "json"
        if len(paths) < 3 or not os.path.exists(oracle):
            continue
        def cases(name=name, paths=paths, oracle=oracle):
            expect = json.load(open(oracle, encoding="utf-8")).get("expect") or {}
            places = {(x["file"], x["line"]) for x in expect.get("leaks", [])}
            out = []
            for f in (diagnose(binary, *paths) or {}).get("findings", []):
                if f["kind"] in ("leak", "autograd-graph") and f["severity"] == "problem" and f.get("site"):
                    at = (f["site"]["file"], f["site"]["line"])
                    out.append(Case("leaks in snapshots", name, f["confidence"], at in places, f"{at[0]}:{at[1]}"))
            return out
        yield cases


def corpus(binary, folder):
    """The cases of a folder, as functions that judge them."""
    known = False
    for name, reader in (("labels.jsonl", texts), ("*.jsonl.gz", drawn_series), ("LABELS.csv", real_series), ("*.pickle", snapshots)):
        if glob.glob(os.path.join(folder, name)):
            known = True
            yield from reader(binary, folder)
    if not known:
        sys.exit(f"{folder}: no corpus with answers: none of labels.jsonl, *.jsonl.gz, LABELS.csv, *.pickle")


def row(label, cases):
    stated = 100 * sum(c.confidence for c in cases) / len(cases)
    right = 100 * sum(c.right for c in cases) / len(cases)
    off = right - stated
    bad = len(cases) >= MIN_CASES and abs(off) > MAX_POINTS
    print(f"| {label:22} | {len(cases):5} | {stated:5.1f}% | {right:5.1f}% | {off:+5.1f}{' !' if bad else '  '} |")
    return bad


def main():
    args = [a for a in sys.argv[1:] if a != "-v"]
    if len(args) < 2:
        sys.exit(__doc__)
    judged = [c for folder in args[1:] for c in corpus(os.path.abspath(args[0]), folder)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        cases = [c for found in pool.map(lambda f: f(), judged) for c in found]
    print("| confidence             | cases | stated | right  | points  |")
    print("| ---------------------- | ----: | -----: | -----: | ------: |")
    bad = False
    for low, high in zip(BINS, BINS[1:]):
        inside = [c for c in cases if low <= c.confidence < high]
        if inside:
            bad |= row(f"{100 * low:.0f} to {min(100 * high, 100):.0f}%", inside)
    for name in sorted({c.corpus for c in cases}):
        row(name, [c for c in cases if c.corpus == name])
    if "-v" in sys.argv:
        for c in cases:
            if not c.right:
                print(f"{c.corpus}: {c.name}: {c.confidence:.3f}: {c.answer}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
