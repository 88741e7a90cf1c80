"""FSDP2 on one process with gloo, on the CPU.

    sharded.py LEAK STEPS FOLDER      LEAK: clean, losses, hook"""
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

import models

LEAK, STEPS = sys.argv[1], int(sys.argv[2])
os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")


def main():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    mesh = dist.init_device_mesh("cpu", (1,))
    model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(4)))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    outputs = []
    for step in range(STEPS * 4):
        x = torch.zeros(128, 256)
        out = model(x)
        loss = out.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if LEAK == "losses":
            outputs.append(out.detach() * 2)  # LINE losses
        if LEAK == "hook":
            model[0].register_forward_hook(lambda module, args, out, kept=x.clone(): None)  # LINE hook
    dist.destroy_process_group()
    models.ended(step + 1, STEPS * 4)


main()
