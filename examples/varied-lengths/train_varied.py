"""Trains on texts of varied length, and keeps the scores of the last batches.

A batch is padded to its longest text, so that its tensors have another size each
time: what the batches before left free is too small for a longer one. The scores
are small, and are kept on the device for a while: the memory around them cannot
go back to the driver. Run it once as it is, and once with
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; the argument names the snapshot.
"""
import collections
import random
import sys

import torch

import rigutil

BATCH, WIDTH, WORDS, LAST = 64, 512, 8000, 6


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(WORDS, WIDTH)
        self.up = torch.nn.Linear(WIDTH, 4 * WIDTH)
        self.down = torch.nn.Linear(4 * WIDTH, WORDS // 8)

    def forward(self, tokens):
        return self.down(torch.relu(self.up(self.embed(tokens))))


def score(logits):
    return logits.amax(dim=1).repeat(1, 6)


def main():
    rng = random.Random(4)
    rigutil.start_recording()
    model = Tagger().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scores = collections.deque(maxlen=LAST)
    for step in range(16):
        tokens = torch.zeros(BATCH, rng.randrange(100, 1000), dtype=torch.int64).cuda()
        logits = model(tokens)
        scores.append(score(logits.detach()))
        logits.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        del tokens, logits
        print(f"step {step} allocated {torch.cuda.memory_allocated() >> 20} MiB reserved {torch.cuda.memory_reserved() >> 20} MiB", flush=True)
    rigutil.dump(sys.argv[1], {})


main()
