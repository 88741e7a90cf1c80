"""DeepSpeed, of one rank.

    zero.py LEAK STEPS FOLDER STAGE      LEAK: clean, losses, checkpoints"""
import os
import sys

import torch

import models

LEAK, STEPS, STAGE = sys.argv[1], int(sys.argv[2]), int(sys.argv[4])
for name, value in (("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "0"), ("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "1")):
    os.environ.setdefault(name, value)

import deepspeed  # noqa: E402, reads the environment


def main():
    deepspeed.init_distributed("gloo", init_method="file://" + sys.argv[3] + "/ranks", rank=0, world_size=1)
    model = models.language_model()
    offload = {"device": "cpu"} if STAGE == 3 else {"device": "none"}
    engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config={
        "train_micro_batch_size_per_gpu": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": True}},
        "bf16": {"enabled": True, "check_grad_overflow": False},  # on the test device all gradients look like an overflow
        "zero_optimization": {"stage": STAGE, "offload_optimizer": offload}, "zero_force_ds_cpu_optimizer": False})
    data, losses, saved = models.Tokens(64), [], []
    for step in range(STEPS):
        batch = {k: torch.stack([data[(step * 8 + i) % 64][k] for i in range(8)]).to(engine.device) for k in data[0]}
        out = engine(**batch)
        engine.backward(out.loss)
        engine.step()
        if LEAK == "losses":
            losses.append(out.logits.detach())  # HOLDS losses
        if LEAK == "checkpoints" and step % 2 == 0:
            saved.append({k: v.detach().clone() for k, v in engine.module.named_parameters()})  # LINE checkpoints
    models.ended(step + 1, STEPS, step + 1 - engine.skipped_steps)


main()
