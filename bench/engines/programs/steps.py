"""Trains a transformer, and prints the processor time and the time of each step, in seconds, and of one on a device
its allocations and launches.

    steps.py LAYERS WIDTH STEPS [history]      history: PyTorch's own is on, with stacks of Python"""
import ctypes
import sys
import time

import torch

LAYERS, WIDTH, STEPS = map(int, sys.argv[1:4])


def counts(device):
    """The allocations and launches on the test device until now."""
    if device == "cpu":
        return []
    return torch.cuda.memory_stats()["allocation.all.allocated"], ctypes.CDLL("libcuda.so.1").fk_tick()


def main():
    if "history" in sys.argv:
        torch.cuda.memory._record_memory_history(max_entries=100_000, stacks="python")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layers = [torch.nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, batch_first=True) for _ in range(LAYERS)]
    model = torch.nn.Sequential(torch.nn.Embedding(512, WIDTH), *layers, torch.nn.Linear(WIDTH, 512)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    took, walls = [], []
    for _ in range(STEPS):
        before, began, at = counts(device), time.process_time(), time.monotonic()
        x = torch.randint(0, 512, (8, 64), device=device)
        loss = torch.nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()  # as programs log it: they wait for the device
        took.append(time.process_time() - began)
        walls.append(time.monotonic() - at)
        made = [now - then for now, then in zip(counts(device), before)]
    print("steps", *(f"{t:.5f}" for t in took))
    print("walls", *(f"{t:.5f}" for t in walls))
    print("made", *made, flush=True)


main()
