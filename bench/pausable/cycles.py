"""Pauses and resumes often, with the real PyTorch, and shows that nothing grows or changes.

    run.sh RIG_RUN RIG cycles.py [CYCLES]

Each kind of backup has tensors. After each cycle their addresses are compared, after every hundredth their
contents; checksums are compared in all. Device memory, resident memory, mappings and descriptors are printed
after the first 100 cycles, ten times on the way and at the end, so that a step once can be told from growth; it
exits with 1 if one has grown.
"""

import os
import sys
import time

import torch
from strandline.pausable import torch_memory_saver as tms

KINDS = {
    "pinned": {"enable_cpu_backup": True},
    "pageable": {"enable_cpu_backup": True, "cpu_backup_backend": "mmap"},
    "file": {"enable_disk_backup": True},
    "none": {},
}


def lines(path):
    with open(path) as f:
        return sum(1 for _ in f)


def levels():
    with open("/proc/self/statm") as f:
        resident = int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return {
        "device": torch.cuda.mem_get_info()[1] - torch.cuda.mem_get_info()[0],
        "resident": resident,
        "mappings": lines("/proc/self/maps"),
        "descriptors": len(os.listdir("/proc/self/fd")),
    }


def main(cycles):
    tms.set(verify=True)
    tensors = []
    for seed, (tag, options) in enumerate(KINDS.items()):
        host = torch.randint(0, 255, (700_000,), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
        with tms.region(tag, **options):
            there = torch.empty_like(host, device="cuda")
        there.copy_(host)
        tensors.append((tag, host, there, there.data_ptr()))
    began = time.monotonic()
    seen = {}  # levels by the number of cycles
    for i in range(cycles):
        active = torch.cuda.mem_get_info()[0]
        tms.pause()
        assert torch.cuda.mem_get_info()[0] > active
        tms.resume()
        assert torch.cuda.mem_get_info()[0] == active
        for tag, host, there, at in tensors:
            assert there.data_ptr() == at, tag
            assert i % 100 or tag == "none" or torch.equal(there.cpu(), host), tag
        if i == 99 or (i + 1) % max(cycles // 10, 1) == 0 or i + 1 == cycles:
            seen[i + 1] = levels()
    print(f"{cycles} cycles in {time.monotonic() - began:.0f} s, mode {tms.hook_mode}")
    print(f"{'cycles':>8}", *(f"{name:>12}" for name in levels()))
    for i, at in sorted(seen.items()):
        print(f"{i:8}", *(f"{n:12}" for n in at.values()))
    first, last = seen[min(100, cycles)], seen[cycles]
    # Threads of the library have stacks and heaps that the C library keeps for the next ones: of heaps eight for
    # each processor at most, and two mappings for each of both. How many there are depends on other work.
    room = {"device": 0, "resident": 4 << 20, "mappings": 2 * 8 * (os.cpu_count() or 1) + 8, "descriptors": 0}
    return 1 if any(last[name] > first[name] + room[name] for name in last) else 0


sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
