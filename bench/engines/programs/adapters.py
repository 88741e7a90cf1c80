"""PEFT's LoRA under a plain loop.

    adapters.py LEAK STEPS FOLDER      LEAK: clean, added"""
import sys

import torch
from peft import LoraConfig, get_peft_model

import models

LEAK, STEPS = sys.argv[1], int(sys.argv[2])


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    config = LoraConfig(r=128, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    model = get_peft_model(models.language_model(), config).to(device)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    for step, batch in models.batches(STEPS, device):
        if LEAK == "added" and step % 2 == 0:
            model.add_adapter(f"user{step}", config)  # LINE added
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    models.ended(step, STEPS)


main()
