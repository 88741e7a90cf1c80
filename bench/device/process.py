"""Holds device memory of four kinds, prints how much, and waits for its input to end.
With a fourth number, it meanwhile takes so many MiB a second more from the driver.

PyTorch's tensors, its cache, buffers that a library takes from the driver as NCCL does,
and the context, which the stand-in of the driver takes from the device at the start.
"""
import ctypes
import json
import os
import sys
import threading
import time

import torch

tensors, freed, buffers = map(int, sys.argv[1:4])  # MiB
driver = ctypes.CDLL("libcuda.so.1")
held = [torch.zeros(1 << 18, device="cuda") for _ in range(tensors + freed)]  # 1 MiB each
del held[tensors:]
at = ctypes.c_ulonglong()
for _ in range(buffers // 4):
    assert driver.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(4 << 20)) == 0
allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
print(json.dumps({"pid": os.getpid(), "allocated": allocated, "cached": reserved - allocated}), flush=True)
if len(sys.argv) > 4:

    def leak():
        while True:
            assert driver.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(int(sys.argv[4]) << 18)) == 0
            time.sleep(0.25)

    threading.Thread(target=leak, daemon=True).start()
sys.stdin.read()
