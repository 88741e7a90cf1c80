"""Pauses and resumes memory with real contents, by the mode that the environment chose: prints a line of JSON for each result."""
import json
import os
import subprocess
import sys
import time

import torch
from strandline.pausable import torch_memory_saver as tms

MIB = 1 << 20
SIZE = (16 if os.environ.get("SIMULATED") == "1" else 256) * MIB
KINDS = {
    "pinned": {"enable_cpu_backup": True},
    "pageable": {"enable_cpu_backup": True, "cpu_backup_backend": "mmap"},
    "file": {"enable_disk_backup": True},
    "none": {},
}


def say(what, ok, figure):
    print(json.dumps([what, bool(ok), figure]), flush=True)


def used():
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    return total - free


def by_driver():
    """The device's used bytes by NVML, None where it cannot tell."""
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=index,uuid,memory.used,memory.total", "--format=csv,noheader"], capture_output=True, text=True)
        return int(done.stdout.split(",")[2].split()[0]) * MIB
    except (OSError, IndexError, ValueError):
        return None


def contents():
    tms.set(verify=True)
    tensors = []
    for seed, (tag, options) in enumerate(KINDS.items()):
        host = torch.randint(0, 255, (SIZE,), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
        with tms.region(tag, **options):
            there = torch.empty_like(host, device="cuda")
        there.copy_(host)
        tensors.append((tag, host, there, there.data_ptr()))
    for cycle in range(2):
        before, smi = used(), by_driver()
        began = time.perf_counter()
        tms.pause()
        pausing = time.perf_counter() - began
        paused, smi_paused = used(), by_driver()
        began = time.perf_counter()
        tms.resume()
        resuming = time.perf_counter() - began
        after = used()
        equal = [tag for tag, host, there, at in tensors if there.data_ptr() == at and (tag == "none" or torch.equal(there.cpu(), host))]
    released = before - paused
    say("contents equal and addresses the same after a resume", len(equal) == len(KINDS), f"{len(equal)} of {len(KINDS)} kinds of backup, {SIZE // MIB} MiB each, 2 cycles")
    say("released by cudaMemGetInfo", released >= len(KINDS) * SIZE and after == before, f"{released / MIB:.0f} MiB of {len(KINDS) * SIZE // MIB}")
    if smi is not None:
        say("released by nvidia-smi", smi - smi_paused >= len(KINDS) * SIZE - 2 * MIB, f"{(smi - smi_paused) / MIB:.0f} MiB")
    say("times of the second cycle", True, f"pause {pausing:.3f} s, resume {resuming:.3f} s, contents checked by checksums")
    return tensors


def graph():
    """A captured graph whose weights and output are in regions replays after a resume."""
    simulated = os.environ.get("SIMULATED") == "1"
    with tms.region("weights", enable_cpu_backup=True):
        weight = torch.rand(1024, 1024, device="cuda")
        x = torch.rand(1024, 1024, device="cuda")
        out = torch.zeros(1024, 1024, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.mm(x, weight, out=out)
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    pool = 0
    before = used()
    scope = tms.cuda_graph(captured, tag="graph") if tms.hook_mode == "preload" else torch.cuda.graph(captured)
    with scope:
        hidden = torch.mm(x, weight).relu()
        torch.mm(hidden, weight, out=out)
    pool = used() - before
    captured.replay()
    torch.cuda.synchronize()
    wanted = out.cpu()
    out.zero_()
    before = used()
    tms.pause()
    released = before - used()
    tms.resume()
    captured.replay()
    torch.cuda.synchronize()
    same = torch.equal(out.cpu(), wanted) and (simulated or wanted.abs().sum() > 0)
    say("a captured graph replays after a resume", same, f"sum {wanted.double().sum():.6g}, its pool of {pool // MIB} MiB, {released // MIB} MiB released")


def main():
    say("mode", tms.hook_mode == sys.argv[1], tms.hook_mode)
    kept = contents()
    graph()
    say("ready", True, str(os.getpid()))
    for line in sys.stdin:  # the other side pauses and resumes meanwhile
        if line.strip() == "check":
            equal = all(there.data_ptr() == at and (tag == "none" or torch.equal(there.cpu(), host)) for tag, host, there, at in kept)
            say("contents", equal, "")
        else:
            say("used", True, used())


main()
