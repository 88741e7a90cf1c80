"""Tensors that are reallocated and larger each time; PROG names what is done.

const, varied, view   the outputs of each step are appended: all of a batch, of
                      one of any size, and a part of one
bounded, epoch        at most so many rows are kept; they are dropped now and then
stops                 only the first steps append
work, longer          scratch memory is made anew when it is too small for the work
decode, session       keys and values are appended for each token of one request,
                      or of several requests that have one cache
PARTS=N writes a snapshot after each N steps, too.
"""
import os
import random

import torch
import torch.nn.functional as F
from torch import nn

PROG, STEPS, DIM = os.environ["PROG"], int(os.environ.get("STEPS", "12")), 256
rng = random.Random(7)


def dump(name):
    torch.cuda.memory._dump_snapshot(f"{name}.pickle")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(DIM, DIM), nn.Linear(DIM, DIM)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Log:
    def __init__(self):
        self.rows = torch.empty(0, DIM, device="cuda")

    def add(self, x):
        self.rows = torch.cat([self.rows, x])  # GROWS

    def scratch(self, n):
        if self.rows.shape[0] < n:
            self.rows = torch.empty(n, DIM, device="cuda")
        return self.rows


def step(model, opt, log, i):
    n = {"varied": rng.randrange(300, 800), "view": rng.randrange(500, 800), "work": 512 + 512 * i, "longer": 512 + 512 * i}.get(PROG, 512)
    opt.zero_grad(set_to_none=True)
    out = model(torch.zeros(n, DIM).cuda())
    out.pow(2).mean().backward()
    opt.step()
    out = out.detach()
    if PROG in ("work", "longer"):
        log.scratch(n if PROG == "work" else n * n // 512)
    elif PROG == "view":
        log.add(out[:rng.randrange(200, 500)])
    elif PROG != "stops" or i < STEPS // 2:
        log.add(out)
    if PROG == "bounded":
        log.rows = log.rows[-1536:].clone()
    elif PROG == "epoch" and i % 8 == 7:
        log.rows = torch.empty(0, DIM, device="cuda")


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM)

    def forward(self, x, cache):
        q, k, v = self.qkv(x).chunk(3, -1)
        k, v = cache.update(k, v)
        return torch.softmax(q @ k.transpose(-2, -1), -1) @ v


class Cache:
    kept = None

    def update(self, *new):
        if self.kept is None:
            self.kept = [x.contiguous() for x in new]
        else:
            self.kept = [torch.cat([a, b], dim=1) for a, b in zip(self.kept, new)]  # APPENDED
        return self.kept


def generate(model, cache, tokens):
    x = torch.zeros(64, 4, DIM).cuda()
    for _ in range(tokens):
        x = model(x, cache)[:, -1:]


# The files each, short and longer have PARTS=1 and STEPS=5: each and short have PROG=const,
# short with ENTRIES=20 events of history, and longer has a buffer as the square of the work.
def main():
    name, parts = os.environ.get("NAME", PROG), int(os.environ.get("PARTS", "0"))
    torch.cuda.memory._record_memory_history(max_entries=int(os.environ.get("ENTRIES", "200000")), stacks="python")
    if PROG in ("decode", "session"):
        with torch.inference_mode():
            model, cache = Attention().cuda(), Cache()
            for _ in range(6 if PROG == "session" else 1):
                generate(model, cache, 8 if PROG == "session" else 40)
        return dump(PROG)
    model, log = Net().cuda(), Log()
    opt = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    for i in range(STEPS):
        step(model, opt, log, i)
        if parts and (i + 1) % parts == 0:
            dump(f"{name}.{i + 1}")
    if not parts:
        dump(PROG)


main()
