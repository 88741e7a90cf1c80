#!/usr/bin/env python3
"""Runs host leaks under strandline and its peers, and prints which names the line.

    bench/engines/peers.py --peers DIR [OPTIONS] [TOOL...]

    --peers DIR        a virtual environment with memray, scalene, objgraph, pytest-memray, py-spy, nvitop
    --strandline PATH  the program to try (default: built from this checkout)
    --steps N          how long a program runs, 10 ms each (default 1000)

A cell has whether the first answer names the line of the leak, the seconds until the answer, and the
processor time of the program's steps beside that without a tool. `silent` is right for the clean one.
"""
import argparse
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cases"))
from run import built, findings_of, places  # noqa: E402

PROGRAM = os.path.join(HERE, "programs", "leaks.py")
KINDS = ["clean", "objects", "native", "maps"]
NEEDED = {"heaptrack": "heaptrack", "bpftrace": "bpftrace", "memleak": "memleak-bpfcc"}  # programs of tools that no virtual environment has

TRACEMALLOC = """
import sys, tracemalloc, runpy, threading, time
tracemalloc.start()
first = []
def middle():
    time.sleep({half}); first.append(tracemalloc.take_snapshot())
threading.Thread(target=middle, daemon=True).start()
sys.argv = {argv!r}
sys.path.insert(0, {folder!r})
runpy.run_path(sys.argv[0], run_name="__main__")
rows = tracemalloc.take_snapshot().compare_to(first[0], "lineno")
rows = [r for r in rows if "tracemalloc" not in str(r.traceback)]
if rows and rows[0].size_diff > 1 << 20: print("TOP", rows[0])
"""
OBJGRAPH = """
import sys, runpy, objgraph, threading, time
def middle():
    time.sleep({half}); objgraph.growth()
threading.Thread(target=middle, daemon=True).start()
sys.argv = {argv!r}
kept = runpy.run_path(sys.argv[0], run_name="__main__")
rows = objgraph.growth(limit=3)
if rows and rows[0][2] > 100: print("TOP", rows)
"""
MEMRAY = """
import sys, memray
records = memray.FileReader(sys.argv[1]).get_leaked_allocation_records(merge_threads=True)
top = sorted(records, key=lambda r: -r.size)[:1]
for r in top:
    if r.size > 1 << 20: print("TOP", r.size, [f"{{f}}:{{n}}" for _, f, n in r.stack_trace(4)])
"""
BPFTRACE = """
uprobe:/lib/x86_64-linux-gnu/libc.so.6:mmap /pid == cpid/ { @taken[ustack(perf, 8)] = sum(arg1); }
END { print(@taken, 1); clear(@taken); }
"""
TEST = """
import sys, pytest
sys.path.insert(0, {folder!r})
import leaks
@pytest.mark.limit_leaks("1 MB")
def test_leak():
    leaks.main({kind!r}, {steps})
"""


class Peers:
    def __init__(self, options):
        self.o = options
        self.folder = tempfile.mkdtemp(prefix="peers-")
        self.python = os.path.join(options.peers, "bin", "python")
        self.bin = lambda name: os.path.join(options.peers, "bin", name)

    def run(self, line, **more):
        done = subprocess.run([str(x) for x in line], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, **more)
        return done.stdout + done.stderr

    def argv(self, kind):
        return [PROGRAM, kind, str(self.o.steps)]

    def alone(self, kind):
        return self.run([self.python, *self.argv(kind)]), ""

    def strandline(self, kind):
        """check"""
        text = self.run([self.o.strandline, "check", "--json", "--", self.python, *self.argv(kind)])
        at = text.find("{\n")
        doc = json.JSONDecoder().raw_decode(text[at:])[0] if at >= 0 else {}
        named = []
        for f in findings_of(doc):
            if f["severity"] == "problem":
                named += [f["kind"] + " " + f["title"]] + [f"{os.path.basename(p.get('file') or '')}:{p.get('line')}" for p in places(f)]
        return text, "; ".join(named)

    def script(self, text, kind):
        half = self.o.steps * 0.006
        return self.run([self.python, "-c", text.format(half=half, argv=self.argv(kind), folder=os.path.dirname(PROGRAM))])

    def tracemalloc(self, kind):
        text = self.script(TRACEMALLOC, kind)
        return text, top(text)

    def objgraph(self, kind):
        text = self.script(OBJGRAPH, kind)
        return text, top(text)

    def memray(self, kind, *more):
        out = os.path.join(self.folder, "memray.bin")
        text = self.run([self.python, "-m", "memray", "run", "-q", "-f", *more, "-o", out, *self.argv(kind)])
        return text, top(self.run([self.python, "-c", MEMRAY.replace("{{", "{").replace("}}", "}"), out]))

    def scalene(self, kind):
        out = os.path.join(self.folder, "scalene.json")
        if os.path.exists(out):
            os.remove(out)
        text = self.run([self.python, "-m", "scalene", "run", "--memory", "-o", out, PROGRAM, "---", kind, str(self.o.steps)])
        named = []
        try:
            with open(out) as f:
                doc = json.load(f)
            for file, of in doc.get("files", {}).items():
                named += [f"{os.path.basename(file)}:{line}" for line in of.get("leaks", {})]
        except (OSError, ValueError) as e:
            return text + str(e), ""
        return text, "; ".join(named)

    def pytest_memray(self, kind):
        path = os.path.join(self.folder, "test_leak.py")
        with open(path, "w") as f:
            f.write(TEST.format(folder=os.path.dirname(PROGRAM), kind=kind, steps=self.o.steps))
        text = self.run([self.python, "-m", "pytest", "-q", "-s", "--memray", path])
        return text, " ".join(re.findall(r"leaks\.py:\d+", text)[:1]) if "was allowed to leak" in text or "limit_leaks" in text and "failed" in text else ""

    def heaptrack(self, kind):
        for old in glob.glob(os.path.join(self.folder, "heap.*")):
            os.remove(old)
        text = self.run(["heaptrack", "-o", "heap", self.python, *self.argv(kind)])
        files = glob.glob(os.path.join(self.folder, "heap.*"))
        shown = self.run(["heaptrack_print", "-l", "1", "-p", "0", "-a", "0", "-T", "0", *files]) if files else ""
        m = re.search(r"([\d.]+[KMG]?B?) leaked.*?\n((?:.*\n){1,14})", shown)
        size = re.search(r"total memory leaked: ([\d.]+)([KMG])", shown)
        big = size and (size[2] in "MG") and float(size[1]) > 10
        return text, "leaks of malloc: " + " ".join((m[2] if m else "").split())[:200] if big else ""

    def py_spy(self, kind):
        """It samples stacks for their time, and knows no memory."""
        return self.run([self.bin("py-spy"), "record", "-f", "raw", "-o", os.path.join(self.folder, "spy.txt"), "--", self.python, *self.argv(kind)]), ""

    def bpftrace(self, kind):
        text = self.run(["bpftrace", "-e", BPFTRACE, "-c", shlex.join([self.python, *self.argv(kind)])])
        found = re.search(r"@taken\[(.*?)\]: (\d+)", text, re.S)
        return text, "mmap: " + " ".join(found[1].split())[:200] if found and int(found[2]) > 10 << 20 else ""

    def memleak(self, kind):
        """memleak of bcc, which follows a process that runs."""
        program = subprocess.Popen([self.python, *self.argv(kind)], cwd=self.folder, stdout=subprocess.PIPE, text=True)
        shown = self.run(["memleak-bpfcc", "-p", program.pid, "-T", "1", str(self.o.steps // 125), "1"])
        found = re.search(r"(\d+) bytes in \d+ allocations from stack\n((?:\t.*\n)+)", shown)
        named = " ".join(found[2].split())[:200] if found and int(found[1]) > 10 << 20 else ""
        return program.communicate()[0] + ("" if found else shown[-300:]), named

    def nvitop(self, kind):
        program = subprocess.Popen([self.python, *self.argv(kind)], cwd=self.folder, stdout=subprocess.PIPE, text=True)
        shown = self.run([self.bin("nvitop"), "-1"])
        return program.communicate()[0] + shown[-300:], ""


def top(text):
    return "; ".join(line for line in text.splitlines() if line.startswith("TOP"))


def line_of(kind):
    with open(PROGRAM) as f:
        return next((i for i, text in enumerate(f, 1) if text.rstrip().endswith("# LINE " + kind)), 0)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--peers", required=True)
    parser.add_argument("--strandline")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("tools", nargs="*")
    options = parser.parse_args()
    options.peers = os.path.abspath(options.peers)
    options.strandline = os.path.abspath(options.strandline or built())
    peers = Peers(options)
    tools = options.tools or ["strandline", "tracemalloc", "memray", "pytest_memray", "scalene", "objgraph", "heaptrack", "py_spy", "bpftrace", "memleak", "nvitop"]
    cpu = {}
    for tool in ["alone", *tools]:
        for kind in KINDS:
            if tool in NEEDED and not shutil.which(NEEDED[tool]):
                continue
            began = time.time()
            try:
                text, named = getattr(peers, tool)(kind)
            except subprocess.TimeoutExpired:
                text, named = "", "no answer in 600 s"
            spent = re.search(r"cpu ([\d.]+)", text)
            used = float(spent[1]) if spent else None
            if tool == "alone":
                cpu[kind] = used
                continue
            line = f"leaks.py:{line_of(kind)}"
            word = "silent" if not named else "line" if line in named else "no line"
            more = f"{used / cpu[kind]:5.2f}x" if used and cpu[kind] else "    ?"
            print(f"{tool:14} {kind:8} {word:8} {time.time() - began:5.1f} s  cpu {more}  {named[:110] or text.strip()[-60:] * (used is None)}", flush=True)
    shutil.rmtree(peers.folder)


if __name__ == "__main__":
    main()
