"""Trains, and sums the losses with their graphs."""
import time

import torch


def main():
    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    total = 0
    for i in range(60):
        loss = net(torch.rand(8, 64).cuda()).pow(2).mean()  # MADE
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        total = total + loss
        time.sleep(0.1)
    print(float(total))


main()
