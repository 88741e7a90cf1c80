"""Keeps the tensors that it computes on the CPU in a dictionary of a module."""
import sys
import time

import torch

SECONDS = float(sys.argv[1])
CACHE = {}


def handle(i):
    CACHE[i] = torch.rand(64, 256) * 2  # LINE


def main():
    end = time.time() + SECONDS
    i = 0
    while time.time() < end:
        handle(i)
        i += 1
        time.sleep(0.01)


main()
