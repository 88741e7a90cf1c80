"""Megatron-core's GPTModel on one process: its own layers, embedding and loss, in a plain loop.

    megatrained.py LEAK STEPS FOLDER      LEAK: clean, losses, logits"""
import os
import sys

import torch
from megatron.core import parallel_state
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
from megatron.core.transformer.transformer_config import TransformerConfig

import models

LEAK, STEPS = sys.argv[1], int(sys.argv[2])


class Run:
    def __init__(self):
        self.losses, self.seen = [], []

    def log(self, loss, output):
        if LEAK == "losses":
            self.losses.append(loss)  # HOLDS losses
        if LEAK == "logits":
            self.seen.append(output.detach().clone())  # LINE logits


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    store = os.path.join(sys.argv[3], "store")
    torch.distributed.init_process_group("gloo", init_method="file://" + store, rank=0, world_size=1)
    parallel_state.initialize_model_parallel()
    if device == "cuda":
        model_parallel_cuda_manual_seed(1)
    config = TransformerConfig(num_layers=2, hidden_size=128, num_attention_heads=4, use_cpu_initialization=True, pipeline_dtype=torch.float32,
                               attention_dropout=0.0, hidden_dropout=0.0)
    model = GPTModel(config, get_gpt_layer_local_spec(), vocab_size=models.VOCABULARY, max_sequence_length=models.LENGTH).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    run = Run()
    positions = torch.arange(models.LENGTH, device=device).unsqueeze(0).expand(8, -1)
    mask = torch.ones(1, 1, models.LENGTH, models.LENGTH, dtype=torch.bool, device=device).triu(1)
    for step, batch in models.batches(STEPS, device):
        output = model(batch["input_ids"], positions, mask, labels=batch["labels"])
        loss = output.mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        run.log(loss * torch.ones(16 * 1024, device=device), output.repeat(64, 8))  # LINE losses
    models.ended(step, STEPS)


main()
