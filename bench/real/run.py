#!/usr/bin/env python3
"""Trace real programs and compare what strandline finds with what is known of them.

    bench/real/run.py --install              # the programs, with apt (Debian 12), as root
    bench/real/run.py [OPTIONS] [NAME...]    # the cases whose names contain a NAME, or all
    bench/real/run.py --throughput           # what redis-server loses while it is traced

    --strandline PATH   the program to try (default: built from this checkout)
    --seconds N         the duration of each trace (default 16)
    --keep DIR          write each document there
    --json FILE         write the results there

A case of `cases.py` starts a program and its load; it is traced, and its load goes on
until it is stopped. A normal workload is right if nothing is called a problem. A
known leak is right if a problem has its class, its place is in the title, the stack or
a site, and a remedy states what helps. Where what leaks is bounded, a warning will do, or
a note that states when it ended.

It takes about half a minute a case, one at a time, and needs root. It is not part of
the tests: what it finds depends on the machine and what else runs on it.
"""
import argparse
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import cases

PACKAGES = """redis-server redis-tools memcached postgresql mariadb-server nginx haproxy varnish apache2-utils wrk
nodejs openjdk-17-jdk-headless golang ruby php-cli perl stress-ng python3-numpy python3-pandas python3-flask
python3-torch gunicorn uwsgi uwsgi-plugin-python3 celery python3-redis sqlite3 imagemagick ripgrep gcc
libtcmalloc-minimal4 libjemalloc2""".split()

HERE = os.path.dirname(os.path.abspath(__file__))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Program:
    """A case's program and load, in a folder and a process group of their own."""

    def __init__(self, case, script):
        self.dir = tempfile.mkdtemp(prefix="real-")
        os.chmod(self.dir, 0o755)
        for name, text in case.files.items():
            with open(os.path.join(self.dir, name), "w") as f:
                f.write(text)
        env = dict(os.environ, D=self.dir, P=str(free_port()), Q=str(free_port()), HERE=HERE,
                   PATH="/usr/lib/postgresql/15/bin:/usr/bin:/usr/sbin:/usr/local/go/bin:" + os.environ["PATH"])
        self.log = open(os.path.join(self.dir, "log"), "w")
        self.env = env
        self.process = None
        if script:
            self.process = subprocess.Popen(["bash", "-c", cases.PRELUDE + script], cwd=self.dir, env=env, stdin=subprocess.DEVNULL,
                                            stdout=self.log, stderr=self.log, start_new_session=True)

    def pid(self):
        """The process to trace, once it is ready."""
        path = os.path.join(self.dir, "pid")
        for _ in range(6000):
            if os.path.exists(path):
                text = open(path).read().split()
                if text:
                    return int(text[0])
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError("the program did not start: " + open(self.log.name).read()[-400:])

    def stop(self):
        if self.process:
            for sig in (signal.SIGTERM, signal.SIGKILL):
                for pid in self.members():
                    try:
                        os.kill(pid, sig)
                    except ProcessLookupError:
                        pass
                for _ in range(60):
                    self.process.poll()
                    if not self.members():
                        break
                    time.sleep(0.05)
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def members(self):
        """The processes of the case: those of its session, and those with its folder in their environment.

        Some leave the session, and others write their title over their environment."""
        out = []
        mark = ("D=" + self.dir + "\0").encode()
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            try:
                stat = open(f"/proc/{name}/stat").read().rsplit(")", 1)[1].split()
                with open(f"/proc/{name}/environ", "rb") as f:
                    if stat[0] != "Z" and (int(stat[3]) == self.process.pid or mark in f.read()):
                        out.append(int(name))
            except OSError:
                continue
        return out


def trace(strandline, case, seconds):
    """The exit status and the document of a trace, and what went to stderr."""
    program = Program(case, case.script)
    try:
        command = [strandline, "trace", "--json", "--duration", f"{case.seconds or seconds}s"]
        if case.script:
            command += ["--pid", str(program.pid())]
            time.sleep(case.settle)
        else:
            command += ["--", "bash", "-c", "exec " + case.command]
        done = subprocess.run(command, cwd=program.dir, env=program.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=240)
    finally:
        program.stop()
    text = done.stdout[done.stdout.find('{"schema'):] if '{"schema' in done.stdout else done.stdout[done.stdout.find("{\n"):]
    try:
        doc = json.JSONDecoder().raw_decode(text)[0]
    except ValueError:
        doc = None
    return done.returncode, doc, done.stderr.strip()


def text_of(finding):
    """All of a finding that can name a place."""
    parts = [finding.get("title", "")]
    for frame in (finding.get("stack") or []) + [finding.get("site") or {}] + (finding.get("sites") or []):
        parts.append(" ".join(str(frame.get(k) or "") for k in ("function", "file", "line")))
    return "\n".join(parts)


def ended(finding):
    """Whether a finding states when the memory stopped growing, within the trace."""
    return finding["severity"] == "info" and (finding.get("evidence") or {}).get("settled_seconds", 0) > 0


def judge(case, status, doc):
    """Whether the answer is right, and what it was in a few words."""
    if doc is None:
        return False, f"no document, status {status}"
    findings = doc.get("findings") or []
    problems = [f for f in findings if f["severity"] == "problem"]
    if case.kind == "normal":
        if problems:
            return False, "problem " + problems[0]["kind"] + ": " + problems[0]["title"]
        return True, findings[0]["severity"] + " " + findings[0]["kind"] if findings else "nothing"
    counted = problems + [f for f in findings if case.bounded and (f["severity"] == "warning" or ended(f))]
    for f in counted:
        advice = " ".join(r.get("text", "") + " " + (r.get("setting") or "") for r in f.get("remedies") or [])
        lacks = []
        if not re.search(case.classes + "$", f["kind"]):
            lacks.append("class")
        if not re.search(case.place, text_of(f)):
            lacks.append("place")
        if not re.search(case.advice, advice):
            lacks.append("advice")
        if not lacks:
            return True, f["severity"] + " " + f["kind"]
        f["lacks"] = lacks
    if counted:
        f = min(counted, key=lambda f: len(f["lacks"]))
        return False, f"wrong {', '.join(f['lacks'])}: {f['kind']}: {f['title']}"
    return False, findings[0]["severity"] + " " + findings[0]["kind"] + ": " + findings[0]["title"] if findings else "nothing"


def processor_time(pid):
    """The seconds of processor time that a process has used."""
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def throughput(strandline, rounds=7, requests=300000):
    """What redis-server does alone and while it is traced: its requests a second, and its
    processor time for each, which other work on the machine changes little."""
    case = cases.Case("throughput", "normal", """
redis-server --port $P --save '' --appendonly no & server=$!
until redis-cli -p $P ping; do sleep 0.1; done
redis-benchmark -q -p $P -r 50000 -n 200000 -t set -d 200
echo $P > port; echo $server > pid; wait""")
    program = Program(case, case.script)
    rates = {False: [], True: []}
    costs = {False: [], True: []}
    try:
        pid = program.pid()
        port = open(os.path.join(program.dir, "port")).read().strip()
        for i in range(2 * rounds):
            traced = (i % 4) in (1, 2)
            tracer = None
            if traced:
                tracer = subprocess.Popen([strandline, "trace", "--json", "--pid", str(pid), "--duration", "120s"],
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(3)
            before = processor_time(pid)
            out = subprocess.run(["redis-benchmark", "-p", port, "-r", "50000", "-n", str(requests), "-t", "set,get", "-d", "200", "--csv"],
                                 capture_output=True, text=True).stdout
            rates[traced].append(sum(float(line.split(",")[1].strip('"')) for line in out.splitlines() if line.startswith(('"SET"', '"GET"'))))
            costs[traced].append(1e6 * (processor_time(pid) - before) / (2 * requests))
            if tracer:
                tracer.send_signal(signal.SIGINT)
                tracer.wait()
    finally:
        program.stop()
    for unit, values, digits in (("requests/s", rates, 0), ("us of processor time a request", costs, 2)):
        alone, traced = statistics.median(values[False]), statistics.median(values[True])
        print(f"{unit}: {alone:,.{digits}f} alone, {traced:,.{digits}f} traced: {100 * (traced - alone) / alone:+.1f} % (medians of {rounds})")
        for name, runs in (("alone", values[False]), ("traced", values[True])):
            print(f"  {name}:", " ".join(f"{r:,.{digits}f}" for r in runs))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--throughput", action="store_true")
    parser.add_argument("--strandline")
    parser.add_argument("--seconds", type=int, default=16)
    parser.add_argument("--keep")
    parser.add_argument("--json")
    parser.add_argument("--kind", choices=["normal", "leak"])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if args.install:
        subprocess.run(["apt-get", "install", "-y", "--no-install-recommends", *PACKAGES], check=True)
        return 0
    if not args.strandline:
        args.strandline = os.path.join(tempfile.mkdtemp(), "strandline")
        subprocess.run(["go", "build", "-o", args.strandline, "./cmd/strandline"], cwd=os.path.join(HERE, "..", ".."), check=True)
    args.strandline = os.path.abspath(args.strandline)
    if args.throughput:
        throughput(args.strandline)
        return 0
    chosen = [c for c in cases.CASES if (not args.names or any(n in c.name for n in args.names)) and args.kind in (None, c.kind)]
    results = []
    for case in chosen:
        if args.list:
            print(case.kind, case.name)
            continue
        try:
            status, doc, errors = trace(args.strandline, case, args.seconds)
            right, got = judge(case, status, doc)
            if doc is None and errors:
                got += ": " + errors.splitlines()[-1]
        except (RuntimeError, OSError, subprocess.SubprocessError) as e:
            status, doc, right, got = None, None, None, str(e)
        if args.keep and doc is not None:
            os.makedirs(args.keep, exist_ok=True)
            with open(os.path.join(args.keep, case.name + ".json"), "w") as f:
                json.dump(doc, f, indent=1)
        word = {True: "right", False: "WRONG", None: "not run"}[right]
        expected = "no problem" if case.kind == "normal" else case.classes
        print(f"| {case.name} | {expected} | {got[:230]} | {word} |", flush=True)
        results.append({"name": case.name, "kind": case.kind, "right": right, "got": got, "exit": status})
    for kind in ("normal", "leak"):
        some = [r for r in results if r["kind"] == kind and r["right"] is not None]
        print(f"{kind}: {sum(r['right'] for r in some)} of {len(some)} right")
    if args.json:
        with open(args.json, "w") as f:
            json.dump(results, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
