"""Trains a small language model with a large vocabulary.  Its loss reads the
logits three times in float32 and converts them each time, and it hands the
logits back, so that they stay until the backward pass is over.

Records with C++ frames (`stacks="all"`, PyTorch's default) and writes
step-3.pickle after the third step.
"""
import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY, WIDTH, TOKENS, LAYERS = 128_256, 512, 2048, 2


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def loss_of(model, tokens):
    logits = model(tokens)
    scores, targets = logits[0, :-1], tokens[0, 1:]
    loss = F.cross_entropy(scores.float(), targets)
    penalty = scores.float().logsumexp(-1).square().mean()
    spread = scores.float().square().mean()
    return loss + 1e-4 * penalty + 1e-4 * spread, logits


def main():
    torch.cuda.memory._record_memory_history(stacks="all")
    model = Model().to("cuda", torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(3):
        tokens = torch.zeros(1, TOKENS, dtype=torch.int64, device="cuda")
        loss, logits = loss_of(model, tokens)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.memory._dump_snapshot("step-3.pickle")


main()
