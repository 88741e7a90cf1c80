"""Loops that are distinguished by steps.

KIND    train (Adam), sgd (plain, no state), manual (p -= lr*g), backward (gradients only), infer, lora, closure
NOTE    none, scope ("## step N ##" by record_function)
STEPS   number of steps
LEAK    none, or MIB kept each EVERY steps
EVERY   1
WHERE   step (in own line), forward (in the module's forward), graph (loss summed)
DUMP    end, each; STREAMS=1: each step on a stream of its own
"""
import os, contextlib
import torch
from torch import nn
import torch.nn.functional as F
env = os.environ.get
KIND, NOTE, STEPS = env("KIND", "train"), env("NOTE", "none"), int(env("STEPS", "3"))
LEAK, EVERY, WHERE = float(env("LEAK", "0")), int(env("EVERY", "1")), env("WHERE", "step")
NAME, LAYERS, DIM = env("NAME", "x"), int(env("LAYERS", "4")), int(env("DIM", "256"))
LATE = int(env("LATE", "0"))
kept = []

def extra():
    return torch.empty(int(LEAK * 2**20), dtype=torch.uint8, device="cuda")  # LEAK

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)
    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))

class Lora(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        for p in inner.parameters(): p.requires_grad_(False)
        self.a, self.b = nn.Linear(DIM, 8, bias=False), nn.Linear(8, DIM, bias=False)
    def forward(self, x):
        return self.inner(x) + self.b(self.a(x))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        blocks = [Block() for _ in range(LAYERS)]
        if KIND == "lora": blocks = [Lora(b) for b in blocks]
        self.blocks = nn.ModuleList(blocks)
    def forward(self, x):
        for i, b in enumerate(self.blocks):
            x = b(x)
        if WHERE == "forward" and LEAK and step_no % EVERY == 0:
            kept.append(extra())
        return x

step_no = 0
def start():
    torch.cuda.memory._record_memory_history(max_entries=200000, stacks=env("STACKS", "python"))

def batch():
    return torch.randn(8 if env("VARY") is None else 8 + step_no % 5, 32, DIM).cuda()

def main():
    global step_no
    if not LATE: start()
    net = Net().cuda()
    opt = None
    params = [p for p in net.parameters() if p.requires_grad]
    if KIND in ("train", "closure"): opt = torch.optim.Adam(params, lr=1e-3)
    if KIND == "sgd": opt = torch.optim.SGD(params, lr=1e-3)
    total = 0
    for n in range(STEPS):
        step_no = n
        if LATE and n == LATE: start()
        scope = torch.profiler.record_function(f"## step {n} ##") if NOTE == "scope" else contextlib.nullcontext()
        stream = torch.cuda.stream(torch.cuda.Stream()) if env("STREAMS") else contextlib.nullcontext()
        with scope, stream:
            x = batch()
            if KIND == "infer":
                with torch.no_grad(): y = net(x).sum().item()
            else:
                y = net(x)
                loss = y.square().mean()
                if WHERE == "graph": total = total + loss
                if KIND != "fwd":
                    loss.backward(retain_graph=WHERE == "graph")
                del y, loss
                if KIND == "manual":
                    with torch.no_grad():
                        for p in params:
                            p -= 1e-3 * p.grad
                            p.grad = None
                elif KIND == "pdata":
                    for p in params:
                        p.data = p.data - 1e-3 * p.grad
                        p.grad = None
                elif KIND == "backward":
                    for p in params: p.grad = None
                elif opt:
                    opt.step(); opt.zero_grad()
            if WHERE == "step" and LEAK and n % EVERY == 0:
                kept.append(extra())
            del x
        if env("DUMP") == "each":
            torch.cuda.memory._dump_snapshot(f"/rig/out/{NAME}.step{n}.pickle")
    if env("DUMP") != "each":
        torch.cuda.memory._dump_snapshot(f"/rig/out/{NAME}.pickle")
main()
