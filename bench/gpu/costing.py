"""Costs: costing.py requests | costing.py steps | costing.py loop SECONDS

"requests" prints the processor time, in ns, of a request and its release with 9 Python frames, without and
with PyTorch's history as the recorder switches it on; "steps" the wall time, in us, of a training step, so
that it can be run with and without `strandline record`; "loop" repeats requests for SECONDS and prints
each second's ns, so that it can be recorded from outside meanwhile.
"""
import json
import statistics
import sys
import time

import torch

LOOP = 20_000


def frames(depth, n=LOOP):
    if depth:
        return frames(depth - 1, n)
    began = time.thread_time_ns()
    for _ in range(n):
        torch.empty(512, device="cuda")
    return (time.thread_time_ns() - began) / n


def requests():
    frames(8)
    off = min(frames(8) for _ in range(7))
    torch.cuda.memory._record_memory_history(max_entries=100_000, stacks="python")
    frames(8)
    on = min(frames(8) for _ in range(7))
    print(json.dumps({"off": off, "on": on}))


def steps():
    net = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(16)]).cuda()
    optimizer = torch.optim.AdamW(net.parameters())

    def step():
        loss = net(torch.rand(64, 1024, device="cuda")).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(50):
        step()
    times = []
    for _ in range(400):
        began = time.perf_counter_ns()
        step()
        times.append((time.perf_counter_ns() - began) / 1e3)
    print(json.dumps({"median": statistics.median(times), "mean": statistics.mean(times)}))


def loop(seconds):
    frames(8)
    print("ready", flush=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        second, costs = time.monotonic() + 0.5, []
        while time.monotonic() < second:
            costs.append(frames(8, 2000))
        print(json.dumps(min(costs)), flush=True)


if sys.argv[1] == "loop":
    loop(float(sys.argv[2]))
else:
    {"requests": requests, "steps": steps}[sys.argv[1]]()
