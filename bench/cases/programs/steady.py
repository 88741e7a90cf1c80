"""Trains a small network, and keeps nothing."""
import sys
import time

import torch

DEVICE, SECONDS = sys.argv[1], float(sys.argv[2])


def main():
    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64)).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    end = time.time() + SECONDS
    while time.time() < end:
        x = torch.rand(128, 64, device=DEVICE)
        loss = (net(x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.01)


main()
