#!/usr/bin/env python3
"""Runs programs on real frameworks under strandline, and prints a table.

    bench/engines/run.py [OPTIONS] [NAME...]   # the scenarios of that name, or all

    --strandline PATH  the program to try (default: built from this checkout)
    --torch DIR        PyTorch and the frameworks, as setup.sh leaves them
    --ucx DIR          releases of UCX: `unzip -d DIR/1.22.0` of the wheel libucx-cu12, and others
    --megatron DIR     `pip install --no-deps --target DIR megatron-core`, beside --torch
    --titan DIR        the same of torchtitan 0.2.2, spmd_types, tyro, tensorboard and what they need
    --jax DIR          a virtual environment with JAX (default: jax in the folder of --torch)
    --devices LIST     cuda (the rig's), cpu (default: both)
    --overhead         also run each program without strandline
    --keep DIR         write each document there

On a device `record` and `diagnose` are tried, on the CPU `check`. An answer is right if each
problem names the leaking line or the holder, or two lines of which it is one, and there is a
problem if it leaks. The exit status is 1 if an answer is wrong.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import scenarios

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cases"))
from run import built, findings_of, keep, places, run_json, text_of  # noqa: E402


def marks(program):
    """The file of a program, and the lines that its kind leaks at or is held at."""
    name, kind = program.split()[:2]
    with open(os.path.join(HERE, "programs", name)) as f:
        return name, [i for i, text in enumerate(f, 1) if any(text.rstrip().endswith(f"# {mark} {kind}") for mark in ("LINE", "HOLDS"))]


def judge(scenario, doc, done):
    """Whether an answer is right, unknown or WRONG, and why."""
    if doc is None:
        return "WRONG", "no document: " + (done.stderr.strip().splitlines() or ["nothing said"])[-1][:160]
    if "error" in doc:
        return "WRONG", doc["error"][:160]
    problems = [f for f in findings_of(doc) if f["severity"] == "problem"]
    if not scenario.leak:
        if problems:
            return "WRONG", problems[0]["kind"] + ": " + problems[0]["title"][:160]
        if doc.get("verdict") == "unknown":
            missing = [m for run in doc.get("runs") or [] for m in run.get("missing") or []]
            return "unknown", (missing or ["no verdict"])[-1][:160]
        return "right", doc.get("verdict", "")
    if not problems:
        return "unknown" if doc.get("verdict") == "unknown" else "WRONG", "no problem"
    if scenario.says:
        other = [f["title"] for f in problems if not re.search(scenario.says, text_of(f))]
        return ("WRONG", "elsewhere: " + other[0][:160]) if other else ("right", problems[0]["kind"] + ": " + problems[0]["title"][:80])
    file, lines = marks(scenario.program)
    for f in problems:
        named = places(f) + holders(f)
        if not any(os.path.basename(p.get("file") or "") == file and lines_of(p) & set(lines) for p in named):
            return "WRONG", f["kind"] + " elsewhere: " + f["title"][:160]
    paths = [h["path"] for f in problems for h in holders(f)]
    return "right", problems[0]["kind"] + (" held by " + paths[0] if paths else "")


def lines_of(place):
    """The line of a place, or the two of which one is meant (`train.py:12 or 30`). Of more it names none."""
    either = place.get("lines") or []
    return {place.get("line"), *(either if len(either) <= 2 else [])}


def holders(finding):
    return list((finding.get("evidence") or {}).get("held_by") or [])


class Bench:
    def __init__(self, options):
        self.options = options
        self.folder = tempfile.mkdtemp(prefix="engines-")
        self.number = 0

    def line(self, scenario, device):
        """The command line of a program, and its environment."""
        self.number += 1
        folder = os.path.join(self.folder, f"work{self.number}")
        os.mkdir(folder)
        name, kind = scenario.program.split()
        program = [os.path.join(HERE, "programs", name), kind, str(scenario.steps), folder, *scenario.more.split()]
        env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1", **dict(scenario.env))
        if scenario.python == "ucx":
            env["LD_LIBRARY_PATH"] = os.path.join(self.options.ucx, scenario.more, "libucx", "lib")
            return [sys.executable, *program], env
        if scenario.python == "jax":
            return [os.path.join(self.options.jax, "bin", "python"), *program], env
        if scenario.python in ("megatron", "titan"):
            env["PYTHONPATH"] = getattr(self.options, scenario.python)
        if device == "cpu":
            env["CUDA_VISIBLE_DEVICES"], env["FAKE_CUDA_DEVICES"] = "", "0"
        return [os.path.join(HERE, "..", "pytorch", "run.sh"), self.options.torch, *program], env

    def try_one(self, scenario, device):
        line, env = self.line(scenario, device)
        strandline = self.options.strandline
        if device == "cpu":
            return run_json([strandline, "check", "--json", "--", *line], env, self.folder)
        out = os.path.join(self.folder, f"out{self.number}")
        run_json([strandline, "record", "-o", out, "--", *line], env, self.folder)
        answer = run_json([strandline, "diagnose", "--json", out], env, self.folder)
        shutil.rmtree(out, ignore_errors=True)
        return answer


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--strandline")
    parser.add_argument("--torch")
    parser.add_argument("--jax")
    parser.add_argument("--megatron")
    parser.add_argument("--titan")
    parser.add_argument("--ucx")
    parser.add_argument("--devices", default="cuda,cpu")
    parser.add_argument("--overhead", action="store_true")
    parser.add_argument("--keep")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    options.strandline = options.strandline or built()
    options.jax = options.jax or options.torch and os.path.join(options.torch, "jax")
    bench = Bench(options)
    count = {}
    for s in scenarios.SCENARIOS:
        if options.names and s.name not in options.names:
            continue
        if not getattr(options, s.python):
            print(f"{s.name:18} not run: needs --{s.python}", flush=True)
            continue
        for device in s.devices:
            if device not in options.devices.split(","):
                continue
            began = time.time()
            try:
                doc, done = bench.try_one(s, device)
                word, why = judge(s, doc, done)
            except subprocess.TimeoutExpired as e:
                doc, word, why = None, "WRONG", str(e)[:160]
            count[word] = count.get(word, 0) + 1
            spent = ""
            if options.overhead:
                line, env = bench.line(s, device)
                alone = time.time()
                subprocess.run(line, env=env, stdin=subprocess.DEVNULL, capture_output=True)
                spent = f" ({time.time() - alone:.0f} s alone)"
            print(f"{s.name:18} {device:4} {word:8} {time.time() - began:4.0f} s{spent}  {why}", flush=True)
            keep(options.keep, f"{s.name}-{device}", doc)
    print(", ".join(f"{n} {word}" for word, n in sorted(count.items())))
    return 1 if count.get("WRONG") else 0


if __name__ == "__main__":
    sys.exit(main())
