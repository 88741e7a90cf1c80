"""A training loop that keeps a scalar of each step; PROG names which.

By a graph of autograd: loss (the losses in a list), power (a running sum of what
is computed from them), norm (of a penalty).  In a list, detached: clone,
accuracy, clipped (the norms of gradients), validation (the loss of a pass that is
not followed by a backward one), average (a running mean).
"""
import os

import torch
import torch.nn.functional as F
from torch import nn

PROG = os.environ["PROG"]
kept, total = [], 0


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(256, 256), nn.Linear(256, 10)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


def forward(model):
    x, y = torch.zeros(64, 256).cuda(), torch.zeros(64, dtype=torch.int64).cuda()
    out = model(x)
    return out, y, F.cross_entropy(out, y)  # LOSS


def step(model, opt):
    global total
    opt.zero_grad(set_to_none=True)
    out, y, loss = forward(model)
    loss.backward()
    if PROG == "clipped":
        kept.append(nn.utils.clip_grad_norm_(model.parameters(), 1.0))  # KEPT
    opt.step()
    if PROG == "loss":
        kept.append(loss)
    elif PROG == "power":
        total = total + torch.exp(loss)
    elif PROG == "norm":
        total = total + model.down.weight.norm()
    elif PROG == "clone":
        kept.append(loss.detach().clone())
    elif PROG == "accuracy":
        kept.append((out.argmax(-1) == y).float().mean())
    elif PROG == "validation":
        kept.append(forward(model)[2].detach())
    elif PROG == "average":
        with torch.no_grad():
            total = total * 0.9 + loss * 0.1
        kept.append(total)


def main():
    torch.cuda.memory._record_memory_history(max_entries=200000, stacks="python")
    model = Net().cuda()
    opt = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    for _ in range(8):
        step(model, opt)
    torch.cuda.memory._dump_snapshot(f"{PROG}.pickle")


main()
