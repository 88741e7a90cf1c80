"""Plain PyTorch loops with what may confuse a tool.

    plain.py KIND STEPS FOLDER      KIND: recompute, offload, graphs, replay, hooks, cycle, workers"""
import collections
import sys

import torch
from torch.utils.checkpoint import checkpoint

import models

KIND, STEPS = sys.argv[1], int(sys.argv[2])
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(256, 256) for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if KIND == "recompute" else layer(x)
        return x


class Node:
    """Keeps its tensor and itself, so that only the collector frees it."""

    def __init__(self, value):
        self.value, self.me = value, self


def graphs(model):
    """Captures a step, and replays it."""
    still = torch.zeros(32, 256, device=DEVICE)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(still).sum()
    for _ in range(STEPS):
        graph.replay()


def main():
    model = Block().to(DEVICE)
    if KIND == "graphs":
        return graphs(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    replay = collections.deque(maxlen=16)
    data = torch.utils.data.DataLoader(torch.zeros(STEPS * 32, 256), batch_size=32, num_workers=2 if KIND == "workers" else 0)
    for x in data:
        x = x.to(DEVICE)
        if KIND == "offload":
            with torch.autograd.graph.save_on_cpu():
                loss = model(x).square().mean()
        else:
            loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if KIND == "replay":  # a bounded buffer fills, and stays
            replay.append(torch.zeros(64 * 1024, device=DEVICE))
        if KIND == "cycle":  # grows until the collector runs
            Node(torch.zeros(64 * 1024, device=DEVICE))
        if KIND == "hooks":  # each step adds a hook, which keeps its input
            model.layers[0].register_forward_hook(lambda module, args, out, kept=x.clone(): None)  # LINE hooks


main()
