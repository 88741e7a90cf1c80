"""Plain PyTorch loops with what may confuse a tool.

    plain.py KIND STEPS FOLDER      KIND: recompute, offload, graphs, graphs-outputs, replay, hooks, cycle, workers,
    worker-texts, worker-tensors, compiled, accumulation, validation, losses, exceptions, checkpoints, dataset, predictions"""
import collections
import sys
import time

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


class Cached(torch.utils.data.Dataset):
    """Keeps what it has prepared, as a data set with a cache and without a bound."""

    def __init__(self):
        self.cache = {}

    def __len__(self):
        return STEPS * 32

    def __getitem__(self, i):
        if KIND.startswith("worker"):
            time.sleep(0.004)  # decodes
        if KIND in ("dataset", "worker-tensors"):
            self.cache[i] = torch.zeros(64, 256)  # LINE dataset worker-tensors
            return self.cache[i][0]
        if KIND == "worker-texts":
            self.cache[i] = [str(i + k) for k in range(1200)]  # LINE worker-texts
        return torch.zeros(256)


class Node:
    """Keeps its tensor and itself, so that only the collector frees it."""

    def __init__(self, value):
        self.value, self.me = value, self


def graphs(model):
    """Captures a step, and replays it."""
    still = torch.zeros(32, 256, device=DEVICE)
    graph = torch.cuda.CUDAGraph()
    kept = []
    with torch.cuda.graph(graph):
        out = model(still)
    for step in range(STEPS):
        time.sleep(0.1)  # a batch is loaded
        still.copy_(torch.ones(32, 256, device=DEVICE))
        graph.replay()
        torch.cuda.synchronize()
        if KIND == "graphs-outputs":
            kept.append(out.detach().repeat(8, 1))  # LINE graphs-outputs
    return step + 1


def refuse(value):
    raise ValueError("not finite")


def main():
    step = 0
    model = Block().to(DEVICE)
    if KIND.startswith("graphs"):
        return models.ended(graphs(model), STEPS, 0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    run = torch.compile(model, backend="aot_eager") if KIND == "compiled" else model
    replay, kept, saved, outputs, failed = collections.deque(maxlen=16), [], [], [], []
    data = torch.utils.data.DataLoader(Cached(), batch_size=32, num_workers=2 if KIND.startswith("worker") else 0)
    for x in data:
        x = x.to(DEVICE)
        if KIND == "offload":
            with torch.autograd.graph.save_on_cpu():
                loss = run(x).square().mean()
        else:
            loss = run(x).square().mean()
        loss.backward()
        step += 1
        if KIND != "accumulation" or step % 8 == 0:
            optimizer.step()
            optimizer.zero_grad()
        if KIND == "losses":
            kept.append(loss * torch.ones(64 * 1024, device=DEVICE))  # LINE losses
        if KIND == "checkpoints":
            saved.append({k: v.detach().clone() for k, v in model.state_dict().items()})  # LINE checkpoints
        if KIND == "predictions":
            outputs.append(model(x).detach().repeat(8, 1))  # LINE predictions
        if KIND == "exceptions":
            try:
                refuse(torch.zeros(64 * 1024, device=DEVICE))  # LINE exceptions
            except ValueError as e:
                failed.append(e)  # HOLDS exceptions
        if KIND == "validation" and step % 10 == 0:  # grows within an epoch, and is dropped
            with torch.no_grad():
                kept = [model(x).repeat(8, 1) for _ in range(5)]
        if KIND == "replay":  # a bounded buffer fills, and stays
            replay.append(torch.zeros(64 * 1024, device=DEVICE))
        if KIND == "cycle":  # grows until the collector runs
            Node(torch.zeros(64 * 1024, device=DEVICE))
        if KIND == "hooks":  # each step adds a hook, which keeps copies of its input
            model.layers[0].register_forward_hook(lambda module, args, out, kept=x.repeat(8, 1): None)  # LINE hooks
    models.ended(step, STEPS, step // 8 if KIND == "accumulation" else step)


main()
