"""A trainer that logs torch.cuda.memory_summary() after every 50 steps, and keeps
one batch of logits a step for a metric that is computed at the end: a leak, as it
is seen in a log."""
import logging
import time

import torch
from torch import nn

EVERY, TABLES, PAUSE = 50, 8, 12


def main():
    logging.basicConfig(filename="train.log", level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    device = torch.device("cuda")
    model = nn.Sequential(nn.Linear(2048, 8192), nn.GELU(), nn.Linear(8192, 32000)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    logits_of_epoch = []
    for step in range(1, EVERY * TABLES + 1):
        x = torch.zeros(64, 2048, device=device)
        logits = model(x)
        loss = logits.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        logits_of_epoch.append(logits.detach())
        if step % EVERY == 0:
            logging.info("step %d\n%s", step, torch.cuda.memory_summary(abbreviated=True))
            time.sleep(PAUSE)


main()
