"""Trains a small network, and a meter keeps the losses as tensors with their graphs."""
import sys
import time

import torch

DEVICE, SECONDS = sys.argv[1], float(sys.argv[2])


class Meter:
    def __init__(self):
        self.values = []

    def add(self, value):
        self.values.append(value)  # LINE


def main():
    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64)).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    meter = Meter()
    end = time.time() + SECONDS
    while time.time() < end:
        x = torch.rand(128, 64, device=DEVICE)
        loss = (net(x) - x).pow(2).mean()  # LINE
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        meter.add(loss)
        time.sleep(0.01)


main()
