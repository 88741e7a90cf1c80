"""Sums random values in place, and requires gradients of them: each sum joins a graph.

With `scalar`, the sum itself requires gradients, and a number is added. With `detached`,
nothing leaks."""
import sys
import time

import torch

KIND, DEVICE, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])


def noisy(device):
    return torch.rand(1, device=device)


def main():
    total = noisy(DEVICE)
    if KIND == "scalar":
        total.requires_grad_()
        total = total + 0
    end = time.time() + SECONDS
    count = 0
    while time.time() < end:
        if KIND == "scalar":
            total += 1  # LINE
        elif KIND == "detached":
            total += noisy(DEVICE).requires_grad_().detach()
        else:
            total += noisy(DEVICE).requires_grad_()  # LINE
        count += 1
        if count % 50 == 0:
            time.sleep(0.004)


main()
