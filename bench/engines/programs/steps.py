"""Trains a transformer, and prints the processor time of each step, in seconds, and the allocations of one on a device.

    steps.py LAYERS WIDTH STEPS [history]      history: PyTorch's own is on, with stacks of Python"""
import sys
import time

import torch

LAYERS, WIDTH, STEPS = map(int, sys.argv[1:4])


def allocations(device):
    return torch.cuda.memory_stats()["allocation.all.allocated"] if device == "cuda" else 0


def main():
    if "history" in sys.argv:
        torch.cuda.memory._record_memory_history(max_entries=100_000, stacks="python")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layers = [torch.nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, batch_first=True) for _ in range(LAYERS)]
    model = torch.nn.Sequential(torch.nn.Embedding(512, WIDTH), *layers, torch.nn.Linear(WIDTH, 512)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    took, made = [], 0
    for _ in range(STEPS):
        before, began = allocations(device), time.process_time()
        x = torch.randint(0, 512, (8, 64), device=device)
        loss = torch.nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        took.append(time.process_time() - began)
        made = allocations(device) - before
    print("steps", *(f"{t:.5f}" for t in took), flush=True)
    if made:
        print("allocations", made, flush=True)


main()
