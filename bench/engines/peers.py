#!/usr/bin/env python3
"""Runs host leaks under strandline and its peers, and prints which names the line.

    bench/engines/peers.py --peers DIR [OPTIONS] [TOOL...]

    --peers DIR        a virtual environment with memray, scalene, objgraph, pytest-memray, py-spy, nvitop
    --debian DIR       the files of a Debian with bpftrace >= 0.27, libbpf-tools, heaptrack and gdb, for those (root)
    --strandline PATH  the program to try (default: built from this checkout)
    --steps N          how long a program runs, 10 ms each (default 1000)
    --kinds LIST       clean, objects (of Python), native (malloc called by ctypes), library (malloc called by a
                       compiled library; needs cc), maps (mmap), objects-runs, library-runs and maps-runs, which run already
                       when a tool is asked (default: all)

An answer is the first place of a tool's own report of leaks, or, where it has none, of the report that its
documentation has for them. A cell has whether that names the line, the seconds until the answer, and the
processor time of the program's steps beside that without a tool. `silent` is right for the clean one. Strandline's
first place is what the first screen names of the first problem. If a program runs already, a tool is asked for 5 s,
and the time is counted from there.
"""
import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from screen import called_in, screen

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cases"))
from run import built, findings_of  # noqa: E402

PROGRAM = os.path.join(HERE, "programs", "leaks.py")
BEFORE = 2  # seconds that a program runs before a tool is asked of it
KINDS = ["clean", "objects", "native", "library", "maps", "objects-runs", "library-runs", "maps-runs"]
LIBRARY = "#include <stdlib.h>\n#include <string.h>\nvoid *keep(size_t n) { return memset(malloc(n), 1, n); }\n"
# A command in the files of another Debian, where the machine's own files are seen as well.
INSIDE = """
root=$1; shift
for d in proc sys dev tmp root home; do mkdir -p $root/$d; mount --rbind /$d $root/$d; done
mountpoint -q $root/sys/kernel/tracing || mount -t tracefs tracefs $root/sys/kernel/tracing
exec chroot $root sh -c 'cd "$0" && exec "$@"' "$PWD" "$@"
"""

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
config = { max_map_keys = 1000000; unstable_dw_ustack = enable }
uprobe:libc:mmap /pid == $1/ { @size[tid] = arg1; @at[tid] = dw_ustack(); }
uprobe:libc:malloc /pid == $1/ { @size[tid] = arg0; @at[tid] = dw_ustack(); }
uretprobe:libc:mmap, uretprobe:libc:malloc /@size[tid]/ {
  @live[retval] = @size[tid]; @by[retval] = @at[tid]; delete(@size, tid); delete(@at, tid);
}
uprobe:libc:munmap, uprobe:libc:free /pid == $1/ { delete(@live, arg0); delete(@by, arg0); }
interval:s:5 { exit(); }
END {
  for ($kv : @live) { @kept[@by[$kv.0]] = sum($kv.1); }
  print(@kept, 1); clear(@kept); clear(@live); clear(@by); clear(@size); clear(@at);
}
""".replace("libc:", "/lib/x86_64-linux-gnu/libc.so.6:")
TEST = """
import sys, pytest
sys.path.insert(0, {folder!r})
import leaks
@pytest.mark.limit_leaks("1 MB")
def test_leak():
    leaks.main({kind!r}, {steps})
"""


class NotRun(Exception):
    """A tool that cannot be asked, and why."""


class Peers:
    def __init__(self, options):
        self.o = options
        self.folder = tempfile.mkdtemp(prefix="peers-")
        self.python = os.path.join(options.peers, "bin", "python")
        self.bin = lambda name: os.path.join(options.peers, "bin", name)
        if any(kind.startswith("library") for kind in options.kinds):
            os.environ["LEAKS_LIBRARY"] = os.path.join(self.folder, "libkeep.so")
            subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", os.environ["LEAKS_LIBRARY"], "-x", "c", "-"], input=LIBRARY, text=True, check=True)

    def run(self, line, **more):
        done = subprocess.run([str(x) for x in line], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, **more)
        return done.stdout + done.stderr

    def argv(self, kind):
        return [PROGRAM, kind.removesuffix("-runs"), str(self.o.steps)]

    def running(self, kind, ask):
        """What a tool says of a program that runs already: ask(pid)."""
        program = subprocess.Popen([self.python, *self.argv(kind)], cwd=self.folder, stdout=subprocess.PIPE, text=True)
        time.sleep(BEFORE)
        began = time.time()
        try:
            told = ask(str(program.pid))
        finally:
            self.took = time.time() - began
            text = program.communicate()[0]
        return text, told

    def inside(self, script):
        """What a script prints in the other Debian."""
        if not self.o.debian:
            raise NotRun("no --debian")
        return self.run(["unshare", "-m", "sh", "-c", INSIDE, "inside", self.o.debian, "sh", "-c", script])

    def following(self, kind, ask, times=1):
        """What a command says in the other Debian of $p, the program, which runs there already, so many times as long."""
        file, what, steps = self.argv(kind)
        program = f"{self.python} {file} {what} {int(steps) * times}"
        text = self.inside(f"{program} > program.txt & p=$!; sleep {BEFORE if kind.endswith('-runs') else 0.2}; "
                           f"a=$(date +%s%N); {ask}; b=$(date +%s%N); wait $p; cat program.txt; echo took $((b-a))")
        self.took = int(re.search(r"took (\d+)", text)[1]) / 1e9
        return re.sub(r"cpu ([\d.]+)", lambda m: f"cpu {float(m[1]) / times}", text)

    def seconds(self, kind):
        """How long a tool follows a program."""
        return 5 if kind.endswith("-runs") else int(self.o.steps * 0.008)

    def alone(self, kind):
        return self.run([self.python, *self.argv(kind)]), ""

    def strandline(self, kind):
        """check, or trace."""
        if kind.endswith("-runs"):
            text, told = self.running(kind, lambda pid: self.run([self.o.strandline, "trace", "--json", "--pid", pid, "--duration", "5s"]))
        else:
            text = told = self.run([self.o.strandline, "check", "--json", "--", self.python, *self.argv(kind)])
        at = told.find("{\n")
        doc = json.JSONDecoder().raw_decode(told[at:])[0] if at >= 0 else {}
        first = [f for f in findings_of(doc) if f["severity"] == "problem"][:1]
        return text, " ".join(" ".join([screen(f), *(f"leaks.py:{n}" for n in called_in(f, "leaks.py"))]) for f in first).replace("\n", " ")

    def script(self, text, kind):
        starts(kind)
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
        if kind.endswith("-runs"):
            def ask(pid):
                told = self.run([self.python, "-m", "memray", "attach", "-f", "-o", out, "--duration", "5", pid])
                time.sleep(6)  # memray ends by itself
                return told
            text, _ = self.running(kind, ask)
        else:
            text = self.run([self.python, "-m", "memray", "run", "-q", "-f", *more, "-o", out, *self.argv(kind)])
        return text, top(self.run([self.python, "-c", MEMRAY.replace("{{", "{").replace("}}", "}"), out]))

    def scalene(self, kind):
        starts(kind)
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
        starts(kind)
        path = os.path.join(self.folder, "test_leak.py")
        with open(path, "w") as f:
            f.write(TEST.format(folder=os.path.dirname(PROGRAM), kind=kind, steps=self.o.steps))
        text = self.run([self.python, "-m", "pytest", "-q", "-s", "--memray", path])
        return text, " ".join(re.findall(r"leaks\.py:\d+", text)[:1]) if "was allowed to leak" in text or "limit_leaks" in text and "failed" in text else ""

    def heaptrack(self, kind):
        for old in glob.glob(os.path.join(self.folder, "heap.*")):
            os.remove(old)
        show = "heaptrack_print -l 1 -p 0 -a 0 -T 0 heap.*"
        if kind.endswith("-runs"):
            shown = self.following(kind, f"heaptrack -o heap -p $p; {show}")  # until the program ends: its file is empty if it is interrupted
        else:
            shown = self.inside(f"heaptrack -o heap {self.python} {' '.join(self.argv(kind))}; {show}")
        m = re.search(r"([\d.]+[KMG]?B?) leaked.*?\n((?:.*\n){1,14})", shown)
        size = re.search(r"total memory leaked: ([\d.]+)([BKMG])", shown)
        if not size:
            raise NotRun(" ".join(shown.split())[-150:])
        big = size[2] in "MG" and float(size[1]) > 10
        return shown, "leaks of malloc: " + " ".join((m[2] if m else "").split())[:200] if big else ""

    def py_spy(self, kind):
        raise NotRun("it samples where time goes, and knows no memory")

    def nvitop(self, kind):
        raise NotRun("it shows sizes of processes, and judges none")

    def bpftrace(self, kind):
        """It unwinds only processes that run when it starts, reads their tables for some seconds, and names symbols as
        long as they run: the program runs for three times as long."""
        with open(os.path.join(self.folder, "kept.bt"), "w") as f:
            f.write(BPFTRACE)
        text = self.following(kind, "bpftrace -q -p $p kept.bt $p", times=3)
        found = re.search(r"@kept\[(.*?)\]: (\d+)", text, re.S)
        if not found:
            raise NotRun(" ".join(text.split())[-150:])
        return text, "kept: " + " ".join(found[1].split())[:200] if int(found[2]) > 10 << 20 else ""

    def memleak(self, kind):
        """memleak of bcc, which needs no headers of the kernel in its form of libbpf-tools."""
        text = self.following(kind, f"memleak-libbpf -p $p -T 1 {self.seconds(kind)} 1")
        if "outstanding allocations" not in text:
            raise NotRun(" ".join(text.split())[-150:])
        found = re.search(r"(\d+) bytes in \d+ allocations from stack\n((?:\t.*\n)+)", text)
        return text, " ".join(found[2].split())[:200] if found and int(found[1]) > 10 << 20 else ""


def starts(kind):
    if kind.endswith("-runs"):
        raise NotRun("it starts the program, or is a part of it")


def top(text):
    return "; ".join(line for line in text.splitlines() if line.startswith("TOP"))


def line_of(kind):
    with open(PROGRAM) as f:
        return next((i for i, text in enumerate(f, 1) if text.rstrip().endswith("# LINE " + kind.removesuffix("-runs"))), 0)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--peers", required=True)
    parser.add_argument("--debian")
    parser.add_argument("--strandline")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("tools", nargs="*")
    options = parser.parse_args()
    options.kinds = options.kinds.split(",")
    options.peers = os.path.abspath(options.peers)
    options.strandline = os.path.abspath(options.strandline or built())
    peers = Peers(options)
    tools = options.tools or ["strandline", "tracemalloc", "memray", "pytest_memray", "scalene", "objgraph", "heaptrack", "py_spy", "bpftrace", "memleak", "nvitop"]
    cpu, loads = {}, []
    for tool in ["alone", *tools]:
        for kind in options.kinds:
            began, peers.took = time.time(), None
            try:
                text, named = getattr(peers, tool)(kind)
            except NotRun as e:
                print(f"{tool:14} {kind:12} not run: {e}", flush=True)
                continue
            except subprocess.TimeoutExpired:
                text, named = "", "no answer in 600 s"
            spent = re.search(r"cpu ([\d.]+)", text)
            used = float(spent[1]) if spent else None
            if tool == "alone":
                cpu[kind] = used
                continue
            line = f"leaks.py:{line_of(kind)}"
            word = "silent" if not named else "line" if re.search(line + r"\b", named) else "no line"
            more = f"{used / cpu[kind]:5.2f}x" if used and cpu[kind] else "    ?"
            loads.append(os.getloadavg()[0])
            print(f"{tool:14} {kind:12} {word:8} {peers.took or time.time() - began:5.1f} s  cpu {more}  {named[:110] or text.strip()[-60:] * (used is None)}", flush=True)
    if loads:
        print(f"load: {min(loads):.1f} to {max(loads):.1f} on {os.cpu_count()} processors")
    shutil.rmtree(peers.folder)


if __name__ == "__main__":
    main()
