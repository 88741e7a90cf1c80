"""Takes memory from CUDA's runtime beside PyTorch, and never frees it."""
import ctypes
import sys
import time

import torch

SECONDS = float(sys.argv[1])


def workspace(runtime):
    p = ctypes.c_void_p()
    assert runtime.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(4 << 20)) == 0  # LINE


def main():
    keep = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
    name = next(line.split()[-1] for line in open("/proc/self/maps") if "libcudart" in line)
    runtime = ctypes.CDLL(name)
    end = time.time() + SECONDS
    while time.time() < end:
        workspace(runtime)
        time.sleep(0.05)
    del keep


main()
