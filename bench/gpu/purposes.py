"""Trains a few steps with AdamW, and prints the bytes of weights, gradients and optimizer state: purposes.py FILE"""
import json
import sys

import torch

torch.cuda.memory._record_memory_history(stacks="python")
net = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(6))).cuda()
optimizer = torch.optim.AdamW(net.parameters())
for _ in range(4):
    optimizer.zero_grad()
    net(torch.rand(64, 1024).cuda()).pow(2).mean().backward()
    optimizer.step()


def size(tensors):
    return sum(t.numel() * t.element_size() for t in tensors if t is not None and t.is_cuda)


torch.cuda.memory._dump_snapshot(sys.argv[1])
print(json.dumps({
    "parameters": size(net.parameters()),
    "gradients": size(p.grad for p in net.parameters()),
    "optimizer": size(v for s in optimizer.state.values() for v in s.values() if torch.is_tensor(v)),
}))
