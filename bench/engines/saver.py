#!/usr/bin/env python3
"""Runs the promises of torch_memory_saver on it and on strandline.pausable, and prints a table.

    bench/engines/saver.py --torch DIR --saver DIR [OPTIONS] [CASE...]

    --strandline PATH  the program to try (default: built from this checkout)
    --torch DIR        PyTorch, as setup.sh leaves it
    --saver DIR        `pip install --no-deps --target DIR torch_memory_saver`

A case of programs/saved.py holds if its process ends well: memory, addresses and checksums are as they must
be. Each is tried in both of its modes, but for those that only one of them has.
"""
import argparse
import glob
import os
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cases"))
from run import built  # noqa: E402

BOTH, PRELOAD, TORCH = ("torch", "preload"), ("preload",), ("torch",)
ALL = {"TMS_INIT_ENABLE": "1"}
CASES = [  # name, modes, variables, what holds, and where it comes from
    ("addresses", BOTH, {}, "a pause gives memory back, a resume has the same addresses", "README"),
    ("tags", BOTH, {}, "tags pause and resume in any order", "README"),
    ("weights", BOTH, {}, "weights are equal after 12 cycles beside others, and nothing is left", "issue 71"),
    ("written", BOTH, {}, "the newest contents come back", "issue 71"),
    ("cleared", BOTH, {}, "without a backup nothing is kept", "README"),
    ("absent", BOTH, {}, "asking for a backup that was not made is answered", "ours"),
    ("backup", BOTH, {}, "a backup can be read while it is paused, also a part", "tests"),
    ("host", BOTH, {}, "the host has its memory back after a resume", "issue 90, pull request 89"),
    ("retained", BOTH, {}, "a backup is kept if asked for, and is the newest", "pull request 86"),
    ("disk", BOTH, {}, "contents on disk are equal after 3 cycles", "pull request 80"),
    ("both", PRELOAD, {**ALL, "TMS_INIT_ENABLE_CPU_BACKUP": "1", "TMS_INIT_ENABLE_DISK_BACKUP": "1"}, "two kinds of backup at once are refused", "pull request 80"),
    ("devices", BOTH, {}, "each device has its region", "tests"),
    ("other_device", PRELOAD, {}, "a tensor of another device than the current one", "tests"),
    ("nested", PRELOAD, {**ALL, "TMS_INIT_ENABLE_CPU_BACKUP": "1"}, "a region within one from the start", "tests"),
    ("disabled", PRELOAD, {**ALL, "TMS_INIT_ENABLE_CPU_BACKUP": "1"}, "a program works outside while all is paused", "tests"),
    ("graph", PRELOAD, {}, "memory of a CUDA graph is paused", "tests"),
    ("unaligned", PRELOAD, ALL, "sizes that are no multiple of a page", "pull request 82"),
    ("full", BOTH, {}, "a resume that does not fit fails, and works later", "pull request 87"),
    ("twice", BOTH, {}, "a second pause and a second resume do nothing", "ours"),
    ("freed", BOTH, {}, "tensors of a region are freed while they are paused", "ours"),
    ("freed_whole", PRELOAD, {**ALL, "TMS_INIT_ENABLE_CPU_BACKUP": "1"}, "memory is given back to the driver while it is paused", "issue 92, pull request 95"),
    ("expandable", BOTH, {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, "expandable segments are refused", "issue 24"),
    ("expandable_later", BOTH, {}, "expandable segments between pause and resume", "issue 24"),
]


def tried(options, who, case, mode, more):
    """The word for a case: holds, or what happened."""
    env = dict(os.environ, FAKE_CUDA_COPY_LIMIT="64g", FAKE_CUDA_DEVICES="2", FAKE_CUDA_TOTAL_MEM="2048m", PYTHONDONTWRITEBYTECODE="1", **more)
    if who == "strandline":
        env["PYTHONPATH"] = options.module + ":" + os.path.join(options.module, "strandline", "stand_in")
        library = os.path.join(options.module, "strandline", "libstrandline-mem.so")
    else:
        env["PYTHONPATH"] = options.saver
        library = options.library
    run = ["env", "LD_PRELOAD=" + library] if mode == "preload" else []
    python = [os.path.join(options.torch, "python", "bin", "python"), os.path.join(HERE, "programs", "saved.py"), case]
    env.update(LD_LIBRARY_PATH=os.path.join(options.torch, "cuda"), OMP_NUM_THREADS="1", TORCH_CUDNN_V8_API_DISABLED="1")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*run, *python], env=env, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    if done.returncode == 0 and done.stdout.strip().endswith("holds"):
        return "holds"
    if case == "both" and "mutually exclusive" in done.stderr:
        return "holds, and ends the process"  # which is a way to refuse
    if done.returncode < 0:
        return "ends the process, " + signal.Signals(-done.returncode).name
    if done.stdout.strip():
        return done.stdout.strip().splitlines()[-1]
    last = (done.stderr.strip().splitlines() or ["nothing said"])[-1]
    return last[:110] if "Traceback" in done.stderr else "ends the process: " + last[:110]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--strandline")
    parser.add_argument("--torch", required=True)
    parser.add_argument("--saver", required=True)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    options.module = tempfile.mkdtemp(prefix="saver-")
    subprocess.run([options.strandline or built(), "record", "--module", options.module], check=True, stdout=subprocess.DEVNULL)
    cuda = "13" if glob.glob(os.path.join(options.torch, "cuda", "libcudart.so.13")) else "12"
    options.library = glob.glob(os.path.join(options.saver, f"*preload_cu{cuda}.abi3.so"))[0]
    bad = 0
    for case, modes, env, text, source in CASES:
        if options.names and case not in options.names:
            continue
        for mode in modes:
            words = [tried(options, who, case, mode, env) for who in ("torch_memory_saver", "strandline")]
            bad += words[1] != "holds"
            print(case, mode, text, source, *words, sep=" | ", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
