"""Trains a transformer, and prints the processor time of each step, in seconds.

    steps.py LAYERS WIDTH STEPS [history]      history: PyTorch's own is on, with stacks of Python"""
import sys
import time

import torch

LAYERS, WIDTH, STEPS = map(int, sys.argv[1:4])


def main():
    if "history" in sys.argv:
        torch.cuda.memory._record_memory_history(max_entries=100_000, stacks="python")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layers = [torch.nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, batch_first=True) for _ in range(LAYERS)]
    model = torch.nn.Sequential(torch.nn.Embedding(512, WIDTH), *layers, torch.nn.Linear(WIDTH, 512)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    took = []
    for _ in range(STEPS):
        began = time.process_time()
        x = torch.randint(0, 512, (8, 64), device=device)
        loss = torch.nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        took.append(time.process_time() - began)
    print("steps", *(f"{t:.5f}" for t in took), flush=True)


main()
