"""Copies that are of different tensors, or of pieces: no two are of one.  With
C++ frames; writes honest.pickle."""
import torch
from torch import nn
import torch.nn.functional as F

WIDTH, TOKENS = 2048, 8192


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.q = nn.Linear(WIDTH, WIDTH, bias=False)
        self.k = nn.Linear(WIDTH, WIDTH // 4, bias=False)
        self.gate = nn.Linear(WIDTH, 4 * WIDTH, bias=False)

    def forward(self, x):
        q, k, v = (t.contiguous() for t in self.qkv(x).chunk(3, -1))
        q, k = q.float(), k.float()
        y = (q * k).to(x.dtype) + v
        q, k = self.q(y), self.k(y)
        k = k.view(1, TOKENS, WIDTH // 4, 1).expand(-1, -1, -1, 4).reshape(1, TOKENS, WIDTH)
        gate, up = self.gate(y).chunk(2, -1)
        return (q * k).sum() + (gate.float() * up.contiguous()).sum()


def main():
    torch.cuda.memory._record_memory_history(stacks="all")
    model = Attention().to("cuda", torch.bfloat16)
    for _ in range(2):
        x = torch.zeros(1, TOKENS, WIDTH, dtype=torch.bfloat16, device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x)
        loss.backward()
        model.zero_grad()
    with torch.inference_mode():
        model(x)
    torch.cuda.memory._dump_snapshot("honest.pickle")


main()
