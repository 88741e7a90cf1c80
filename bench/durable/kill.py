#!/usr/bin/env python3
"""Kill strandline at random moments, and look at what it leaves.

    kill.py STRANDLINE [-n 200] [--rig PYTHON] [--only watch,trace,…] [--seed 1]

For each command that writes, or that attaches to a process: start it on a small target,
send SIGKILL to strandline alone after a random time, and check that

  - the target lives on and makes progress (or, of a command that strandline started and
    that must not outlive it, is gone),
  - what was written is read by `strandline diagnose` (status 0, 1 or 3), or is not there,
  - nothing else is left: no file in TMPDIR or beside the output, no probe in the kernel.

It prints a row a command. --rig names a Python with PyTorch for `record`.
"""

import argparse
import http.server
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

GROWER = """
import mmap, os, sys, time
kept, path = [], sys.argv[1]
for i in range(int(sys.argv[2])):
    kept.append(bytearray(64 << 10)); kept.append(mmap.mmap(-1, 64 << 10))
    print("step", i, flush=True)
    with open(path, "w") as f: f.write(str(i))
    time.sleep(0.02)
"""

TRAINER = """
import sys, time, torch
kept, path = [], sys.argv[1]
device = "cuda" if torch.cuda.is_available() else "cpu"
for i in range(int(sys.argv[2])):
    kept.append(torch.zeros(1 << 16, device=device))
    with open(path, "w") as f: f.write(str(i))
    time.sleep(0.02)
"""


class Model(http.server.BaseHTTPRequestHandler):
    """A server that answers as the OpenAI API does."""

    def do_GET(self):
        self.answer({"data": [{"id": "m"}]})

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer({"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}], "usage": {"completion_tokens": 1}})

    def answer(self, doc):
        text = json.dumps(doc).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        pass  # a client that was killed


def probes():
    """The probes that the kernel lists by name."""
    try:
        with open("/sys/kernel/tracing/uprobe_events") as f:
            return sorted(f)
    except OSError:
        return []


def count(path):
    try:
        with open(path) as f:
            return int(f.read() or -1)
    except (OSError, ValueError):
        return -1


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def children(of):
    out = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", errors="replace") as f:
                if of in f.read() and int(pid) != os.getpid():
                    out.append(int(pid))
        except OSError:
            pass
    return out


class Trial:
    """One start and one kill, in a folder of its own."""

    def __init__(self, args, url):
        self.args, self.url = args, url
        self.at = tempfile.mkdtemp(prefix=".durable.", dir=os.path.expanduser("~"))
        self.tmp, self.out = os.path.join(self.at, "tmp"), os.path.join(self.at, "out")
        os.mkdir(self.tmp)
        os.mkdir(self.out)
        self.progress = os.path.join(self.at, "progress")
        self.faults = []

    def path(self, name):
        return os.path.join(self.out, name)

    def program(self, text):
        path = os.path.join(self.at, "target.py")
        with open(path, "w") as f:
            f.write(text)
        return path

    def start(self, text, python=sys.executable):
        p = subprocess.Popen([python, self.program(text), self.progress, "100000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.at)
        until = time.time() + 30
        while count(self.progress) < 0 and time.time() < until:
            time.sleep(0.02)
        return p

    def env(self):
        return dict(os.environ, TMPDIR=self.tmp, XDG_CACHE_HOME=os.path.join(self.at, "cache"))

    def strandline(self, *words):
        return subprocess.Popen([self.args.strandline, *words], env=self.env(), cwd=self.at, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def diagnosed(self, *paths):
        for p in paths:
            if not os.path.exists(p):
                continue
            r = subprocess.run([self.args.strandline, "diagnose", p], capture_output=True, text=True, timeout=60)
            if r.returncode not in (0, 1, 3) and "no snapshot" not in r.stderr and "the file is empty" not in r.stderr:
                self.faults.append(f"diagnose {os.path.basename(p)}: status {r.returncode}: {r.stderr.strip()[:160]}")

    def judge(self, may_leave, target=None, gone=False):
        """Check the target and the folders."""
        if target is not None:
            before, until = count(self.progress), time.time() + 5
            while alive(target) and count(self.progress) <= before and time.time() < until:
                time.sleep(0.05)
            if not alive(target) or count(self.progress) <= before:
                self.faults.append("the target does not go on")
        if gone:
            until = time.time() + 3
            while children(self.progress) and time.time() < until:
                time.sleep(0.05)
            if children(self.progress):
                self.faults.append("the command outlives strandline")
        left = [os.path.join(d, f) for top in (self.tmp, self.out) for d, _, files in os.walk(top) for f in files]
        left = [os.path.relpath(f, self.at) for f in left if not may_leave(f)]
        if left:
            self.faults.append("left: " + " ".join(left[:4]))

    def end(self):
        for pid in children(self.progress):
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.at, ignore_errors=True)
        return self.faults


def kill_after(process, seconds):
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def watch(t, rng):
    target = t.start(GROWER)
    out = t.path("w.strandline")
    kill_after(t.strandline("watch", "--pid", str(target.pid), "--interval", "50ms", "--out", out), rng.uniform(0, 2))
    t.diagnosed(out)
    t.judge(lambda f: f == out, target.pid)
    target.kill()
    target.wait()


def trace(t, rng):
    target = t.start(GROWER)
    out = t.path("t.trace")
    kill_after(t.strandline("trace", "--pid", str(target.pid), "--duration", "20s", "--out", out), rng.uniform(0, 3))
    t.diagnosed(out)
    t.judge(lambda f: f == out, target.pid)
    target.kill()
    target.wait()


def trace_command(t, rng):
    out = t.path("t.trace")
    kill_after(t.strandline("trace", "--backend", rng.choice(["bpf", "ptrace"]), "--out", out, "--", sys.executable, t.program(GROWER), t.progress, "500"), rng.uniform(0, 3))
    t.diagnosed(out)
    t.judge(lambda f: f == out)


def check(t, rng):
    kill_after(t.strandline("check", "--step-line", "^step", "--junit", t.path("c.xml"), "--", sys.executable, t.program(GROWER), t.progress, "400"), rng.uniform(0, 4))
    # What it needed is in a temporary folder, which the next run removes.
    subprocess.run([t.args.strandline, "check", "--", "true"], env=t.env(), cwd=t.at, capture_output=True)
    t.judge(lambda f: False)


def soak(t, rng):
    target = t.start(GROWER)
    kill_after(t.strandline("soak", "--url", t.url, "--pid", str(target.pid), "--waves", "50", "--requests", "20"), rng.uniform(0, 3))
    t.judge(lambda f: False, target.pid)
    target.kill()
    target.wait()


def record(t, rng):
    kill_after(t.strandline("record", "-o", t.path("rec"), "--every", "200ms", "--", t.args.rig, t.program(TRAINER), t.progress, "300"), rng.uniform(0, 9))
    time.sleep(0.1)
    t.diagnosed(t.path("rec"))
    t.judge(lambda f: f.startswith(t.path("rec")) and not f.endswith(".part"))


def record_pid(t, rng):
    target = t.start(TRAINER, t.args.rig)
    kill_after(t.strandline("record", "-o", t.path("rec"), "--pid", str(target.pid), "--duration", "20s"), rng.uniform(0, 4))
    t.diagnosed(t.path("rec"))
    t.judge(lambda f: f.startswith(t.path("rec")), target.pid)
    target.kill()
    target.wait()


KINDS = {"watch": watch, "trace": trace, "trace_command": trace_command, "check": check, "soak": soak, "record": record, "record_pid": record_pid}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("strandline", type=os.path.abspath)
    p.add_argument("-n", type=int, default=200)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--rig", help="a Python with PyTorch")
    p.add_argument("--only")
    args = p.parse_args()
    server = Server(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    failed = False
    for name, kind in KINDS.items():
        if args.only and name not in args.only.split(",") or kind in (record, record_pid) and not args.rig:
            continue
        rng, kinds, bad = random.Random(args.seed), {}, 0
        had, began = probes(), time.time()
        for _ in range(args.n):
            t = Trial(args, url)
            try:
                kind(t, rng)
            except Exception as e:  # a fault of the trial is one of the row
                t.faults.append(repr(e))
            faults = t.end()
            bad += bool(faults)
            for f in faults:
                kinds[f] = kinds.get(f, 0) + 1
        time.sleep(1)
        if probes() != had:
            kinds["probes are left in the kernel"] = 1
            bad += 1
        failed |= bad > 0
        print(f"{name:14} {args.n} kills, {bad} with a fault, {time.time() - began:.0f} s", flush=True)
        for f, n in sorted(kinds.items(), key=lambda x: -x[1])[:12]:
            print(f"    {n:4}  {f}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
