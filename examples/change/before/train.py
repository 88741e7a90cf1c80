"""Trains a small language model for three steps and writes train.pickle."""
import torch
from torch.nn import functional

import rigutil

BATCH, LENGTH, WIDTH, WORDS = 16, 256, 256, 8000


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(WORDS, WIDTH)
        self.up = torch.nn.Linear(WIDTH, 4 * WIDTH)
        self.down = torch.nn.Linear(4 * WIDTH, WIDTH)
        self.head = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        x = self.embed(tokens)
        return self.head(x + self.down(torch.relu(self.up(x))))


def loss_of(logits, targets):
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def main():
    rigutil.start_recording()
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(3):
        tokens = torch.zeros(BATCH, LENGTH + 1, dtype=torch.int64).cuda()
        loss_of(model(tokens[:, :-1]), tokens[:, 1:]).backward()
        optimizer.step()
        optimizer.zero_grad()
    rigutil.dump("train", {})


main()
