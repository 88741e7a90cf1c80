#!/usr/bin/env python3
"""Asks strandline and other readers of PyTorch's snapshots about examples/, and prints a table.

    bench/engines/files.py --peers DIR --torch DIR [--strandline PATH] [TOOL...]

    --peers DIR  a virtual environment with pt-snap-cli and stormlog
    --torch DIR  PyTorch, as setup.sh leaves it, for its _memory_viz

A peer's answer is the first place of its report on leaks or on the peak of the newest file; a picture for the eyes
is no answer. strandline's is the first finding of diagnose. Right are the lines that the program of the folder
marks: it made the snapshots, and knows whose memory it keeps. `silent` is right where nothing is wrong.
"""
import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cases"))
from run import built, findings_of  # noqa: E402

EXAMPLES = os.path.join(HERE, "..", "..", "examples")
# By which text each program marks the lines at fault: those whose memory it never frees, the copies of the logits, and
# the small blocks that keep a large request from the free memory beside them. The cache evicts, and is no fault.
CASES = {"image-leak": "# LEAK", "autograd-graph": "# LEAK", "ranks": "# LEAK", "logits": "scores.float()", "out-of-memory": "# KEEP", "cache": ""}


def run(line, **more):
    done = subprocess.run([str(x) for x in line], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, **more)
    return done.stdout, done.stderr


def right_of(case):
    """The lines at fault, by the program."""
    path, = (p for p in glob.glob(os.path.join(EXAMPLES, case, "*.py")) if os.path.basename(p) != "rigmodels.py")
    with open(path) as f:
        return {f"{os.path.basename(path)}:{i}" for i, line in enumerate(f, 1) if CASES[case] and CASES[case] in line}


def files(case):
    return sorted(glob.glob(os.path.join(EXAMPLES, case, "*.pickle*")), key=lambda f: (len(f), f))


class Readers:
    def __init__(self, o):
        self.o = o
        self.folder = tempfile.mkdtemp(prefix="files-")

    def unpacked(self, case):
        """The files of a case as PyTorch writes them: only strandline reads packed ones."""
        out = []
        for f in files(case):
            to = os.path.join(self.folder, os.path.basename(f).removesuffix(".gz"))
            with open(to, "wb") as file:
                file.write(subprocess.run(["gzip", "-dc", f], capture_output=True).stdout if f.endswith(".gz") else open(f, "rb").read())
            out.append(to)
        return out

    def strandline(self, case):
        text, _ = run([self.o.strandline, "diagnose", "--json", os.path.join(EXAMPLES, case)])
        doc = json.JSONDecoder().raw_decode(text)[0]
        first = [f for f in findings_of(doc) if f["severity"] == "problem" or f["kind"] == "copies"][:1]
        sites = [s for f in first for s in [f.get("site"), *(s.get("site") or s for s in f.get("sites") or [])]]
        return {f"{os.path.basename(s['file'])}:{s['line']}" for s in sites if s}

    def pt_snap(self, case):
        pt = os.path.join(self.o.peers, "bin", "pt-snap")
        newest = {}
        for f in self.unpacked(case):
            newest[os.path.basename(f).split("-")[0] if case == "ranks" else ""] = f
        out = set()

        def ask(*line):
            text, _ = run([pt, *line, "--json"], cwd=self.folder)
            return json.JSONDecoder().raw_decode(text[text.find("{"):])[0]
        for f in newest.values():
            db = ask("import", f, "-o", self.folder)["db_path"]
            stacks = [(group.get("callstack") or "").split("\n") for group in ask("report", "peak-memory", db, "-n", "1")["callstack_groups"]]
            for row in ask("query", db, "--template-use", "leak_detection", "-n", "1")["rows"]:
                frames = ask("query", db, "--template-use", "event_frames", "--params", json.dumps({"event_id": row["allocEventId"]}))["rows"]
                stacks.append([f"{frame['filename']}:{frame['line']}" for frame in reversed(frames)])
            for frames in stacks:
                own = [f for f in frames if "-packages/" not in f and f.startswith("/")]
                out.add(os.path.basename(own[-1].split()[0]) if own else "no line")
        return out

    def memory_viz(self, case):
        """Its commands that print text; those that make pages are for the eyes."""
        line = [os.path.join(HERE, "..", "pytorch", "run.sh"), self.o.torch, "-W", "ignore", "-m", "torch.cuda._memory_viz"]
        names = self.unpacked(case)
        text, wrong = run([*line, "stats", names[-1]])
        if len(names) > 1:
            text, wrong = run([*line, "compare", *names[-2:]])
        return {"failed: " + wrong.strip().splitlines()[-1]} if wrong.strip() else {"segments"}

    def stormlog(self, case):
        text, wrong = run([os.path.join(self.o.peers, "bin", "gpumemprof"), "analyze", self.unpacked(case)[-1]], cwd=self.folder)
        return {"failed: " + (text + wrong).strip().splitlines()[-1]}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--peers", required=True)
    parser.add_argument("--torch", required=True)
    parser.add_argument("--strandline")
    parser.add_argument("tools", nargs="*")
    o = parser.parse_args()
    o.peers, o.strandline = os.path.abspath(o.peers), os.path.abspath(o.strandline or built())
    readers = Readers(o)
    for tool in o.tools or ("strandline", "pt_snap", "memory_viz", "stormlog"):
        for case in CASES:
            right = right_of(case)
            began = time.time()
            got = getattr(readers, tool)(case)
            told = {g for g in got if not g.startswith("failed") and g not in ("segments", "no line")}
            word = "found" if right & told else "silent" if not right and not got else "another place" if told else "no answer"
            print(f"{tool:12} {case:15} {word:13} {time.time() - began:5.1f} s  {', '.join(sorted(got))[:120]}", flush=True)
    shutil.rmtree(readers.folder)


if __name__ == "__main__":
    main()
