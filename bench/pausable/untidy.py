"""A loop as of reinforcement learning that leaves memory behind, for `strandline plan rl --check`.

    STRANDLINE_MEM_LOG=FOLDER run.sh RIG_RUN RIG untidy.py [STEPS]

While the engine is paused, a graph's pool stays on the device, the trainer's cache stays as the engine comes
back, and each step keeps one tensor more.
"""

import sys

import torch
from strandline.pausable import torch_memory_saver as tms

MB = 1 << 20


def empty(n):
    return torch.empty(n, dtype=torch.uint8, device="cuda")


def main(steps):
    with tms.region("weights", enable_cpu_backup=True):
        weights = empty(64 * MB)
    with tms.region("kv_cache"):
        cache = empty(256 * MB)
    graph, kept = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph):
        out = empty(96 * MB)
    for _ in range(steps):
        tms.pause("kv_cache")
        tms.pause("weights")
        activations = empty(128 * MB)
        del activations  # without torch.cuda.empty_cache()
        kept.append(empty(24 * MB))
        tms.resume("weights")
        tms.resume("kv_cache")
    (outside,) = tms.outside()
    assert outside["pools_bytes"] == 96 * MB and outside["cache_bytes"] >= 128 * MB, outside
    assert steps * 24 * MB <= outside["tensors_bytes"] < (steps * 24 + 1) * MB, outside
    print(outside, len(weights), len(cache), len(out))


main(int(sys.argv[1]) if len(sys.argv) > 1 else 8)
