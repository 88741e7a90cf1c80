#!/usr/bin/env python3
"""Runs small programs, each with one known cause, under every command, and prints a table.

    bench/cases/run.py [OPTIONS] [NAME...]   # the cases of that name, or all

    --strandline PATH  the program to try (default: built from this checkout)
    --torch DIR        real PyTorch, as bench/pytorch/setup.sh leaves it
    --ucx DIR          where `pip install --target DIR libucx-cu12==1.18.1` put UCX
    --commands LIST    check,record,trace,gpu,diagnose,watch,attach,soak (default: all)
    --seconds N        how long each program runs (default 30)
    --keep DIR         write each document there
    --page FILE        put the cells into the table of this page, which keeps the others

A cell is right if every problem has the program's cause, and there is one if it leaks. It
is `unknown` if the command says so, and `-` where the command does not apply.
Needs root for trace, gpu and attach. The exit status is 1 if a cell is wrong.
"""
import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import cases

HERE = os.path.dirname(os.path.abspath(__file__))
COMMANDS = ["check", "record", "trace", "gpu", "diagnose", "watch", "attach", "soak"]


class Bench:
    def __init__(self, options):
        self.options = options
        self.folder = tempfile.mkdtemp(prefix="cases-")
        self.number = 0

    def start(self, case):
        """The command line of a case's program, its environment, and its port."""
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        words = case.program.format(seconds=self.options.seconds, port=port).split()
        line = [sys.executable, os.path.join(HERE, "programs", words[0])] + words[1:]
        env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
        if case.needs in ("torch", "device"):
            line[:1] = [os.path.join(HERE, "..", "pytorch", "run.sh"), self.options.torch]
        if case.needs == "torch":
            env["CUDA_VISIBLE_DEVICES"], env["FAKE_CUDA_DEVICES"] = "", "0"
        if case.needs == "ucx":
            env["LD_LIBRARY_PATH"] = os.path.join(self.options.ucx, "libucx", "lib")
        return line, env, port

    def run(self, arguments, env):
        """What strandline prints as JSON, and its exit status."""
        return run_json([self.options.strandline] + arguments, env, self.folder)

    def try_one(self, case, command):
        """The cell of a case and a command: its word, and the document."""
        line, env, port = self.start(case)
        self.number += 1
        out = os.path.join(self.folder, f"out{self.number}")
        server = case.soak
        if command == "soak" and not server or server and command not in ("soak", "trace", "watch", "attach"):
            return None, None
        if command in ("gpu", "attach") and case.needs != "device" or command == "attach" and case.beside:
            return None, None
        if command in ("trace", "diagnose") and case.needs == "device":  # they follow main memory
            return None, None
        if command == "check":
            return self.run(["check", "--json", "--", *line], env)
        if command == "record":
            self.run(["record", "-o", out, "--", *line], env)
            return self.run(["diagnose", "--json", out], env)
        seconds = f"{self.options.seconds - 7}s"
        traced = ["trace", "--json", "--duration", seconds]  # while it runs: one that ended may be a job
        if command == "trace" and not server:
            return self.run([*traced, "--", *line], env)
        if command == "diagnose":
            self.run([*traced, "--out", out, "--", *line], env)
            return self.run(["diagnose", "--json", out], env)
        target = subprocess.Popen(line, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while case.needs in ("torch", "device") and target.poll() is None and not loaded(target.pid):
                time.sleep(0.2)
            time.sleep(1)
            while server and not answers(port):
                time.sleep(0.2)
            pid = str(target.pid)
            if command == "soak":
                return self.run(["soak", "--json", "--url", f"http://127.0.0.1:{port}/v1", "--requests", "60", "--settle", "300ms"], env)
            load = None
            if server:
                load = subprocess.Popen([sys.executable, __file__, "--load", str(port)], stderr=subprocess.DEVNULL)
            try:
                words = {"gpu": ["trace", "--gpu"], "trace": ["trace"], "watch": ["watch"], "attach": ["record", "-o", out]}[command]
                doc, done = self.run([*words, "--json", "--pid", pid, "--duration", seconds], env)
            finally:
                if load:
                    load.kill()
                    load.wait()
            if command == "attach":
                return self.run(["diagnose", "--json", out], env)
            return doc, done
        finally:
            target.send_signal(signal.SIGKILL)
            target.wait()


def run_json(command, env, folder, timeout=600):
    """The JSON document that a command of strandline prints, and how it ended."""
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, cwd=folder)
    text = done.stdout + "\n" + done.stderr
    best = None
    for at in [m.start() for m in re.finditer(r"^\{", text, re.M)]:
        try:
            doc = json.JSONDecoder().raw_decode(text[at:])[0]
        except ValueError:
            continue
        if best is None or findings_of(doc) or "findings" in doc:
            best = doc  # a watch prints its samples first
    return best, done


def text_of(finding):
    parts = [finding.get("kind", ""), finding.get("title", "")] + (finding.get("detail") or [])
    for remedy in finding.get("remedies") or []:
        parts += [remedy.get("text", ""), remedy.get("detail") or "", remedy.get("setting") or ""]
    return " ".join(parts)


def places(finding):
    out = [finding.get("site") or {}] + (finding.get("stack") or [])
    for s in finding.get("sites") or []:
        out.append(s.get("site") or s)
    return out


def findings_of(doc):
    if not doc:
        return []
    out = list(doc.get("findings") or [])
    for run in doc.get("runs") or []:
        out += run.get("findings") or []
    for device in doc.get("judged") or []:
        out += device.get("findings") or []
    return out


def marked(case):
    path = os.path.join(HERE, "programs", case.program.split()[0])
    return os.path.basename(path), [i + 1 for i, t in enumerate(open(path)) if "# LINE" in t]


def judge(case, command, doc, done):
    """Whether the answer is right: right, unknown or WRONG, and why.

    A watch sees levels alone: it says that memory leaks, and which command finds the cause."""
    if "error" in (doc or {}) and "strandline check --" in doc["error"] and command == "record":
        return "unknown", doc["error"][:160]
    if doc is None:
        return "WRONG", "no document: " + (done.stderr.strip().splitlines() or ["nothing said"])[-1][:160]
    found = findings_of(doc)
    problems = [f for f in found if f["severity"] == "problem"]
    if not case.cause:
        if problems:
            return "WRONG", problems[0]["kind"] + ": " + problems[0]["title"][:160]
        return "right", doc.get("verdict", "")
    some = [f for f in found if f["severity"] == "warning"] or found
    if command == "watch" and some and some[0]["severity"] != "info":
        return ("right" if problems else "unknown"), (problems or some)[0]["title"][:160]
    if command == "watch" and not problems and case.needs == "device" and doc.get("devices_note"):
        return "unknown", doc["devices_note"]
    for f in problems:
        if re.search(case.cause, text_of(f), re.S):
            file, lines = marked(case)
            if case.line and not any(os.path.basename(p.get("file") or "") == file and p.get("line") in lines for p in places(f)):
                return "right*", f["kind"] + " without the line"
            others = [g for g in problems if not re.search(case.cause, text_of(g), re.S)]
            if others:
                return "WRONG", "also " + others[0]["kind"] + ": " + others[0]["title"][:140]
            return "right", f["kind"]
    if problems and all(f["kind"] == "leak" and not f.get("site") for f in problems):
        return "unknown", "no cause named: " + problems[0]["title"][:160]
    if problems:
        return "WRONG", problems[0]["kind"] + ": " + problems[0]["title"][:160]
    if doc.get("verdict") == "unknown" or done.returncode == 125:
        return "unknown", some[0]["title"][:160] if some else ""
    return "WRONG", "no problem; " + (some[0]["kind"] + ": " + some[0]["title"][:140] if some else "nothing found")


def loaded(pid):
    """Whether a program has imported PyTorch: it computes, and loads no more."""
    def libraries():
        with open(f"/proc/{pid}/maps") as f:
            return sum("/torch/" in line for line in f)
    before = libraries()
    time.sleep(2)
    return 0 < before == libraries()


def answers(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def load(port):
    """Asks a server again and again."""
    body = json.dumps({"model": "tiny", "messages": [{"role": "user", "content": "a question of some words"}]}).encode()
    while True:
        urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", body, {"Content-Type": "application/json"})).read()
        time.sleep(0.02)


def built():
    """The program, built from this checkout."""
    path = os.path.join(tempfile.mkdtemp(), "strandline")
    subprocess.run(["go", "build", "-o", path, "./cmd/strandline"], cwd=os.path.join(HERE, "..", ".."), check=True)
    return path


def keep(folder, name, doc):
    """Writes a document into a folder, if there are both."""
    if folder and doc is not None:
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, name + ".json"), "w") as f:
            json.dump(doc, f, indent=1)


def put(page, name, command, cell):
    """Puts a cell into the table of a page: a row for each program, a column for each command."""
    with open(page) as f:
        lines = f.read().split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith("| program |"))
    rows = {}
    end = at + 2
    while end < len(lines) and lines[end].startswith("|"):
        cells = [c.strip() for c in lines[end].strip("|").split("|")]
        rows[cells[0]] = cells[1:]
        end += 1
    rows.setdefault(name, [""] * len(COMMANDS))[COMMANDS.index(command)] = cell
    order = [c.name for c in cases.CASES if c.name in rows]
    lines[at + 2:end] = ["| " + " | ".join([n, *rows[n]]) + " |" for n in order]
    with open(page, "w") as f:
        f.write("\n".join(lines))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--strandline")
    parser.add_argument("--torch")
    parser.add_argument("--ucx")
    parser.add_argument("--commands", default=",".join(COMMANDS))
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--keep")
    parser.add_argument("--page")
    parser.add_argument("--load", type=int)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.load:
        return load(options.load)
    options.strandline = options.strandline or built()
    bench = Bench(options)
    wrong = 0
    for case in cases.CASES:
        if options.names and case.name not in options.names:
            continue
        if case.needs in ("torch", "device") and not options.torch or case.needs == "ucx" and not options.ucx:
            print(f"{case.name:15} not run: needs {case.needs}", flush=True)
            continue
        for command in options.commands.split(","):
            began = time.time()
            try:
                doc, done = bench.try_one(case, command)
            except subprocess.TimeoutExpired as e:
                print(f"{case.name:15} {command:9} WRONG    {time.time() - began:5.0f} s  {e}", flush=True)
                wrong += 1
                continue
            if done is None:
                continue
            word, why = judge(case, command, doc, done)
            wrong += word == "WRONG"
            print(f"{case.name:15} {command:9} {word:8} {time.time() - began:5.0f} s  {why}", flush=True)
            keep(options.keep, f"{case.name}-{command}", doc)
            if options.page:
                put(options.page, case.name, command, f"{word.rstrip('*')}, {time.time() - began:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
