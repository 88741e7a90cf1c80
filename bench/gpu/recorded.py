"""Trains for SECONDS while PyTorch records it, and dumps that to FILE: recorded.py FILE SECONDS"""
import sys
import time

import torch

torch.cuda.memory._record_memory_history(max_entries=2_000_000, stacks="python")
net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64)).cuda()
optimizer = torch.optim.AdamW(net.parameters())


def step(i):
    x = torch.rand(8 + i % 5, 64).cuda()
    loss = net(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


step(0)
print("ready", flush=True)
end, i = time.time() + float(sys.argv[2]), 0
while time.time() < end:
    step(i)
    i += 1
    time.sleep(0.002)
torch.cuda.memory._dump_snapshot(sys.argv[1])
