"""Pauses what a CUDA graph takes for itself, and what is allocated from the start of a process.

    HOOK_MODE=preload run.sh RIG_RUN RIG preload.py
"""

import os

import torch
from strandline.pausable import torch_memory_saver as tms

MB = 1 << 20


def used():
    free, total = torch.cuda.mem_get_info()
    return total - free


def main():
    assert tms.hook_mode == "preload", "the library is not preloaded: HOOK_MODE=preload"
    with tms.region("weights", enable_cpu_backup=True):
        weights = torch.full((8 * MB,), 7, dtype=torch.uint8).cuda()
    before = used()
    graph = torch.cuda.CUDAGraph()
    with tms.cuda_graph(graph, tag="graph"):
        out = torch.empty(32 * MB, dtype=torch.uint8, device="cuda")
    taken = used() - before
    assert taken >= 32 * MB, taken
    assert sum(d["pools_bytes"] for d in tms.outside()) == 0, tms.outside()
    at = weights.data_ptr(), out.data_ptr()
    tms.pause("graph")
    assert used() <= before + 2 * MB, (used(), before)  # PyTorch has its seeds beside it
    tms.pause()
    assert used() <= before - 8 * MB, (used(), before)
    tms.resume()
    assert at == (weights.data_ptr(), out.data_ptr())
    assert torch.equal(weights.cpu(), torch.full((8 * MB,), 7, dtype=torch.uint8))
    graph.replay()

    ordinary = torch.cuda.CUDAGraph()
    with torch.cuda.graph(ordinary):  # in no region: its pool is found
        other = torch.empty(16 * MB, dtype=torch.uint8, device="cuda")
    pools = sum(d["pools_bytes"] for d in tms.outside())
    assert pools >= len(other), pools
    print(f"a graph's pool of {taken} bytes was paused, and one of {pools} was found in no region; preloaded: {os.environ['LD_PRELOAD']}")


main()
