"""Trains a small Llama of transformers for three steps, and tells the peak: training.py FOLDER TRAINER BATCH TOKENS

FOLDER/config.json is the model. TRAINER is "fsdp" (fully_shard, fp32 parameters, bf16 computation) or
"ddp" (DistributedDataParallel, autocast), with one rank whose collectives move nothing. The snapshot of
the whole run goes to FOLDER/TRAINER.pickle.
"""
import json
import os
import sys

import torch
import torch.distributed as dist
import transformers
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore


def unchanged(_, bucket):
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


def main():
    folder, trainer, batch, tokens = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    torch.cuda.memory._record_memory_history(max_entries=500_000, stacks="python")
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=1)
    config = transformers.AutoConfig.from_pretrained(folder, attn_implementation="sdpa")
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.config.use_cache = False
    if trainer == "fsdp":
        policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32)
        mesh = dist.init_device_mesh("cuda", (1,))
        for layer in model.model.layers:
            fully_shard(layer, mesh=mesh, mp_policy=policy)
        fully_shard(model, mesh=mesh, mp_policy=policy)
    else:
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])
        model.register_comm_hook(None, unchanged)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(3):
        ids = torch.randint(0, config.vocab_size, (batch, tokens)).cuda()
        with torch.autocast("cuda", torch.bfloat16, enabled=trainer == "ddp"):
            loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    stats = dict(torch.cuda.memory_stats())
    torch.cuda.memory._dump_snapshot(os.path.join(folder, trainer + ".pickle"))
    with open(os.path.join(folder, trainer + ".json"), "w") as f:
        json.dump({"memory_stats": stats}, f)
    print(json.dumps({"parameters": sum(p.numel() for p in model.parameters()), "loss": float(loss),
                      "allocated": stats["allocated_bytes.all.peak"], "requested": stats["requested_bytes.all.peak"],
                      "reserved": stats["reserved_bytes.all.peak"], "device_used": total - free}))


main()
