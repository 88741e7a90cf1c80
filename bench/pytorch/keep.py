#!/usr/bin/env python3
"""Keep recordings of matrix.py as test data: keep.py OUT FOLDER [RELEASE.]NAME...

Writes FOLDER/RELEASE.NAME.pickle.zst and, beside it, the counters of PyTorch that a
replay is held against. Paths of this machine are left out.
"""
import glob
import json
import os
import pickle
import subprocess
import sys

COUNTERS = ("reserved_bytes.all.current", "allocated_bytes.all.current", "active_bytes.all.current",
            "requested_bytes.all.current", "reserved_bytes.all.peak", "allocated_bytes.all.peak",
            "num_alloc_retries", "num_ooms")
HOST_COUNTERS = ("allocated_bytes.current", "allocated_bytes.peak", "active_bytes.current", "num_host_alloc", "num_host_free")


def shorten(value, seen):
    """Leaves of each file name what is behind the folder of packages or of programs."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, dict):
        if "filename" in value:
            for folder in ("/site-packages/", "/pytorch/"):
                value["filename"] = value["filename"].rpartition(folder)[2]
        for v in value.values():
            shorten(v, seen)
    elif isinstance(value, list):
        for v in value:
            shorten(v, seen)


def keep(path, to):
    with open(path, "rb") as f:
        snapshot = pickle.load(f)
    shorten(snapshot, set())
    with open(path[:-7] + ".json", encoding="utf-8") as f:
        oracle = json.load(f)
    with open(to + ".json", "w", encoding="utf-8") as f:
        stats = [{k: s[k] for k in COUNTERS if k in s} for s in oracle["stats"]]
        kept = {"torch": oracle["torch"], "conf": oracle["conf"], "memory_stats": stats}
        if "host_segments" in snapshot:
            kept["host_memory_stats"] = {k: v for k, v in oracle["host"].items() if k in HOST_COUNTERS}
        json.dump(kept, f)
        f.write("\n")
    subprocess.run(["zstd", "-q", "-19", "-f", "-o", to + ".pickle.zst"],
                   input=pickle.dumps(snapshot, protocol=4), check=True)


def main():
    out, folder, names = sys.argv[1], sys.argv[2], sys.argv[3:]
    for path in sorted(glob.glob(os.path.join(out, "*", "*.pickle"))):
        release, name = os.path.basename(os.path.dirname(path)), os.path.basename(path)[:-7]
        if name in names or f"{release}.{name}" in names:
            keep(path, os.path.join(folder, f"{release}.{name}"))


if __name__ == "__main__":
    main()
