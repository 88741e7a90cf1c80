"""Serves prompts of random lengths on a device: PyTorch's cache grows and then levels off."""
import random
import sys
import time

import torch

SECONDS = float(sys.argv[1])


def answer(length):
    a = torch.empty(length * 4096, device="cuda")
    b = torch.empty(length * 8192, device="cuda")
    return a.numel() + b.numel()


def main():
    random.seed(7)
    weights = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    longest = 64
    end = time.time() + SECONDS
    while time.time() < end:
        answer(random.randrange(32, longest))
        longest = min(longest + 12, 1536)
        time.sleep(0.01)
    del weights


main()
