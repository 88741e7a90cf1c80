"""torchtitan's Llama, optimizers and loss, in a plain loop: its own trainer needs NCCL and a data set.

    titan.py LEAK STEPS FOLDER      LEAK: clean, losses, logits"""
import sys

import torch
from torchtitan.components.loss import cross_entropy_loss
from torchtitan.components.optimizer import OptimizersContainer
from torchtitan.models.llama3 import Transformer, TransformerModelArgs

import models

LEAK, STEPS = sys.argv[1], int(sys.argv[2])


class Metrics:
    def __init__(self):
        self.losses, self.outputs = [], []

    def add(self, loss, output):
        if LEAK == "losses":
            self.losses.append(loss)  # HOLDS losses
        if LEAK == "logits":
            self.outputs.append(output.detach().float().clone())  # LINE logits


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Transformer(TransformerModelArgs(dim=128, n_layers=2, n_heads=4, vocab_size=models.VOCABULARY, max_seq_len=models.LENGTH)).to(device)
    with torch.no_grad():
        model.init_weights(buffer_device=torch.device(device))
    optimizers = OptimizersContainer([model], torch.optim.AdamW, {"lr": 1e-4})
    metrics = Metrics()
    for step, batch in models.batches(STEPS, device):
        output = model(batch["input_ids"])
        loss = cross_entropy_loss(output, batch["labels"])
        loss.backward()
        optimizers.step()
        optimizers.zero_grad()
        metrics.add(loss * torch.ones(64 * 1024, device=device), output)  # LINE losses
    models.ended(step, STEPS)


main()
