"""A server whose native engine takes device memory past PyTorch at every batch,
and whose cache is warmed now and then."""
import ctypes
import os
import time

import torch
from torch import nn

engine = ctypes.CDLL(os.environ.get("ENGINE", "libengine.so"))
engine.grow_workspace.argtypes = [ctypes.c_size_t]
engine.grow_workspace.restype = ctypes.c_void_p


def serve_batch(model):
    with torch.no_grad():
        model(torch.zeros(64, 1024, device="cuda"))
    assert engine.grow_workspace(8 << 20)
    time.sleep(0.2)


def warm_cache():
    held = [torch.empty(300 << 20, dtype=torch.uint8, device="cuda") for _ in range(8)]
    time.sleep(1.5)
    held.clear()
    torch.cuda.empty_cache()


def main():
    torch.cuda.init()
    model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).cuda()
    while True:
        for _ in range(20):
            serve_batch(model)
        torch.cuda.memory._dump_snapshot("now.pickle")
        warm_cache()


main()
