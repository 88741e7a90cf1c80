"""Recordings for the detectors of single costs, with PyTorch 2.6:

    costs.py waiting       batches go through another stream and are marked with
                           record_stream, while the host runs far ahead
    costs.py waited        the same, and the host waits for the stream each time
    costs.py tiny          thousands of losses are kept as tensors of 4 bytes
    costs.py unsplit       tensors of 11 MiB, each in a segment of 12 MiB
    costs.py divisions     requests just above powers of two, under
                           PYTORCH_CUDA_ALLOC_CONF=roundup_power2_divisions:2
"""
import sys

import torch

MIB = 1 << 20


def empty(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def through_stream(stream, size):
    batch = empty(size)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        out = batch[:MIB] + 1
    batch.record_stream(stream)
    return out


def waiting(wait=False):
    stream = torch.cuda.Stream()
    weights = empty(2048 * MIB)
    for step in range(24):
        through_stream(stream, 256 * MIB)
        if wait:
            stream.synchronize()
    return weights


def waited():
    return waiting(wait=True)


def tiny():
    weights = empty(8 * MIB)
    total = torch.zeros((), device="cuda")
    return weights, [total + 1 for _ in range(2200)]


def unsplit():
    return [empty(11 * MIB + 4096) for _ in range(60)]


def divisions():
    return [empty(size * MIB) for size in (65, 130, 270, 530)]


def main():
    name = sys.argv[1]
    torch.cuda.memory._record_memory_history(stacks="python", enabled="state" if name == "tiny" else "all")
    kept = globals()[name]()
    torch.cuda.memory._dump_snapshot(name + ".pickle")
    return kept


main()
