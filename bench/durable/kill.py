#!/usr/bin/env python3
"""Harm strandline at random moments, and look at what it leaves.

    kill.py STRANDLINE [-n 200] [--how kill|full|writers|clock] [--rig PYTHON] [--only watch,trace,…] [--seed 1]

For each command that writes, or that attaches to a process: start it on a small target,
and after a random time

  kill      send SIGKILL to strandline alone;
  full      end it (SIGTERM), where the output's file system has room for some random bytes (as root);
  writers   end it and a second one that writes to the same place;
  clock     end it, while the clock of the programs that it starts jumps by days (with
            libfaketime; strandline itself is static, and its monotonic clock begins years later).

Then check that

  - the target lives on and makes progress (or, of a command that strandline started and
    that must not outlive it, is gone),
  - what was written is read by `strandline diagnose` (status 0, 1 or 3), or is not there,
  - nothing else is left: no file in TMPDIR or beside the output, no probe in the kernel,
  - a command that is told to end has ended within 20 s.

It prints a row a command. --rig names a Python with PyTorch for `record`. `mem` needs gcc.
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

    def __init__(self, args, url, rng):
        self.args, self.url, self.rng = args, url, rng
        self.at = tempfile.mkdtemp(prefix=".durable.", dir=os.path.expanduser("~"))
        self.tmp, self.out = os.path.join(self.at, "tmp"), os.path.join(self.at, "out")
        os.mkdir(self.tmp)
        os.mkdir(self.out)
        if args.how == "full":
            size = 4096 * int(2 ** rng.uniform(0, 9))
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "full", self.out], check=True)
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
        until = time.time() + 300
        while count(self.progress) < 0:
            if time.time() > until or p.poll() is not None:
                raise RuntimeError("the target does not begin")
            time.sleep(0.02)
        return p

    def env(self):
        env = dict(os.environ, TMPDIR=self.tmp, XDG_CACHE_HOME=os.path.join(self.at, "cache"))
        if self.args.how == "clock":
            env.update(LD_PRELOAD=FAKETIME, FAKETIME_TIMESTAMP_FILE=self.path("../clock"), FAKETIME_NO_CACHE="1", FAKETIME_DONT_FAKE_MONOTONIC="1")
        return env

    def strandline(self, *words):
        before = ["unshare", "--time", "--monotonic", "100000000", "--boottime", "100000000"] if self.args.how == "clock" else []
        return subprocess.Popen([*before, self.args.strandline, *words], env=self.env(), cwd=self.at, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def harm(self, longest, *words):
        """Start a command, and end it after a random time."""
        first, seconds = self.strandline(*words), self.rng.uniform(0, longest)
        if self.args.how == "kill":
            return end(first, signal.SIGKILL, seconds)
        both = [first]
        if self.args.how == "writers":
            time.sleep(self.rng.uniform(0, longest / 4))
            both.append(self.strandline(*words))
        if self.args.how == "clock":
            until = time.time() + seconds
            while time.time() < until and first.poll() is None:
                with open(self.path("../clock"), "w") as f:
                    f.write(f"{self.rng.choice('+-')}{self.rng.randrange(400)}d")
                time.sleep(0.1)
            seconds = 0
        for p in both:
            if not end(p, signal.SIGTERM, seconds):
                self.faults.append("a command that is told to end does not")
            seconds = 0

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
        if self.args.how == "full":
            subprocess.run(["umount", "-l", self.out])
        shutil.rmtree(self.at, ignore_errors=True)
        return self.faults


def end(process, how, seconds):
    """Wait so long, then send a signal. Report whether the process has ended soon after."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(how)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return True


def attached(longest, name, *words, text=GROWER, rig=False):
    """A trial of a command that attaches to a process, and writes to a path of that name."""

    def trial(t):
        target = t.start(text, t.args.rig if rig else sys.executable)
        out = t.path(name)
        t.harm(longest, *(w.format(pid=target.pid, out=out, url=t.url) for w in words))
        t.diagnosed(out)
        t.judge(lambda f: f == out or rig and f.startswith(out), target.pid)
        target.kill()
        target.wait()

    return trial


def started(longest, name, *words, text=GROWER, steps="500", rig=False):
    """A trial of a command that starts a program."""

    def trial(t):
        out = t.path(name)
        command = [t.args.rig if rig else sys.executable, t.program(text), t.progress, steps]
        t.harm(longest, *(w.format(out=out, backend=t.rng.choice(["bpf", "ptrace"])) for w in words), "--", *command)
        time.sleep(0.1)
        t.diagnosed(out)
        t.judge(lambda f: f.startswith(out) and not f.endswith(".part"))

    return trial


def check(t):
    t.harm(4, "check", "--step-line", "^step", "--junit", t.path("c.xml"), "--", sys.executable, t.program(GROWER), t.progress, "400")
    # What it needed is in a temporary folder, which the next run removes.
    subprocess.run([t.args.strandline, "check", "--", "true"], env=t.env(), cwd=t.at, capture_output=True)
    t.judge(lambda f: t.args.how != "kill" and f == t.path("c.xml"))


HERE = os.path.dirname(os.path.abspath(__file__))
PAUSABLE = os.path.join(HERE, "..", "..", "pausable")
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"


def mem(t):
    """Pauses and resumes of a process with pausable memory, whose contents must survive."""
    driver = os.path.join(tempfile.gettempdir(), f"durable-{os.getpid()}")
    if not os.path.isdir(driver):
        os.mkdir(driver)
        subprocess.run(["gcc", "-std=gnu11", "-O1", "-fPIC", "-shared", "-Wl,-soname,libcuda.so.1", os.path.join(PAUSABLE, "testdata", "fake.c"), "-o", os.path.join(driver, "libcuda.so.1"), "-lpthread"], check=True)
    library = os.path.abspath(os.path.join(PAUSABLE, "object", f"library_{'amd64' if os.uname().machine == 'x86_64' else 'arm64'}.so"))
    env = dict(os.environ, LD_LIBRARY_PATH=driver, STRANDLINE_MEM_LIBRARY=library, PYTHONDONTWRITEBYTECODE="1")
    target = subprocess.Popen([sys.executable, os.path.join(PAUSABLE, "testdata", "held.py")], env=env, cwd=t.at, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    pid = target.stdout.readline().strip()
    for _ in range(5):
        do = t.rng.choice([["pause"], ["resume"], ["pause", "--tag", "weights"], ["resume", "--tag", "weights"], ["status"], ["plan"]])
        t.harm(0.1, "mem", *do, "--pid", pid)
    r = subprocess.run([t.args.strandline, "mem", "resume", "--pid", pid], capture_output=True, text=True, timeout=60)
    if r.returncode != 0:
        t.faults.append(f"mem resume: status {r.returncode}: {r.stderr.strip()[:160]}")
    target.stdin.write("check\n")
    target.stdin.flush()
    if not target.stdout.readline():
        t.faults.append("the memory is not what it was")
    t.judge(lambda f: False)
    target.kill()
    target.wait()


KINDS = {
    "watch": attached(2, "w.strandline", "watch", "--pid", "{pid}", "--interval", "50ms", "--out", "{out}"),
    "trace": attached(3, "t.trace", "trace", "--pid", "{pid}", "--duration", "20s", "--out", "{out}"),
    "trace_command": started(3, "t.trace", "trace", "--backend", "{backend}", "--out", "{out}"),
    "check": check,
    "soak": attached(3, "none", "soak", "--url", "{url}", "--pid", "{pid}", "--waves", "50", "--requests", "20"),
    "mem": mem,
    "record": started(9, "rec", "record", "-o", "{out}", "--every", "200ms", text=TRAINER, steps="300", rig=True),
    "record_pid": attached(4, "rec", "record", "-o", "{out}", "--pid", "{pid}", "--duration", "20s", text=TRAINER, rig=True),
}
NEED_RIG = {"record", "record_pid"}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("strandline", type=os.path.abspath)
    p.add_argument("-n", type=int, default=200)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--how", choices=["kill", "full", "writers", "clock"], default="kill")
    p.add_argument("--rig", help="a Python with PyTorch")
    p.add_argument("--only")
    args = p.parse_args()
    server = Server(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    failed = False
    for name, kind in KINDS.items():
        if args.only and name not in args.only.split(",") or name in NEED_RIG and not args.rig:
            continue
        rng, kinds, bad = random.Random(args.seed), {}, 0
        had, began = probes(), time.time()
        for _ in range(args.n):
            t = Trial(args, url, rng)
            try:
                kind(t)
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
        print(f"{name:14} {args.n} times {args.how}, {bad} with a fault, {time.time() - began:.0f} s", flush=True)
        for f, n in sorted(kinds.items(), key=lambda x: -x[1])[:12]:
            print(f"    {n:4}  {f}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
