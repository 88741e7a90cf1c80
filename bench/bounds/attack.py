#!/usr/bin/env python3
"""Attack strandline with folders, files, answers and names that no honest program makes.

    attack.py STRANDLINE [WORD…] [--keep DIR]

Each try makes files in a folder of its own, or serves answers, and runs one command. It may take
2 s of processor time and 500 MB, and 100 ns and 30 bytes more for each byte and 0.2 ms for each
file; it prints 5 MB, does not crash, writes no control character, and ends within two minutes. Each row has the seconds of processor time, MB, kB printed, exit status, and the first line.
With words, only tries run whose names contain one of them.
"""

import argparse
import base64
import bz2
import gzip
import http.server
import json
import lzma
import os
import pickle
import random
import re
import shutil
import socket
import socketserver
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib

TRIES = []
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.00 GiB of which 1.00 GiB is free. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.\n"
SNAPSHOT = {"segments": [{"device": 0, "address": 1 << 44, "total_size": 2 << 20, "allocated_size": 512, "active_size": 512, "stream": 0, "segment_type": "small", "blocks": [{"address": 1 << 44, "size": 512, "requested_size": 500, "state": "active_allocated", "frames": []}, {"address": (1 << 44) + 512, "size": (2 << 20) - 512, "state": "inactive"}]}], "device_traces": [[]]}
DIAGNOSE, JSON, INSPECT, VIEW, COMPARE = "diagnose {d}", "diagnose --json {d}", "inspect {d}", "view --html {d}/../page.html {d}", "compare {d} {d}"


def tries(name, *commands):
    """Register a function that fills a folder, with the commands that are run on it."""

    def add(make):
        for c in commands:
            TRIES.append((f"{name}: {c.split()[0]}" + (" --json" if "--json" in c else ""), make, c))
        return make

    return add


def put(d, name, data):
    path = os.path.join(d, name) if isinstance(name, str) else os.path.join(os.fsencode(d), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data.encode() if isinstance(data, str) else data)


def one(name, data, *commands):
    """Register a try of one file: {f} of a command is its path."""
    ext = {"json": ".json", "log": ".log", "csv": ".csv"}.get(name.split()[0], "")
    make = lambda d: put(d, "f" + ext, data() if callable(data) else data)
    tries(name, *(c.replace("{d}", "{d}/f" + ext).replace("{d}/f" + ext + "/..", "{d}/..") for c in commands or (DIAGNOSE,)))(make)


# Folders.
@tries("links in a loop", DIAGNOSE, VIEW)
def _(d):
    for i in range(50):
        os.symlink(".", os.path.join(d, f"l{i}"))
    os.symlink("b.log", os.path.join(d, "a.log"))
    os.symlink("a.log", os.path.join(d, "b.log"))


@tries("links to parents, roots and devices", DIAGNOSE, JSON)
def _(d):
    for i, to in enumerate(["..", "/", "/proc", "/sys", "/dev/zero", "/dev/random", "/dev/stdin", "/dev/tty", "/proc/self/mem", "/proc/kmsg", "/proc/self/pagemap", "/dev/full"]):
        os.symlink(to, os.path.join(d, f"x{i}.log"))
        os.symlink(to, os.path.join(d, f"x{i}.pickle"))


@tries("pipes and sockets", DIAGNOSE, VIEW, COMPARE)
def _(d):
    for n in ("a.log", "b.pickle", "strandline.json", "nccl_trace_rank_0", "c.sqlite", "rank0.log"):
        os.mkfifo(os.path.join(d, n))
    s = socket.socket(socket.AF_UNIX)
    s.bind(os.path.join(d, "s.log"))


@tries("devices as files", DIAGNOSE)
def _(d):
    for n, minor in (("zero.log", 5), ("null.pickle", 3), ("full.csv", 7), ("random", 8)):
        try:
            os.mknod(os.path.join(d, n), 0o600 | 0o020000, os.makedev(1, minor))
        except OSError:
            pass


@tries("names that are not UTF-8", DIAGNOSE, JSON, VIEW, COMPARE)
def _(d):
    for n in (b"\xff\xfe.log", b"a\x1b[31mred\x1b]0;t\x07.log", b"new\nline.log", b"-rf.log", b"\xe2\x80\xae.log", b"<img src=x onerror=alert(1)>.log", b"a\rb.log", b"%s%n.log", b"'\"`$(id).log", b"\xc2\x9b31m.log"):
        put(d, n, OOM)


@tries("60,000 empty files", DIAGNOSE, VIEW)
def _(d):
    for i in range(60_000):
        put(d, f"{i % 100}/f{i}.log", "")


@tries("60,000 logs", DIAGNOSE, JSON)
def _(d):
    for i in range(60_000):
        put(d, f"{i % 100}/rank{i}.log", f"[rank{i}]: {OOM}")


@tries("60,000 sources", DIAGNOSE)
def _(d):
    for i in range(60_000):
        put(d, f"{i % 300}/f{i}.py", "x = 1\n")


@tries("5,000 snapshots", DIAGNOSE, VIEW)
def _(d):
    for i in range(5000):
        put(d, f"rank{i % 1000}-step-{i}.json", json.dumps(SNAPSHOT))


@tries("a folder 700 deep", DIAGNOSE)
def _(d):
    sys.setrecursionlimit(10_000)
    at = os.open(d, os.O_RDONLY)
    for _ in range(700):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    f = os.open("a.log", os.O_CREAT | os.O_WRONLY, dir_fd=at)
    os.write(f, OOM.encode())
    os.close(f)
    os.close(at)


@tries("names of 255 bytes", DIAGNOSE, JSON)
def _(d):
    for i in range(500):
        put(d, f"{i:05d}" + "n" * 246 + ".log", OOM)


@tries("a sparse file of 1 TB", DIAGNOSE, "inspect {d}/a.pickle")
def _(d):
    for n in ("a.pickle", "nccl_trace_rank_0"):
        with open(os.path.join(d, n), "wb") as f:
            f.write(b"\x80\x02}q\x00")
            f.truncate(1 << 40)


@tries("a manifest that names others", DIAGNOSE, JSON, COMPARE, VIEW)
def _(d):
    put(d, "a.json", json.dumps(SNAPSHOT))
    files = ["a.json", "../../../etc/passwd", "/etc/shadow", "/dev/zero", "strandline.json", "a.json\x00", "\x1b[2J", "../" * 2000]
    put(d, "strandline.json", json.dumps({"schema": "strandline.record/1", "command": ["\x1b[31m" * 100], "started": "9999-12-31T23:59:59Z", "processes": [{"pid": i, "rank": 1 << 62, "world_size": -1, "dumps": [{"file": f, "time": "0000-01-01T00:00:00Z", "step": (1 << 63) - 1, "devices": [{"device": -1, "reserved_bytes": (1 << 63) - 1}]} for f in files]} for i in range(50)]}))


@tries("manifests in 2,000 folders", DIAGNOSE)
def _(d):
    for i in range(2000):
        put(d, f"{i}/strandline.json", '{"schema":"strandline.record/1","processes":[]}')
        put(d, f"{i}/a.json", json.dumps(SNAPSHOT))


@tries("files that nobody may read", DIAGNOSE)
def _(d):
    put(d, "a.log", OOM)
    os.chmod(os.path.join(d, "a.log"), 0)


@tries("20,000 dumps of a flight recorder", DIAGNOSE, JSON)
def _(d):
    for i in range(20_000):
        put(d, f"nccl_trace_rank_{i}", json.dumps({"version": "2.10", "pg_config": {"0": {"ranks": "[0, 1]"}}, "entries": [{"process_group": ["0", "d"], "collective_seq_id": i, "state": "started", "time_created_ns": i}]}))
    put(d, "rank0.log", "[rank0]: Watchdog caught collective operation timeout\n")


@tries("files that change while they are read", DIAGNOSE, JSON, VIEW)
def _(d):
    put(d, "a.log", OOM * 20_000)
    put(d, "b.json", json.dumps(SNAPSHOT) + " " * 3_000_000)
    stop = time.time() + 4

    def change():
        while time.time() < stop and os.path.isdir(d):
            try:
                for n in ("a.log", "b.json"):
                    with open(os.path.join(d, n), "r+b") as f:
                        f.truncate(random.randrange(1 << 20))
                        f.seek(random.randrange(1 << 20))
                        f.write(os.urandom(999))
                os.rename(os.path.join(d, "a.log"), os.path.join(d, "c.log"))
                os.rename(os.path.join(d, "c.log"), os.path.join(d, "a.log"))
            except OSError:
                pass

    threading.Thread(target=change, name="changes", daemon=True).start()


@tries("a file that grows for ever", "diagnose {d}/a.log")
def _(d):
    put(d, "a.log", OOM)
    stop = time.time() + 5

    def grow():
        with open(os.path.join(d, "a.log"), "ab") as f:
            while time.time() < stop and f.tell() < 1 << 30:
                f.write(b"step 1 loss 2.0\n" * 4000)

    threading.Thread(target=grow, name="changes", daemon=True).start()


# Bombs, in each wrapper.
ZERO = lambda mb: b"\0" * (mb << 20)
for name, pack in {"gzip": lambda b: gzip.compress(b, 9), "xz": lzma.compress, "bz2": bz2.compress, "zlib": lambda b: zlib.compress(b, 9)}.items():
    one(f"{name} of 1 GB of zeros", lambda pack=pack: pack(ZERO(1000)))
    one(f"{name} of 300 MB of lines", lambda pack=pack: pack(b"GPU memory used: 3 MiB\n" * 13_000_000), DIAGNOSE, INSPECT)
    one(f"{name} of a list of 20 M", lambda pack=pack: pack(b"[" + b"0," * 20_000_000 + b"0]"))
    one(f"{name} of 5 M segments", lambda pack=pack: pack(b'{"segments":[' + b"{}," * 5_000_000 + b'{}],"device_traces":[[' + b"{}," * 1_000_000 + b"{}]]}"), DIAGNOSE, VIEW)
one("gzip in gzip 8 times", lambda: __import__("functools").reduce(lambda b, _: gzip.compress(b, 9), range(8), ZERO(500)))
one("gzip of 100,000 members", lambda: gzip.compress(b"a\n") * 100_000)
one("gzip of empty members", lambda: gzip.compress(b"") * 500_000)
one("gzip cut off", lambda: gzip.compress(json.dumps(SNAPSHOT).encode() * 100)[:-300])


def zstd(data):
    return subprocess.run(["zstd", "-q", "-19", "-c", "--long=27"], input=data, stdout=subprocess.PIPE, check=True).stdout


if shutil.which("zstd"):
    one("zstd of 1 GB of zeros", lambda: zstd(ZERO(1000)), DIAGNOSE, INSPECT)
    one("zstd of 5 M segments", lambda: zstd(b'{"segments":[' + b"{}," * 5_000_000 + b"{}]}"), DIAGNOSE, VIEW)
    one("zstd frames of 200,000", lambda: zstd(b"a\n") * 200_000)
one("zstd with a window of 2 GB", lambda: b"\x28\xb5\x2f\xfd\x00\xa8" + b"\x03\x00\x00" * 4000)
one("zstd skippable frames", lambda: struct.pack("<II", 0x184D2A50, 0) * 400_000)
one("zstd skippable of 4 GB", lambda: struct.pack("<II", 0x184D2A5D, 0xFFFFFFFF) + b"strandline")

# JSON.
one("json 2 M deep", lambda: "[" * 2_000_000)
one("json 2 M deep objects", lambda: '{"a":' * 2_000_000)
one("json one key of 30 MB", lambda: json.dumps({"segments": [{"k" * 30_000_000: 1}]}))
one("json 3 M keys", lambda: json.dumps({f"k{i}": 1 for i in range(3_000_000)}), DIAGNOSE, INSPECT)
one("json number of 5 M digits", lambda: '{"segments":[{"total_size":' + "9" * 5_000_000 + "}]}", DIAGNOSE, INSPECT)
one("json escapes", lambda: '{"segments":[],"device_traces":[[{"action":"' + "\\u0000\\ud800" * 2_000_000 + '"}]]}', DIAGNOSE, VIEW)
one("json exponent", lambda: '{"segments":[{"address":1e308,"total_size":1e-400,"blocks":[{"size":1E+18}]}]}', DIAGNOSE, INSPECT, VIEW, "simulate {d}")
one("json the same key", lambda: '{"segments":[' + "],\"segments\":[".join("{}" for _ in range(300_000)) + "]}", DIAGNOSE)
one("json many devices", lambda: json.dumps({"segments": [], "device_traces": [[] for _ in range(2_000_000)]}), DIAGNOSE, VIEW, INSPECT)
one("json device numbers", lambda: json.dumps({"segments": [dict(SNAPSHOT["segments"][0], device=i * 7919, address=i << 30, blocks=[]) for i in range(40_000)], "device_traces": []}), DIAGNOSE, VIEW, INSPECT, "simulate {d}")
one("json streams", lambda: json.dumps({"segments": [dict(SNAPSHOT["segments"][0], stream=i, address=i << 30, blocks=[]) for i in range(60_000)], "device_traces": []}), DIAGNOSE, VIEW, "simulate --search {d}")
one("json overlapping segments", lambda: json.dumps({"segments": [dict(SNAPSHOT["segments"][0], address=1 << 44) for i in range(60_000)], "device_traces": []}), DIAGNOSE, VIEW)
EVENT = {"action": "alloc", "addr": 1 << 44, "size": 512, "stream": 0, "time_us": 1, "frames": []}
one("json frees before allocs", lambda: json.dumps({"segments": [], "device_traces": [[dict(EVENT, action=["free_completed", "free_requested", "segment_free"][i % 3], addr=i) for i in range(200_000)]]}), DIAGNOSE, VIEW, "simulate {d}")
one("json sizes of an exabyte", lambda: json.dumps({"segments": [], "device_traces": [[dict(EVENT, addr=i << 20, size=1 << 60) for i in range(100_000)]]}), DIAGNOSE, "simulate --search {d}", VIEW)
one("json one address", lambda: json.dumps({"segments": [], "device_traces": [[EVENT] * 300_000]}), DIAGNOSE, "simulate {d}", VIEW)
one("json names of megabytes", lambda: json.dumps({"segments": [], "device_traces": [[dict(EVENT, frames=[{"name": "n" * 3_000_000, "filename": "f" * 3_000_000, "line": 1}])] * 5]}), DIAGNOSE, JSON, VIEW, "export --to folded -o {d}/../out {d}")
one("json frames 100,000 deep", lambda: json.dumps({"segments": [], "device_traces": [[dict(EVENT, addr=i << 20, frames=[{"name": f"n{j}", "filename": "f", "line": j} for j in range(100_000)]) for i in range(3)]]}), DIAGNOSE, VIEW, INSPECT)
one("json HTML names", lambda: json.dumps(dict(SNAPSHOT, device_traces=[[dict(EVENT, addr=i << 20, time_us=i, frames=[{"name": "</script><script>alert(1)</script>", "filename": "\x1b[31m\u202e<!--" + "]]>" * 99, "line": -1}]) for i in range(2000)]])), DIAGNOSE, JSON, VIEW)
one("json times of year 9999", lambda: json.dumps(dict(SNAPSHOT, device_traces=[[dict(EVENT, addr=i << 20, time_us=253402300799000000 + (-1) ** i * i * 10**14) for i in range(3000)]], external_annotations=[{"name": f"ProfilerStep#{i * 10**15}", "stage": "START", "device": 0, "time_us": i * 10**14} for i in range(3000)])), DIAGNOSE, VIEW, INSPECT)
one("json annotations", lambda: json.dumps(dict(SNAPSHOT, external_annotations=[{"name": f"{i}" * 20, "stage": ["START", "END"][i % 7 == 0], "device": i % 9, "time_us": -i} for i in range(200_000)])), DIAGNOSE, VIEW)

# Pickles.
one("pickle memo bomb", lambda: b"\x80\x02" + b"]q\x00" + b"".join(b"]q%c(" % (i + 1) + b"h%c" % i * 60 + b"e" for i in range(100)) + b".")
one("pickle marks", lambda: b"\x80\x02" + b"(" * 5_000_000, DIAGNOSE, INSPECT)
one("pickle code", lambda: pickle.dumps({"segments": [eval, os.system]}), DIAGNOSE, INSPECT)
one("pickle long integers", lambda: b"\x80\x02]" + b"\x8b" + struct.pack("<I", 1 << 20) + b"\xff" * (1 << 20) + b"a.", DIAGNOSE, INSPECT)
one("pickle string of 2 GB", lambda: b"\x80\x04\x8d" + struct.pack("<Q", 1 << 62) + b"x" * 99, DIAGNOSE, INSPECT)
one("pickle frame of 16 EB", lambda: b"\x80\x04\x95" + b"\xff" * 8 + pickle.dumps(SNAPSHOT)[2:], DIAGNOSE, INSPECT)
one("pickle itself", lambda: b"\x80\x02}q\x00X\x08\x00\x00\x00segmentsh\x00s.", DIAGNOSE, INSPECT)
one("pickle a list of itself", lambda: b"\x80\x02}q\x00X\x08\x00\x00\x00segments]q\x01(" + b"h\x01" * 100_000 + b"es.", DIAGNOSE, VIEW)
SHARED = lambda: pickle.dumps({"segments": [], "device_traces": [[dict(EVENT, frames=[{"name": "f", "filename": "g", "line": 1}] * 500)] * 20]})
one("pickle shared events", lambda: pickle.dumps((lambda e: {"segments": [], "device_traces": [[e] * 500_000]})(dict(EVENT, frames=[{"name": f"f{i}", "filename": "g", "line": i} for i in range(300)]))), DIAGNOSE, VIEW, "export --to pprof -o {d}/../out {d}")
one("pickle shared segments", lambda: pickle.dumps((lambda s: {"segments": [s] * 300_000, "device_traces": []})(SNAPSHOT["segments"][0])), DIAGNOSE, VIEW)
one("pickle shared traces", lambda: pickle.dumps((lambda t: {"segments": [], "device_traces": [t] * 1000})([EVENT] * 1000)), DIAGNOSE, VIEW, "simulate {d}")

# Pages that hold pickles.
PAGE = b'<html><script>local_files = [{"name": "x", "base64": "%s"}]'
one("page without an end", lambda: b'<html><script>local_files = [{"base64": "' + b"A" * 30_000_000)
one("page of a bomb", lambda: PAGE % base64.b64encode(gzip.compress(ZERO(300))), DIAGNOSE, INSPECT)
one("page in a page", lambda: __import__("functools").reduce(lambda b, _: PAGE % base64.b64encode(b), range(8), pickle.dumps(SNAPSHOT)), DIAGNOSE, INSPECT)
one("page of shared events", lambda: PAGE % base64.b64encode(SHARED()), DIAGNOSE, VIEW)
one("page of what is no base64", lambda: PAGE % (b"\x00\xff%=" * 1_000_000), DIAGNOSE)

# Logs.
one("log one line of 100 MB", lambda: "a" * 100_000_000, DIAGNOSE, INSPECT)
one("log one line with words", lambda: "CUDA out of memory. Tried to allocate " * 1_500_000, DIAGNOSE)
one("log 1 M ranks", lambda: "".join(f"[rank{i}]: RuntimeError: x\n" for i in range(1_000_000)), DIAGNOSE, JSON)
one("log 100,000 ranks merged", lambda: "".join(f"[rank{i}]: {OOM}" for i in range(100_000)), DIAGNOSE, JSON, VIEW)
one("log ranks in turn", lambda: "".join(f"[rank{i % 5000}]: step {i // 5000} loss 1 memory allocated (GB): {i % 70}\n" for i in range(500_000)), DIAGNOSE)
one("log sizes of 1e18", lambda: "".join(OOM.replace("20.00", x).replace("79.00", x) for x in ("1e18", "-5", "999999999999999999999", "0.000", "NaN", "inf", "٣")) * 300, DIAGNOSE, JSON)
one("log times of 9999", lambda: "".join(f"9999-12-31T23:59:59.{i:09d}Z [rank{i % 9}]: {OOM}" for i in range(3000)), DIAGNOSE, JSON)
one("log huge steps", lambda: "".join(f"step {10**18 * (i % 9 + 1)} memory allocated (GB): {i}\n" for i in range(30_000)), DIAGNOSE)
one("log escapes", lambda: "\x1b[31m\x1b]8;;http://x\x07" * 100_000 + OOM.replace("20.00", "\x1b[2J20.00"), DIAGNOSE, JSON)
one("log carriage returns", lambda: "a 10% 3.0GiB\r" * 3_000_000 + OOM, DIAGNOSE)
one("log NUL bytes", lambda: OOM + "\0" * 5_000_000 + OOM, DIAGNOSE)
one("log UTF-16", lambda: (OOM * 1000).encode("utf-16"), DIAGNOSE)
one("log tracebacks 1 M deep", lambda: "Traceback (most recent call last):\n" + '  File "a.py", line 1, in f\n    x\n' * 400_000 + OOM, DIAGNOSE)
one("log tracebacks many", lambda: ("Traceback (most recent call last):\n" + '  File "a.py", line 1, in f\n    x\nKeyError: 1\n') * 200_000 + OOM, DIAGNOSE)
one("log memory summaries", lambda: "|===========================================================================|\n|                  PyTorch CUDA memory summary, device ID 0                 |\n" * 100_000, DIAGNOSE)
one("log kernel lines", lambda: "".join(f"Mar  1 10:00:00 n{i} kernel: Memory cgroup out of memory: Killed process {i} (p{i}) total-vm:{10**18}kB, anon-rss:{10**17}kB\n" for i in range(100_000)), DIAGNOSE, JSON)
one("log distinct errors", lambda: "".join(f"[rank{i}]: ValueError{i}: {i}\n" for i in range(200_000)), DIAGNOSE)
one("log hosts of Slurm", lambda: "".join(f"srun: error: n[0-{10**9}],m[1-99999]: tasks 0-{10**12}: Out Of Memory\n" for i in range(1000)), DIAGNOSE, JSON)
one("log torchrun report", lambda: "Root Cause (first observed failure):\n" + "".join(f"[{i}]:\n  time : 2026-03-01_10:00:00\n  host : h{i}\n  rank      : {i} (local_rank: {i})\n  exitcode  : -9 (pid: {i})\n" for i in range(60_000)), DIAGNOSE)
one("log engine lines", lambda: "".join(f"INFO 11-28 01:03:03 [x.py:1] Engine 000: Running: {i} reqs, Waiting: {10**18} reqs, GPU KV cache usage: {i}.5%\n" for i in range(200_000)), DIAGNOSE, "plan --model Llama-3.1-8B --gpu H100 --check {d}")
one("log with JSON records", lambda: "".join(json.dumps({"msg": OOM, "rank": i, "x": {"y": [1] * 50}}) + "\n" for i in range(30_000)), DIAGNOSE)

# Known words with a part that is long, or comes often.
BATCH = lambda words: words * (15_900 // len(words))
one("log digits behind known words", "E: exceeding available bytes: x\nAttempting to allocate ab " + "1" * 18_000 + "\n", DIAGNOSE)
one("log digits behind Ray's words", "memory on the node\nnode " + "1" * 18_000 + " / \n")
for name, words in {"of devices": "gpu 3 mem 1.5 GiB, ", "in use": "current 1.5, ", "without units": "x mem 123456 ", "with units": "1.5MB "}.items():
    one(f"log lines of figures {name}", lambda words=words: ("GPU 1 GPU 2 " + BATCH(words) + "\n") * 20 + "mem 1.5 GiB\nmem 1.6 GiB\n")
one("log rows of 800 cells", lambda: ("|" + "|".join(f"step {i} 1 GiB" for i in range(800)) + "|\n") * 20)
one("log worlds of millions", "[rank0]: nnodes=2000000 nproc_per_node=2000000\n[rank0]: world size 999999999\n[rank0]: RuntimeError: x\n[rank1]: RuntimeError: x\n", DIAGNOSE, JSON)
one("log hosts of a large world", lambda: "[rank0]: world size 130000\n" + "".join(f"[rank{i}]: h{i}:{i}:{i} [0] NCCL INFO x\n[rank{i}]: RuntimeError: x\n" for i in range(20_000)))
one("log tasks with labels", lambda: "".join(f"{i}: srun: error: node{i}: task {i}: Exited with exit code 1\n" for i in range(30_000)))
one("log errors between steps", lambda: "step 3 loss 1\n" + "".join(f"[pod/w-{i}/log] step 3 loss 1\n[pod/w-{i}/log] RuntimeError: x\n" for i in range(25_000)) + "".join(f"[pod/w-{i}/log] step 9 loss 1\n" for i in range(25_000)))
one("log kills of many processes", lambda: "".join(f"[rank{i}]: h{i % 99}:{i}:{i} [0] NCCL INFO x\n" for i in range(20_000)) + "".join(f"Mar  1 10:00:00 h{i % 99} kernel: Memory cgroup out of memory: Killed process {i} (python) total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB, UID:0\n" for i in range(20_000)))
one("log pmap rows of nothing", lambda: "".join(f"{0x7F0000000000 + i * 4096:016x}       4       0       0 rw---   [ anon ]\n" for i in range(40)) * 3)
one("log pmap rows that come twice", lambda: "".join(f"{0x7F0000000000 + k * 0x100000:016x}      320      {10**7 - i - k}       8 rw---   [ anon ]\n" for i in range(40_000) for k in (i, i + 1)))
for line in (
    "stdout '^In 1 GiB this run peaks at 228 MiB reserved, as recorded, and does not run out of memory.$'",
    "alloc_tensor_range: failed to allocate CUDA0 buffer of size 16084563968",
    "E external/xla/rocm_driver.cc:1268] failed to allocate 154.06GiB (165425291480 bytes) from device: HIP_ERROR_OutOfMemory",
    "Memory cgroup out of memory: Killed process 9187 (a) total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB, UID:0",
    "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error",
    "GPU memory used: 3 MiB",
):
    one(f"log in a gzip: {line[:30]}", lambda line=line: gzip.compress((line + "\n").encode() * (6_000_000 // len(line)), 9))

# Tables.
one("csv observed plans", lambda: "id,kind,framework,version,model_id,gpu,tp,quant,max_model_len,mem_fraction,weights_gib\n" + "".join(f"G{i},inference,vllm,0.6.4,meta-llama/Meta-Llama-3.1-8B,80G class,1,bf16,20000,0.9,14.98\n" for i in range(230)), "plan --against {d}")
tries("a missing file with controls in its name", "diagnose --json {d}/\u202e\u009b2J.log", "inspect {d}/\u202e\u009b2J.log")(lambda d: None)
one("csv 200,000 columns", lambda: "time," + ",".join(f"rss{i}_bytes" for i in range(200_000)) + "\n" + "1," + ",".join("1" for _ in range(200_000)) + "\n", DIAGNOSE, VIEW)
one("csv a million pids", lambda: "time,pid,rss_bytes\n" + "".join(f"{i},{i},{i}\n" for i in range(1_000_000)), DIAGNOSE, VIEW)
one("csv quotes without an end", lambda: 'time,rss_bytes\n1,"' + "1,2\n" * 5_000_000, DIAGNOSE)
one("csv extreme numbers", lambda: "time,rss_bytes\n" + "".join(f"{i},{x}\n" for i, x in enumerate(["1e308", "-1e308", "NaN", "inf", "9" * 400, "0x10", "1_000"] * 3000)), DIAGNOSE, JSON, VIEW)
one("csv times backwards", lambda: "time,rss_bytes\n" + "".join(f"{10**6 - i},{i << 20}\n" for i in range(300_000)), DIAGNOSE, VIEW)
one("csv one time", lambda: "time,rss_bytes\n" + "".join(f"1,{i << 20}\n" for i in range(500_000)), DIAGNOSE)
one("csv names in HTML", lambda: "time,pid,command,rss_bytes\n" + "".join(f"{i},{i % 300},<script>alert({i % 300})</script>\x1b[31m,{i << 20}\n" for i in range(30_000)), DIAGNOSE, VIEW)
one("csv numbers without a header", lambda: "".join(f"{i} {i * i}\n" for i in range(300_000)), DIAGNOSE)


@tries("a database with a view that recurses", "diagnose {d}/n.sqlite", "view --html {d}/page.html {d}/n.sqlite")
def _(d):
    db = sqlite3.connect(os.path.join(d, "n.sqlite"))
    db.execute("CREATE VIEW CUDA_GPU_MEMORY_USAGE_EVENTS AS WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start+1 FROM n) SELECT start, 1 AS globalPid, 0 AS deviceId, start AS address, 4096 AS bytes, 2 AS memKind, 0 AS memoryOperationType FROM n")
    db.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
    db.commit()


@tries("a database of joined views", "diagnose {d}/n.sqlite")
def _(d):
    db = sqlite3.connect(os.path.join(d, "n.sqlite"))
    db.execute("CREATE TABLE t (x)")
    db.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(2000)])
    db.execute("CREATE VIEW CUDA_GPU_MEMORY_USAGE_EVENTS AS SELECT a.x AS start, 1 AS globalPid, 0 AS deviceId, b.x AS address, c.x AS bytes, 2 AS memKind, 0 AS memoryOperationType FROM t a, t b, t c")
    db.commit()


@tries("a database of a million names", "diagnose {d}/n.sqlite")
def _(d):
    db = sqlite3.connect(os.path.join(d, "n.sqlite"))
    db.execute("CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start, globalPid, deviceId, address, bytes, memKind, memoryOperationType)")
    db.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
    db.executemany("INSERT INTO StringIds VALUES (?,?)", [(i, "n" * 30 + str(i)) for i in range(600_000)])
    db.executemany("INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (?,?,?,?,?,2,0)", [(i, i, i, i, 1 << 62) for i in range(100_000)])
    db.commit()


# Models and plans.
one("json config with 1 M layers", '{"model_type":"llama","hidden_size":4096,"num_hidden_layers":1000000,"num_attention_heads":32,"intermediate_size":11008,"vocab_size":32000}', "plan --model {d} --gpu H100", "plan train --model {d} --gpu H100 --gpus 8", "plan rl --model {d} --gpu H100 --gpus 8")
one("json config of extreme numbers", '{"model_type":"llama","hidden_size":9223372036854775807,"num_hidden_layers":9223372036854775807,"num_attention_heads":1,"intermediate_size":1e300,"vocab_size":-1}', "plan --model {d} --gpu H100", "plan train --model {d} --gpu H100")
one("yaml aliases", "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [" + ",".join(["*" + chr(97 + i)] * 9) + "]\n" for i in range(9)), "plan rl --phases {d}")
one("safetensors header of 16 EB", b"\xff" * 8 + b"{" * 99, "plan --model {d} --gpu H100", DIAGNOSE)
one("GGUF of many arrays", b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 1 << 60) + (struct.pack("<Q", 1) + b"a" + struct.pack("<IIQ", 9, 9, 1 << 60)) * 50_000, "plan --model {d} --gpu H100", DIAGNOSE)


# Answers.
class Hostile(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        kind = self.path.split("/")[1]
        self.send_response(200)
        head = b'{"status":"success","data":{"resultType":"matrix","result":['
        series = lambda i: b'{"metric":{"pod":"p%d"},"values":[[1,"1"],[2,"2"]]}' % i
        if kind == "gzip":
            body = gzip.compress(b" " * (1 << 30), 9)
            self.send_header("Content-Encoding", "gzip")
        elif kind == "labels":
            body = b"vllm:num_requests_running{" + b",".join(b'l%d="v"' % i for i in range(2_000_000)) + b"} 1\n"
        elif kind == "long":
            body = b"x" * 200_000_000
        elif kind == "many":
            body = head + b",".join(series(i) for i in range(500_000)) + b"]}}"
        elif kind == "points":
            body = head + b'{"metric":{},"values":[' + b",".join(b'[%d,"%d"]' % (i, i) for i in range(2_000_000)) + b"]}]}}"
        elif kind == "deep":
            body = b"[" * 50_000_000
        elif kind == "pod":
            body = head + b",".join(b'{"metric":{"pod":"\\u001b[31m</script>%d"},"values":[%s]}' % (i, b",".join(b'[%d,"%d"]' % (1.8e9 + k * 60, (k * i) << 20) for k in range(300))) for i in range(400)) + b"]}}"
        else:
            body = None
        if kind == "redirect":
            self.send_header("Location", "/redirect/" + "x" * 100)
        if kind == "headers":
            for i in range(90):
                self.send_header(f"X-{i}", "h" * 60_000)
        self.send_header("Content-Type", "text/event-stream" if kind == "stream" else "application/json")
        if body is not None:
            self.send_header("Content-Length", str(len(body)))
        else:
            self.send_header("Connection", "close")
        self.end_headers()
        try:
            if body is not None:
                self.wfile.write(body)
                return
            self.close_connection = True
            stop = time.time() + 300
            while time.time() < stop:
                if kind == "drip":
                    self.wfile.write(b" ")
                    self.wfile.flush()
                    time.sleep(0.2)
                elif kind == "stream":
                    self.wfile.write(b'data: {"choices":[{"delta":{"content":"xxxxxxxxxxxxxxxx"}}],"data":[{"id":"m"}]}\n\n' * 1000)
                else:
                    self.wfile.write(b'{"status":"success","data":[' + b" " * (1 << 20))
        except OSError:
            pass

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


for kind in ("gzip", "labels", "long", "many", "points", "deep", "pod", "endless", "redirect", "headers"):
    tries(f"store answers: {kind}", "diagnose --query up --prometheus {url}/" + kind)(lambda d: None)
    tries(f"engine answers: {kind}", "watch --pid {pid} --duration 2s --metrics {url}/" + kind)(lambda d: None)
    tries(f"model answers: {kind}", "soak --waves 3 --requests 3 --timeout 5s --pid {pid} --url {url}/" + kind)(lambda d: None)
tries("engine answers: drip", "watch --pid {pid} --duration 2s --metrics {url}/drip")(lambda d: None)
tries("model answers: stream", "soak --waves 3 --requests 3 --timeout 5s --pid {pid} --url {url}/stream")(lambda d: None)

# nvidia-smi, from PATH.
for name, text in {
    "an endless line": "exec tr '\\0' a < /dev/zero",
    "endless lines": "yes '0, GPU-1, 10 MiB, 81920 MiB'",
    "nothing for ever": "exec sleep 1000",
    "100,000 devices": "seq -f '%.0f, GPU-%.0f, 10 MiB, 81920 MiB' 100000 | sed 's/GPU-[0-9]*/GPU-1/'",
    "escapes": "printf '0, GPU-\\033[31m, 10 MiB, 9223372036854775807 MiB\\n'",
    "a child that stays": "sleep 1000 & echo '0, GPU-1, 10 MiB, 81920 MiB'",
}.items():

    def smi(d, text=text):
        put(d, "bin/nvidia-smi", "#!/bin/sh\n" + text + "\n")
        os.chmod(os.path.join(d, "bin", "nvidia-smi"), 0o755)

    tries(f"nvidia-smi prints {name}", "watch --pid {pid} --duration 2s", "doctor")(smi)


def size_of(d):
    """The bytes and the number of the files of a folder."""
    sizes = [min(s.st_blocks * 512, s.st_size) for top, _, files in os.walk(d) for f in files for s in [os.stat(os.path.join(top, f), follow_symlinks=False)]]
    return sum(sizes), len(sizes)


def apart(make, d):
    """Fill a folder in a process of its own, which leaves this one small, and may go on to change the files."""
    ready, filled = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            make(d)
            os.write(filled, b"1")
            for t in threading.enumerate():
                if t is not threading.current_thread() and t.name == "changes":
                    t.join()
        finally:
            os._exit(0)
    os.close(filled)
    if not os.read(ready, 1):
        raise RuntimeError("its files cannot be made")
    os.close(ready)
    return pid


def run(strandline, make, command, url):
    top = tempfile.mkdtemp(prefix="attack.")
    d = os.path.join(top, "d")
    os.mkdir(d)
    maker = None
    sleeper = subprocess.Popen(["sleep", "600"])
    try:
        maker = apart(make, d)
        size, count = size_of(d)
        words = [w.format(d=d, url=url, pid=sleeper.pid) for w in command.split()]
        env = dict(os.environ, PATH=os.path.join(d, "bin") + ":" + os.environ["PATH"], TMPDIR=top, XDG_CACHE_HOME=os.path.join(top, "cache"))
        began = time.time()
        with open(os.path.join(top, "stdout"), "wb") as out:
            p = subprocess.Popen([strandline, *words], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
            while (done := os.wait4(p.pid, os.WNOHANG))[0] == 0:
                if time.time() - began > 300:
                    p.kill()
                time.sleep(0.02)
        _, status, usage = done
        p.returncode = code = os.waitstatus_to_exitcode(status)
        size = max(size, size_of(d)[0])  # a file may have grown
        with open(os.path.join(top, "stdout"), "rb") as f:
            text = f.read(50 << 20)
        page = os.path.join(top, "page.html")
        pages = os.path.getsize(page) if os.path.exists(page) else 0
        cpu, memory = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
        faults = []
        if cpu > 2 + 100e-9 * size + 200e-6 * count:
            faults.append(f"{cpu:.1f} s")
        if memory > 500e6 + 30 * size:
            faults.append(f"{memory / 1e6:.0f} MB")
        if len(text) > 5e6 or pages > 5e6 + 20 * size:
            faults.append(f"prints {len(text)}, page {pages}")
        if not 0 <= code <= 3 or b"goroutine " in text:
            faults.append(f"status {code}")
        if re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", text) or b"\xc2\x9b" in text or "\u202e".encode() in text:
            faults.append("control characters")
        if time.time() - began > 120:
            faults.append(f"{time.time() - began:.0f} s to its end")
        first = text.decode(errors="replace").strip().split("\n")[0][:90]
        return size, cpu, memory, len(text), pages, code, first, faults
    finally:
        if maker:
            os.kill(maker, 9)
            os.waitpid(maker, 0)
        sleeper.kill()
        sleeper.wait()
        subprocess.run(["rm", "-rf", top])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("strandline", type=os.path.abspath)
    p.add_argument("words", nargs="*")
    args = p.parse_args()
    server = Server(("127.0.0.1", 0), Hostile)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    bad = ran = 0
    for name, make, command in TRIES:
        if args.words and not any(w in name for w in args.words):
            continue
        try:
            size, cpu, memory, printed, pages, code, first, faults = run(args.strandline, make, command, url)
        except Exception as e:  # the try itself
            print(f"{name:50} CANNOT BE TRIED: {e!r}", flush=True)
            continue
        ran, bad = ran + 1, bad + bool(faults)
        print(f"{name:50} {size / 1e6:8.2f} MB {cpu:6.2f} s {memory / 1e6:6.0f} MB {printed / 1e3:8.1f} kB {pages / 1e6:5.1f} {code:3}  {'FAULT ' + '; '.join(faults) + '  ' if faults else ''}{first!r}", flush=True)
    print(f"{ran} tries, {bad} with a fault")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
