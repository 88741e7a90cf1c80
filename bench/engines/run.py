#!/usr/bin/env python3
"""Runs programs on real frameworks under strandline, and prints a table.

    bench/engines/run.py [OPTIONS] [NAME...]   # the scenarios of that name, or all

    --strandline PATH  the program to try (default: built from this checkout)
    --torch DIR        PyTorch and the frameworks, as setup.sh leaves them
    --python313 DIR    PyTorch under Python 3.13: `PYTHON=python3.13 bench/pytorch/setup.sh DIR 2.11`
    --ucx DIR          releases of UCX: `unzip -d DIR/1.22.0` of the wheel libucx-cu12, and others
    --nixl DIR         the same of nixl-cu12: `pip install --no-deps --target DIR/1.0.0 nixl-cu12==1.0.0 numpy`
    --megatron DIR     `pip install --no-deps --target DIR megatron-core`, beside --torch
    --titan DIR        the same of torchtitan 0.2.2, spmd_types, tyro, tensorboard and what they need
    --jax DIR          a virtual environment with JAX (default: jax in the folder of --torch)
    --devices LIST     cuda (the rig's), cpu (default: both)
    --overhead         also run each program without strandline
    --keep DIR         write each answer there
    --judge DIR        judge answers that were kept, and run nothing

On a device `record` and `diagnose` are tried, on the CPU `check`. An answer is right if the first
screen names the marked line or holder in each problem and no other line of the program, and there is
a problem if it leaks. A clean program is `ok`. The program must end as it does alone, after all its
steps, and these must be noticed. The exit status is 1 if an answer is wrong.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import scenarios
from screen import called_in, named_in, screen

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cases"))
from run import built, findings_of, keep, run_json  # noqa: E402


def marks(program):
    """The file of a program, and the lines that its kind leaks at or is held at."""
    name, kind = program.split()[:2]
    with open(os.path.join(HERE, "programs", name)) as f:
        return name, [i for i, text in enumerate(f, 1) if kind in (re.findall(r"# (?:LINE|HOLDS) (.*)", text) or [""])[0].split()]


def judge(scenario, got):
    """Whether an answer is right, unknown or WRONG, and why."""
    doc, optimized = got["doc"], 0
    if got["status"] != 0 or scenario.steps and [a == b for a, b, _ in got["steps"]] != [True]:
        return "WRONG", f"the program ended with status {got['status']}, after {got['steps']} steps: " + last_line(got["errors"])
    if doc is None or "error" in doc:
        return "WRONG", "no document: " + (doc or {}).get("error", last_line(got["errors"]))[:160]
    for _, _, optimized in got["steps"]:
        if optimized and got["noticed"] != optimized:
            return "WRONG", f"noticed {got['noticed']} of {optimized} steps"
    problems = [f for f in findings_of(doc) if f["severity"] == "problem"]
    file, lines = got["marks"]
    named, silent = set(), not scenario.says
    for f in problems:
        here = named_in(f, file) or (set() if scenario.says else called_in(f, file))
        if not scenario.leak or here - set(lines) or scenario.says and not re.search(scenario.says, screen(f)):
            return "WRONG", f["kind"] + ": " + f["title"][:160]
        by_path = bool(scenario.holder) and re.search(scenario.holder, screen(f)) is not None
        if f.get("site") and not here and not scenario.says and not by_path:
            return "WRONG", "no line of the program: " + f["title"][:140]
        named |= here
        silent = silent and not here and not by_path
    said = [f"{optimized} steps"] * bool(optimized) + [doc.get("verdict", "no verdict")]
    if problems and silent:
        return "unknown", "no line: " + problems[0]["title"][:150]
    if problems:
        paths = [h["path"] for f in problems for h in holders(f)]
        said[-1] = problems[0]["kind"] + "".join(f", line {n}" for n in sorted(named)) + (" held by " + paths[0] if paths else "")
    elif scenario.leak or said[-1] != "ok":
        missing = [m for run in doc.get("runs") or [] for m in run.get("missing") or []]
        return ("unknown" if doc.get("verdict", "unknown") == "unknown" else "WRONG"), (missing or ["no problem: " + said[-1]])[-1][:160]
    return "right", ", ".join(said)


def last_line(text):
    return (text.strip().splitlines() or ["nothing said"])[-1][:160]


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
        if scenario.python == "nixl":
            env["PYTHONPATH"] = os.path.join(self.options.nixl, scenario.more)
            return [sys.executable, *program], env
        if scenario.python == "jax":
            return [os.path.join(self.options.jax, "bin", "python"), *program], env
        if scenario.python in ("megatron", "titan"):
            env["PYTHONPATH"] = getattr(self.options, scenario.python)
        if device == "cpu":
            env["CUDA_VISIBLE_DEVICES"], env["FAKE_CUDA_DEVICES"] = "", "0"
        torch = self.options.python313 if scenario.python == "python313" else self.options.torch
        return [os.path.join(HERE, "..", "pytorch", "run.sh"), torch, *program], env

    def try_one(self, scenario, device):
        """What a scenario has left to judge."""
        began, line, env = time.time(), *self.line(scenario, device)
        try:
            got = self.answer(scenario, device, line, env)
        except subprocess.TimeoutExpired as e:
            got = answer({"error": str(e)}, None)
        got.update(seconds=time.time() - began, marks=marks(scenario.program))
        if self.options.overhead or got["status"] != 0:  # if it does not run without strandline either, that is no answer
            began, alone = time.time(), run(self.line(scenario, device))
            got.update(alone=time.time() - began, failed=alone.returncode and last_line(alone.stderr))
        return got

    def answer(self, scenario, device, line, env):
        def ask(*arguments):
            return run_json([self.options.strandline, *arguments], env, self.folder)
        if scenario.files:
            ran = run((line, env))
            return answer(ask("diagnose", "--json", os.path.join(self.folder, f"work{self.number}"))[0], ran, ran.returncode)
        if device == "cpu":
            doc, ran = ask("check", "--json", "--", *line)
            judged = (doc.get("runs") or [{}])[0] if doc else {}
            return answer(doc, ran, judged.get("exit_status"), judged.get("steps"))
        out = os.path.join(self.options.keep or self.folder, scenario.name + "-recording")
        shutil.rmtree(out, ignore_errors=True)
        ran = ask("record", "-o", out, "--", *line)[1]
        return answer(ask("diagnose", "--json", out)[0], ran, ran.returncode, noticed_in(out))


def run(program):
    return subprocess.run(program[0], env=program[1], stdin=subprocess.DEVNULL, capture_output=True, text=True)


def answer(doc, ran, status=None, noticed=None):
    """A document, how the program ended, the steps that it says it ran and those that were noticed."""
    output = ran.stdout + "\n" + ran.stderr if ran else ""
    steps = [[int(n) for n in line] for line in re.findall(r"^steps (\d+) of (\d+), (\d+) of an optimizer$", output, re.M)]
    return {"doc": doc, "status": status, "steps": steps, "noticed": noticed, "errors": output[-2000:]}


def noticed_in(recording):
    """The steps that the recorder noticed."""
    with open(os.path.join(recording, "strandline.json")) as f:
        return max((p.get("steps", 0) for p in json.load(f)["processes"]), default=0)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--strandline")
    parser.add_argument("--torch")
    parser.add_argument("--python313")
    parser.add_argument("--jax")
    parser.add_argument("--megatron")
    parser.add_argument("--titan")
    parser.add_argument("--ucx")
    parser.add_argument("--nixl")
    parser.add_argument("--devices", default="cuda,cpu")
    parser.add_argument("--overhead", action="store_true")
    parser.add_argument("--keep")
    parser.add_argument("--judge")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    options.strandline = options.judge or options.strandline or built()
    options.jax = options.jax or options.torch and os.path.join(options.torch, "jax")
    bench = Bench(options)
    count = {}
    for s in scenarios.SCENARIOS:
        if options.names and s.name not in options.names:
            continue
        for device, why in s.left.items():
            print(f"{s.name:18} {device:4} left out: {why}", flush=True)
        for device in s.devices:
            kept = os.path.join(options.judge or options.keep or bench.folder, f"{s.name}-{device}.json")
            if device not in options.devices.split(",") or options.judge and not os.path.exists(kept):
                continue
            if not options.judge and not getattr(options, s.python):
                print(f"{s.name:18} {device:4} not run: needs --{s.python}", flush=True)
                continue
            if not options.judge:
                keep(os.path.dirname(kept), f"{s.name}-{device}", bench.try_one(s, device))
            with open(kept) as f:
                got = json.load(f)
            if got.get("failed"):
                print(f"{s.name:18} {device:4} not run: {got['failed']}", flush=True)
                continue
            word, why = judge(s, got)
            count[word] = count.get(word, 0) + 1
            alone = f" ({got['alone']:.0f} s alone)" if "alone" in got else ""
            print(f"{s.name:18} {device:4} {word:8} {got['seconds']:4.0f} s{alone}  {why}", flush=True)
    print(", ".join(f"{n} {word}" for word, n in sorted(count.items())))
    return 1 if count.get("WRONG") else 0


if __name__ == "__main__":
    sys.exit(main())
