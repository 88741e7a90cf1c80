#!/usr/bin/env python3
"""Tries strandline on the GPU of this machine, step by step: see run.sh.

Each step is a process of its own with a time limit, and the next one follows whatever becomes of it.
A step yields rows: what was tried, what came of it, and whether that is right (pass, fail, or skipped
with a reason). Programs beside this file are what is watched. The exit status is 1 if a row fails.
"""
import argparse
import concurrent.futures
import glob
import gzip
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

from recordings import requests_of

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
MAX_RECORDINGS = 3_500_000  # bytes of recordings.tar.gz
STEPS = {}


def step(limit):
    """Makes a function a step that may take limit seconds."""
    def add(f):
        STEPS[f.__name__] = (f, limit)
        return f
    return add


class Skipped(Exception):
    """A step that this machine does not allow."""


def passed(what, ok, figure):
    return {"what": what, "figure": str(figure), "verdict": "pass" if ok else "fail"}


def told(what, figure):
    """A figure that is only measured."""
    return {"what": what, "figure": str(figure), "verdict": "measured"}


def last_line(text):
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")[:300]


class Machine:
    """What the steps use: the binary, a folder for each step, and the programs."""

    def __init__(self, binary, work, simulated):
        self.binary, self.work, self.simulated = binary, work, simulated
        self.kept = os.path.join(work, "kept")
        os.makedirs(self.kept, exist_ok=True)
        os.environ["SIMULATED"] = "1" if simulated else "0"

    def keep(self, name, text):
        with open(os.path.join(self.kept, name), "w") as f:
            f.write(text if isinstance(text, str) else json.dumps(text, indent=1))

    def strandline(self, *args, env=None, timeout=120):
        return subprocess.run([self.binary, *map(str, args)], capture_output=True, text=True, timeout=timeout * (5 if self.simulated else 1), env={**os.environ, **(env or {})})

    def document(self, *args, name="", codes=(0, 1), **more):
        """The JSON that a command prints; its error is the step's."""
        done = self.strandline(*args, "--json", **more)
        if name:
            self.keep(name + ".json", done.stdout)
            self.keep(name + ".stderr", done.stderr)
        if done.returncode not in codes:
            raise RuntimeError(f"{args[0]} exits {done.returncode}: {last_line(done.stderr)}")
        return json.loads(done.stdout if done.stdout.startswith("{\n") else done.stdout.splitlines()[-1])

    def python(self, program, *args, env=None, timeout=150):
        done = subprocess.run([sys.executable, os.path.join(HERE, program), *map(str, args)], capture_output=True, text=True, timeout=timeout, env={**os.environ, **(env or {})})
        if done.returncode:
            raise RuntimeError(f"{program} exits {done.returncode}: {last_line(done.stderr)}")
        return done.stdout

    def start(self, program, *args, env=None):
        """A program that runs on."""
        return subprocess.Popen([sys.executable, os.path.join(HERE, program), *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                stderr=open(os.path.join(self.work, program + ".stderr"), "w"), env={**os.environ, **(env or {})})

    def refused(self, what):
        """Why the kernel does not allow BPF, if it does not."""
        checks = self.document("doctor")["checks"]
        trace = next((c for c in checks if c["what"] == "trace"), {"ok": False, "told": "doctor has no check of trace"})
        if not trace["ok"] or "BPF" not in trace["told"]:
            raise Skipped(f"{what}: {trace['told']}")


def ask(p, line=""):
    """The next JSON line of a program, after a line to it."""
    if line:
        p.stdin.write(line + "\n")
        p.stdin.flush()
    text = p.stdout.readline()
    if not text:
        raise RuntimeError(f"the program ended with {p.wait()}")
    return json.loads(text)


def smi(query, kind="gpu"):
    """The rows of nvidia-smi, [] where it is not there."""
    try:
        done = subprocess.run(["nvidia-smi", f"--query-{kind}={query}", "--format=csv,noheader"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [[c.strip() for c in line.split(",")] for line in done.stdout.splitlines() if line.count(",") >= query.count(",")]


def driver_used():
    rows = smi("index,uuid,memory.used,memory.total")
    return int(rows[0][2].split()[0]) * MIB if rows else None


# 1
@step(90)
def facts(m):
    import torch
    free, total = torch.cuda.mem_get_info()
    version = open("/proc/driver/nvidia/version").readline().strip() if os.path.exists("/proc/driver/nvidia/version") else ""
    driver = re.search(r"  (\d+\.[\d.]+)", version)
    yield told("GPU", f"{torch.cuda.get_device_name(0)}, {total / (1 << 30):.1f} GiB, {torch.cuda.device_count()} in all")
    yield told("driver", driver[1] if driver else (smi("driver_version,name") or [["not known"]])[0][0])
    yield told("kernel", f"{platform.release()}, {os.cpu_count()} processors, user {os.getuid()}")
    yield told("PyTorch", f"{torch.__version__}, CUDA {torch.version.cuda}, Python {platform.python_version()}")
    doctor = m.strandline("doctor")
    m.keep("doctor.txt", doctor.stdout + doctor.stderr)
    maps = open("/proc/self/maps").read()
    m.keep("libraries.txt", "\n".join(sorted({line.split()[-1] for line in maps.splitlines() if ".so" in line})))
    m.keep("nvidia-smi.txt", subprocess.run(["nvidia-smi"], capture_output=True, text=True).stdout if shutil.which("nvidia-smi") else "")
    bad = [f"{c['what']}: {c['told']}" for c in m.document("doctor")["checks"] if not c["ok"]]
    yield passed("doctor", not bad, "; ".join(bad) or last_line(doctor.stdout))


# 2
@step(90)
def record(m):
    """Leaks, recorded from inside: the line and the holder."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for rows in pool.map(lambda case: leak(m, *case), (("leak_list.py", "CACHE", ""), ("leak_graph.py", "total", "autograd"))):
            yield from rows


def leak(m, program, holder, kind):
    out = os.path.join(m.work, program[:-3])
    done = m.strandline("record", "-o", out, "--every", "2s", "--", sys.executable, os.path.join(HERE, program))
    yield passed(f"record -- {program}", done.returncode == 0, f"exit {done.returncode}, {len(glob.glob(out + '/*/*.pickle'))} snapshots" + (f": {last_line(done.stderr)}" if done.returncode else ""))
    doc = m.document("diagnose", out, name="diagnose_" + program[:-3])
    shutil.copytree(out, os.path.join(m.kept, program[:-3]))
    leaks = [f for f in doc["findings"] if f["severity"] == "problem" and f["kind"] in ("leak", "autograd-graph")]
    made = next(i for i, line in enumerate(open(os.path.join(HERE, program)), 1) if line.rstrip().endswith("# MADE"))
    places = {(os.path.basename(s.get("file") or ""), s.get("line")) for f in leaks for s in [f.get("site") or {}, *(f.get("sites") or [])]}
    yield passed(f"{program}: line", (program, made) in places, f"{program}:{made}" if (program, made) in places else f"named {sorted(p for p in places if p[0])}, {doc['verdict']}")
    held = [h for f in leaks for h in (f.get("evidence") or {}).get("held_by") or []]
    named = [h.get("path") for h in held if holder in (h.get("path") or "")]
    ok = bool(named) and (not kind or any(h.get("kind") == kind for h in held))
    yield passed(f"{program}: holder", ok, named[0] if named else [h.get("path") for h in held][:3])


# 3
@step(80)
def outside(m):
    """A running process, recorded from outside and by PyTorch at once."""
    m.refused("record --pid")
    inside, out = os.path.join(m.work, "inside.pickle"), os.path.join(m.work, "outside")
    p = m.start("recorded.py", inside, 14)
    p.stdout.readline()
    time.sleep(1)
    ways = m.strandline("doctor", "--pid", p.pid)
    m.keep("doctor_pid.txt", ways.stdout + ways.stderr)
    done = m.strandline("record", "--pid", p.pid, "--duration", "6s", "-o", out)
    m.keep("outside.stderr", done.stderr)
    p.wait()
    found = glob.glob(out + "/**/*.pickle", recursive=True)
    if done.returncode or not found:
        yield passed("record --pid", False, f"exit {done.returncode}: {last_line(done.stderr)}")
        if not found:
            return
    shutil.copy(found[0], os.path.join(m.kept, "outside.pickle"))
    yield from compare(requests_of(inside), requests_of(found[0]))
    doc = m.document("simulate", found[0], name="simulate_outside")
    yield passed("simulate of it", doc["devices"][0]["exact"], difference(doc["devices"][0]))


def compare(inside, seen):
    """Rows on how far two recordings of a loop agree, from where the second begins."""
    if len(seen) < 100:
        yield passed("requests seen", False, len(seen))
        return
    fits = [(-sum(a[:2] == b[:2] for a, b in zip(seen[:200], inside[at:])), abs(e[4] - seen[0][4]), at) for at, e in enumerate(inside) if e[:2] == seen[0][:2]]
    at = min(fits)[2] if fits else 0
    same = sum(a[:2] == b[:2] and -(-a[2] // 512) == -(-b[2] // 512) for a, b in zip(seen, inside[at:]))
    stacks = [(a[3], b[3]) for a, b in zip(seen, inside[at:]) if a[0] == b[0] == "alloc" and b[3]]
    lines = sum(a == b for a, b in stacks)
    yield passed("requests as PyTorch has them", same == len(seen), f"{same:,} of {len(seen):,}")
    yield passed("Python stacks of them", stacks and lines == len(stacks), f"{lines:,} of {len(stacks):,}")


# 4
CASES = {
    "defaults": ("", ()),
    "expandable": ("expandable_segments:True", ()),
    "max_split": ("max_split_size_mb:64", ()),
    "collecting": ("garbage_collection_threshold:0.6", (3000,)),
    "rounding": ("roundup_power2_divisions:4", ()),
    "limited": ("", (1500,)),
    "expandable_limited": ("expandable_segments:True", (1500,)),
    "pool": ("", (0, "pool")),
    "expandable_pool": ("expandable_segments:True", (0, "pool")),
    "graph": ("", (0, "graph")),
    "expandable_graph": ("expandable_segments:True", (0, "graph")),
}


def difference(d):
    if not d["exact"]:
        return json.dumps(d["first_difference"])[:300]
    calls, segments = d["driver_calls"], d["segments"]
    return f"{d['events']:,} events, {calls['reproduced']:,} of {calls['recorded']:,} driver calls, {segments['reproduced']} of {segments['recorded']} segments"


def replayed(m, name, path):
    """A row: a snapshot simulated under its own settings, against memory_stats() of its moment."""
    doc = m.document("simulate", path + ".pickle", name="simulate_" + name)
    with open(path + ".json") as f:
        said = json.load(f)
    stats, d = said["memory_stats"], doc["devices"][0]
    wanted = {"peak_reserved_bytes": stats["reserved_bytes.all.peak"], "peak_allocated_bytes": stats["allocated_bytes.all.peak"], "alloc_retries": stats["num_alloc_retries"], "ooms": stats["num_ooms"]}
    wrong = [f"{k} {d[k]}, not {v}" for k, v in wanted.items() if d[k] != v]
    whole = d["driver_calls"]["recorded"] == d["driver_calls"]["reproduced"] and d["segments"]["recorded"] == d["segments"]["reproduced"]
    yield passed(f"replay: {name}", d["exact"] and whole and not wrong, "; ".join([difference(d), *wrong]))


@step(150)
def replay(m):
    """Requests under many settings, replayed: driver calls, final segments, peaks."""
    def run(case):
        name, (conf, more) = case
        path = os.path.join(m.work, name)
        m.python("allocations.py", path, 7, 1500, *(more or (0,)), env={"PYTORCH_CUDA_ALLOC_CONF": conf})
        for ending in (".pickle", ".json"):
            shutil.copy(path + ending, os.path.join(m.kept, "replay_" + name + ending))
        return list(replayed(m, name, path))

    def safely(case):
        try:
            return run(case)
        except Exception as e:
            return [passed(f"replay: {case[0]}", False, e)]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for rows in pool.map(safely, CASES.items()):
            yield from rows


# 5
@step(80)
def trace(m):
    """Memory that is taken from the driver while a process runs."""
    m.refused("trace --gpu")
    p = m.start("holding.py", 100, 50, 0)
    before = ask(p)
    t = subprocess.Popen([m.binary, "trace", "--gpu", "--json", "--pid", str(p.pid), "--duration", "14s"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(4)
    for _ in range(5):
        ask(p, "driver 6")
        time.sleep(0.6)
    ask(p, "tensor 400")
    after = ask(p, "pinned 2")
    out, err = t.communicate(timeout=60)
    p.stdin.close()
    m.keep("trace_gpu.json", out)
    m.keep("trace_gpu.stderr", err)
    if t.returncode not in (0, 1, 125):
        raise RuntimeError(f"trace --gpu exits {t.returncode}: {last_line(err)}")
    gpu = json.loads(out)["gpu"]
    reserved = after["allocated"] + after["cached"] - before["allocated"] - before["cached"]
    wanted = after["driver"] + reserved
    owners = "; ".join(f"{o['owner']} {o['memory']} {o['live_bytes'] / MIB:.0f} MiB" for o in gpu["owners"])
    yield passed("device memory taken since", gpu["live_bytes"] == wanted, f"{gpu['live_bytes'] / MIB:.0f} MiB of {wanted / MIB:.0f} MiB: {owners}")
    yield passed("pinned memory taken since", gpu["pinned_bytes"] >= after["pinned"], f"{gpu['pinned_bytes'] / MIB:.0f} MiB of {after['pinned'] / MIB:.0f} MiB")
    kinds = [f["kind"] for f in json.loads(out)["findings"]]
    yield told("findings", ", ".join(kinds) or "none")
    for d in gpu["devices"]:
        yield told("parts of the device", "; ".join(f"{x['part']} {x['bytes'] / MIB:.0f} MiB" for x in d["parts"]) + f"; used {(d['used_bytes'] or 0) / MIB:.0f} MiB; " + "; ".join(d["notes"]))


# 6
@step(60)
def watch(m):
    """Who holds the device, by the driver's library and PyTorch's counters from outside."""
    p = m.start("holding.py", 300, 200, 2)
    ask(p)
    now = ask(p, "driver 16")
    listed = {int(r[1]): int(r[2].split()[0]) * MIB for r in smi("gpu_uuid,pid,used_memory", "compute-apps") if r[2].split()[0].isdigit()}
    smi_used = driver_used()
    doc = m.document("watch", "--pid", p.pid, "--duration", "4s", "--interval", "500ms", name="watch")
    everyone = m.document("watch", "--duration", "3s", "--interval", "500ms", name="watch_all")
    p.stdin.close()
    m.keep("nvidia-smi-processes.txt", json.dumps(listed))
    if not doc["devices"]:
        raise Skipped(f"no device: {doc.get('devices_note')}")
    device = doc["devices"][0]
    if smi_used is not None:
        yield passed("used of the device, against nvidia-smi", abs(device["used_bytes"] - smi_used) < 2 * MIB, f"{device['used_bytes'] / MIB:.0f} MiB, {smi_used / MIB:.0f} MiB")
    # cudaMemGetInfo counts what the driver keeps for itself as used.
    reserved = device.get("reserved_bytes") or 0
    yield told("used of the device, against cudaMemGetInfo", f"{device['used_bytes'] / MIB:.0f} MiB and {reserved / MIB:.0f} MiB reserved, {now['device_used'] / MIB:.0f} MiB")
    share = next((d for q in doc["processes"] if q["pid"] == p.pid for d in q["devices"]), None)
    if share is None:
        yield passed("the process on the device", False, f"not listed; nvidia-smi lists {listed}; the driver lists {device.get('processes')}")
        return
    yield passed("allocated and cached, read from outside", (share["allocated_bytes"], share["cached_bytes"]) == (now["allocated"], now["cached"]),
                 f"{share['allocated_bytes']} and {share['cached_bytes']}, PyTorch says {now['allocated']} and {now['cached']}")
    if p.pid in listed:
        yield passed("the process, against nvidia-smi", abs((share["used_bytes"] or 0) - listed[p.pid]) < 2 * MIB, f"{(share['used_bytes'] or 0) / MIB:.0f} MiB, {listed[p.pid] / MIB:.0f} MiB")
    else:
        yield told("the process, against nvidia-smi", f"{share['used_bytes']}; nvidia-smi lists {listed}")
    other = share["other_bytes"]
    yield passed("other: the driver's 64 MiB and the context", other is not None and other >= now["driver"], f"{(other or 0) / MIB:.0f} MiB")
    yield passed("the process is found without --pid", any(q["pid"] == p.pid for q in everyone["processes"]), f"{len(everyone['processes'])} processes")


@step(60)
def purposes(m):
    """Weights, gradients and optimizer state, as PyTorch's own objects have them."""
    path = os.path.join(m.work, "purposes.pickle")
    wanted = json.loads(last_line(m.python("purposes.py", path)))
    doc = m.document("diagnose", path, name="purposes")
    seen = next((f["evidence"]["at_end"]["by_purpose"] for f in doc["findings"] if "by_purpose" in ((f.get("evidence") or {}).get("at_end") or {})), {})
    for kind, n in wanted.items():
        got = seen.get(kind, 0)
        yield passed(f"bytes of {kind}", n <= got <= 1.01 * n + MIB, f"{got:,}, PyTorch has {n:,}")


# 7
def pause(m, mode):
    module = os.path.join(m.work, "module_" + mode)
    done = m.strandline("record", "--module", module)
    if done.returncode:
        raise RuntimeError(last_line(done.stderr))
    env = {"PYTHONPATH": module + ":" + os.environ.get("PYTHONPATH", ""), "STRANDLINE_MEM_LOG": os.path.join(m.work, "log_" + mode)}
    os.makedirs(env["STRANDLINE_MEM_LOG"])
    if mode == "preload":
        env["LD_PRELOAD"] = os.path.join(module, "strandline", "libstrandline-mem.so")
    p = m.start("pausing.py", mode, env=env)
    while True:
        try:
            what, ok, figure = ask(p)
        except RuntimeError as e:
            raise RuntimeError(f"{e}: {last_line(open(os.path.join(m.work, 'pausing.py.stderr')).read())}")
        if what == "ready":
            break
        yield passed(what, ok, figure)

    def used():
        return ask(p, "used")[2]

    status = m.document("mem", "status", "--pid", p.pid, name=f"mem_status_{mode}")
    held = sum(t["held_bytes"] for t in status["tags"])
    before = used()
    paused = m.document("mem", "pause", "--pid", p.pid, name=f"mem_pause_{mode}")
    during = used()
    m.document("mem", "resume", "--pid", p.pid, name=f"mem_resume_{mode}")
    after = used()
    equal = ask(p, "check")[1]
    p.stdin.close()
    p.wait(20)
    stated = sum(d.get("released_bytes") or 0 for d in paused["devices"])
    yield passed("mem pause, by cudaMemGetInfo", before - during == held and after == before, f"{(before - during) / MIB:.0f} MiB of {held / MIB:.0f} MiB, stated {stated / MIB:.0f} MiB, {paused.get('seconds', 0):.2f} s")
    yield passed("mem resume, contents", equal, "equal")
    for log in glob.glob(env["STRANDLINE_MEM_LOG"] + "/*"):
        shutil.copy(log, os.path.join(m.kept, f"{mode}.pausable"))


@step(70)
def pause_torch(m):
    """Pausable memory through a pool of PyTorch's allocator."""
    yield from pause(m, "torch")


@step(70)
def pause_preload(m):
    """Pausable memory with the library preloaded."""
    yield from pause(m, "preload")


# 8
def levels_of(pid):
    """Resident kB of a process by what /proc/PID/status says."""
    return {k: int(v.split()[0]) * 1024 for k, v in (line.split(":", 1) for line in open(f"/proc/{pid}/status")) if k in ("RssAnon", "RssFile", "RssShmem", "VmPin", "VmLck", "VmRSS")}


BUFFERS = 19


@step(70)
def pinned(m):
    """Pinned host memory that grows: watched from outside, and traced."""
    p = m.start("holding.py", 10, 0, 2)
    ask(p)
    before = levels_of(p.pid)
    command = [m.binary, "trace", "--json", "--pid", str(p.pid), "--duration", "14s"]
    t = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    w = subprocess.Popen([m.binary, "watch", "--json", "--pid", str(p.pid), "--duration", "13s", "--interval", "500ms"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    time.sleep(2)
    for _ in range(BUFFERS):
        ask(p, "pinned 1")
        time.sleep(0.55)  # until the trace is nearly over
    after = levels_of(p.pid)
    shutil.copy(f"/proc/{p.pid}/maps", os.path.join(m.kept, "pinned.maps"))
    watched = json.loads(w.communicate(timeout=60)[0].splitlines()[-1])
    out, err = t.communicate(timeout=60)
    p.stdin.close()
    m.keep("pinned_watch.json", watched)
    m.keep("pinned_trace.json", out)
    m.keep("pinned_trace.stderr", err)
    m.keep("pinned_levels.json", {"before": before, "after": after})
    yield told("resident memory grew by", "; ".join(f"{k} {(after[k] - before[k]) / MIB:.0f} MiB" for k in after) + f", {BUFFERS * 64} MiB pinned")
    host = next((q["host"] for q in watched["processes"] if q["pid"] == p.pid), {})
    grown = sum(after[k] - before[k] for k in ("RssAnon", "RssFile", "RssShmem"))
    yield passed("watch: host memory", sum(host.get(k) or 0 for k in ("anonymous_bytes", "file_bytes", "shared_bytes")) >= BUFFERS * 64 * MIB, {k: v for k, v in host.items() if v})
    yield told("watch: findings", "; ".join(f["severity"] + ": " + f["title"] for f in watched["findings"])[:300] or "none")
    if t.returncode not in (0, 1, 125):
        yield passed("trace", False, f"exit {t.returncode}: {last_line(err)}")
        return
    findings = json.loads(out)["findings"]
    named = "; ".join(f["severity"] + " " + f["kind"] + ": " + f["title"] for f in findings)[:400]
    yield passed("trace: the line that pins", grown > 0 and any(f["severity"] == "problem" and "holding.py" in json.dumps(f) for f in findings), named or "none")


# 9
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 12,
    "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 32000, "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}
BATCH, TOKENS = 4, 2048


@step(100)
def plan(m):
    """A training step, planned and measured."""
    try:
        import transformers
    except ImportError as e:
        raise Skipped(f"plan train: {e}")
    folder = os.path.join(m.work, "model")
    os.makedirs(folder)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(CONFIG, f)
    setup = ["--model", folder, "--gpu", "H100", "--gpus", 1, "--batch", BATCH, "--seq", TOKENS, "--checkpointing", "none"]
    for trainer in ("fsdp", "ddp"):
        try:
            planned = m.document("plan", "train", *setup, "--trainer", trainer, name="plan_" + trainer)
            seen = json.loads(last_line(m.python("training.py", folder, trainer, BATCH, TOKENS)))
        except Exception as e:
            yield passed(f"plan train --trainer {trainer}", False, e)
            continue
        m.keep(f"plan_{trainer}_measured.json", seen)
        low, high = planned["peak"]["low_bytes"], planned["peak"]["high_bytes"]
        off = 100 * ((low + high) / 2 - seen["reserved"]) / seen["reserved"]
        inside = low <= seen["reserved"] and seen["allocated"] <= high
        yield passed(f"plan train --trainer {trainer}", inside, f"planned {low / MIB:,.0f}-{high / MIB:,.0f} MiB; measured {seen['allocated'] / MIB:,.0f} MiB allocated, "
                     f"{seen['reserved'] / MIB:,.0f} MiB reserved: middle {off:+.1f} % of it; {seen['parameters'] / 1e6:.0f}M parameters, transformers {transformers.__version__}")
        yield told(f"{trainer}: outside PyTorch", f"planned {planned['outside']['low_bytes'] / MIB:.0f}-{planned['outside']['high_bytes'] / MIB:.0f} MiB; device used {seen['device_used'] / MIB:,.0f} MiB")
        snapshot = os.path.join(folder, trainer)
        yield from replayed(m, "training_" + trainer, snapshot)
        checked = m.document("plan", "train", *setup, "--trainer", trainer, "--check", snapshot + ".pickle", name="check_" + trainer)
        yield told(f"{trainer}: plan train --check", "; ".join(f"{r['component']} {r['observed'] / MIB:,.0f} of {r['planned'][0] / MIB:,.0f}-{r['planned'][1] / MIB:,.0f} MiB" for r in checked["rows"] if r["planned"]))
        if os.path.getsize(snapshot + ".pickle") < 20 * MIB:
            shutil.copy(snapshot + ".pickle", os.path.join(m.kept, f"training_{trainer}.pickle"))


# 10
@step(100)
def cost(m):
    """What recording costs."""
    r = json.loads(last_line(m.python("costing.py", "requests")))
    yield told("a request and its release, 9 frames", f"{r['off']:.0f} ns; {r['on']:.0f} ns with PyTorch's history ({r['on'] - r['off']:+.0f} ns)")
    alone = json.loads(last_line(m.python("costing.py", "steps")))
    done = m.strandline("record", "-q", "-o", os.path.join(m.work, "steps"), "--", sys.executable, os.path.join(HERE, "costing.py"), "steps")
    recorded = json.loads(last_line(done.stdout))
    change = 100 * (recorded["median"] - alone["median"]) / alone["median"]
    yield told("a training step, 16 layers", f"{alone['median']:.0f} us; {recorded['median']:.0f} us under `record --` ({change:+.1f} %)")
    m.refused("the cost of record --pid")
    p = m.start("costing.py", "loop", 11)
    p.stdout.readline()
    time.sleep(2)
    done = m.strandline("record", "--pid", p.pid, "--duration", "5s", "-o", os.path.join(m.work, "loop"))
    costs = [json.loads(line) for line in p.stdout]
    p.wait()
    if done.returncode not in (0, 3):
        raise RuntimeError(f"record --pid exits {done.returncode}: {last_line(done.stderr)}")
    yield told("the same loop under record --pid", f"{min(costs):.0f} ns alone, {max(costs[4:-4]):.0f} ns recorded; exit {done.returncode}")
    m.keep("cost_outside.stderr", done.stderr)


def one(m, name):
    """Runs a step and prints its rows, a line of JSON each."""
    try:
        for row in STEPS[name][0](m):
            print("ROW " + json.dumps(row), flush=True)
    except Skipped as e:
        print("ROW " + json.dumps({"what": "the step", "figure": str(e), "verdict": "skipped"}), flush=True)
    except Exception as e:
        print("ROW " + json.dumps(passed("the step", False, f"{type(e).__name__}: {e}")), flush=True)
        raise


def run_step(args, work, name, left):
    """The rows of a step, which is ended when its time is over, or the left seconds are."""
    limit = int(min(left, STEPS[name][1] * (5 if args.simulated else 1)))  # simulated, it shares processors with others
    if limit < 10:
        yield {"step": name, "what": "the step", "figure": "no time is left", "verdict": "skipped"}
        return
    command = [sys.executable, os.path.abspath(__file__), "--step", name, "--work", work, "--strandline", args.strandline] + ["--simulated"] * args.simulated
    log = open(os.path.join(work, name + ".log"), "w")
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(p.pid, signal.SIGKILL))
    signal.alarm(limit)
    began, rows = time.monotonic(), []
    for line in p.stdout:
        if line.startswith("ROW "):
            rows.append({"step": name, **json.loads(line[4:])})
            yield rows[-1]
    status = p.wait()
    signal.alarm(0)
    if status == -signal.SIGKILL:
        yield {"step": name, "what": "the step", "figure": f"was ended after {limit} s", "verdict": "fail"}
    elif not rows:
        yield {"step": name, "what": "the step", "figure": f"exit {status}, no row", "verdict": "fail"}
    yield {"step": name, "what": "seconds", "figure": f"{time.monotonic() - began:.1f}", "verdict": "measured"}


def pack(kept, path):
    """What was kept, the smallest first, while there is room."""
    files = sorted((os.path.getsize(os.path.join(d, f)), os.path.join(d, f)) for d, _, names in os.walk(kept) for f in names)
    room = MAX_RECORDINGS
    with tarfile.open(path, "w:gz") as tar:
        for _, file in files:
            with open(file, "rb") as f:
                size = len(gzip.compress(f.read()))
            if size <= room:
                tar.add(file, os.path.relpath(file, kept))
                room -= size


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strandline", default=os.environ.get("STRANDLINE", "strandline"))
    parser.add_argument("--out", default=os.environ.get("OUT", "out"))
    parser.add_argument("--simulated", action="store_true", help="the device is simulated, and computes nothing")
    parser.add_argument("--seconds", type=int, default=450, help="for all steps together (default 450)")
    parser.add_argument("--steps", help="only these, separated by commas")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.strandline = os.path.abspath(shutil.which(args.strandline) or args.strandline)
    if args.step:
        one(Machine(args.strandline, args.work, args.simulated), args.step)
        return 0
    os.makedirs(args.out, exist_ok=True)
    rows, end = [], time.monotonic() + args.seconds
    with tempfile.TemporaryDirectory() as work, open(os.path.join(args.out, "results.tsv"), "w") as table:
        for name in args.steps.split(",") if args.steps else STEPS:
            for row in run_step(args, work, name, end - time.monotonic()):
                rows.append(row)
                line = [row[k].replace("\t", " ").replace("\n", " ") for k in ("step", "what", "verdict", "figure")]
                print(f"{line[0]:14}{line[2]:9}{line[1]:46} {line[3]}", flush=True)
                print(*line, sep="\t", file=table, flush=True)
            with open(os.path.join(args.out, "results.json"), "w") as f:
                json.dump(rows, f, indent=1)
            pack(os.path.join(work, "kept"), os.path.join(args.out, "recordings.tar.gz"))
            with tarfile.open(os.path.join(args.out, "logs.tar.gz"), "w:gz") as tar:
                for log in glob.glob(work + "/*.log") + glob.glob(work + "/*.stderr"):
                    tar.add(log, os.path.basename(log))
    print(", ".join(f"{sum(r['verdict'] == v for r in rows)} {v}" for v in ("pass", "fail", "skipped")))
    return int(any(r["verdict"] == "fail" for r in rows))


if __name__ == "__main__":
    sys.exit(main())
