"""Sums random values in place, and requires gradients of them: each sum joins a graph.

With `scalar`, the sum itself requires gradients, and a number is added. With `detached`,
nothing leaks."""
import sys
import time

import torch

KIND, DEVICE, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])
END = time.time() + SECONDS


def steps():
    count = 0
    while time.time() < END:
        yield count
        count += 1
        if count % 50 == 0:
            time.sleep(0.004)


def value():
    total = torch.rand(1, device=DEVICE)
    for _ in steps():
        total += torch.rand(1, device=DEVICE).requires_grad_()  # LINE


def scalar():
    total = torch.rand(1, device=DEVICE)
    total.requires_grad_()
    total = total + 0
    for _ in steps():
        total += 1  # LINE


def detached():
    total = torch.rand(1, device=DEVICE)
    for _ in steps():
        total += torch.rand(1, device=DEVICE).requires_grad_().detach()


{"value": value, "scalar": scalar, "detached": detached}[KIND]()
