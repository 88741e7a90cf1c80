"""A loop under Hugging Face's Accelerate.

    accelerated.py LEAK STEPS FOLDER      LEAK: clean, losses, logger, ema"""
import sys

import torch
from accelerate import Accelerator

import models

LEAK, STEPS = sys.argv[1], int(sys.argv[2])


class Logger:
    """Logs the mean of the last losses, as people write it."""

    def __init__(self):
        self.values = []

    def log(self, value):
        self.values.append(value if LEAK == "losses" else value.item())  # HOLDS losses


def main():
    accelerator = Accelerator()
    model = models.language_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loader = torch.utils.data.DataLoader(models.Tokens(64), batch_size=8)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    logger, step, history, means = Logger(), 0, {}, None
    while step < STEPS:
        for batch in loader:
            out = model(**batch)
            accelerator.backward(out.loss)
            optimizer.step()
            optimizer.zero_grad()
            logger.log(out.loss)
            if LEAK == "logger":
                history[step] = out.logits.detach().float()  # HOLDS logger
            if LEAK == "ema":  # does not grow
                means = [p.detach().clone() for p in model.parameters()]
            step += 1
    models.ended(step, STEPS)


main()
