"""Serves requests and keeps each answer in a list of the module."""
import time

import torch

CACHE = []


def serve(net, x):
    y = net(x).repeat(1, 512)  # MADE
    CACHE.append(y)
    return y.sum()


def main():
    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64)).cuda()
    with torch.no_grad():
        for i in range(60):
            serve(net, torch.rand(8, 64).cuda()).item()
            time.sleep(0.1)


main()
