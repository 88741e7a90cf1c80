"""Holds device memory and pinned memory, tells how much, and takes more on request: holding.py TENSORS CACHE PINNED

Sizes are MiB. Each line of its input is a command, and is answered by a line of JSON. "driver N" takes
N times 4 MiB from the driver itself, as a library does, "pinned N" N pinned buffers of 64 MiB, "tensor N" N MiB.
"""
import ctypes
import json
import os
import sys

import torch

MIB = 1 << 20
driver = ctypes.CDLL("libcuda.so.1")
held, raw, pinned = [], [], []


def take_from_driver(n):
    for _ in range(n):
        at = ctypes.c_ulonglong()
        code = driver.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(4 * MIB))
        assert code == 0, code
        raw.append(at.value)


def take_tensors(n):
    held.extend(torch.zeros(MIB, dtype=torch.uint8, device="cuda") for _ in range(n))


def take_pinned(n):
    pinned.extend(torch.ones(64 * MIB, dtype=torch.uint8).pin_memory() for _ in range(n))


def levels():
    free, total = torch.cuda.mem_get_info()
    allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    return {"pid": os.getpid(), "allocated": allocated, "cached": reserved - allocated, "driver": 4 * MIB * len(raw),
            "pinned": 64 * MIB * len(pinned), "device_used": total - free}


tensors, cache, buffers = map(int, sys.argv[1:4])
take_tensors(tensors + cache)
del held[tensors:]
take_pinned(buffers)
torch.cuda.synchronize()
print(json.dumps(levels()), flush=True)
for line in sys.stdin:
    word, *n = line.split()
    {"driver": take_from_driver, "tensor": take_tensors, "pinned": take_pinned, "levels": lambda: None}[word](*map(int, n))
    torch.cuda.synchronize()
    print(json.dumps(levels()), flush=True)
