"""Trains a model of Llama 3.1 8B's shape on the test device, where kernels do nothing. Prints the processor time and the
time of each step, in seconds, and of one its allocations and launches.

    large.py STEPS [history]      history: PyTorch's own is on, with stacks of Python"""
import ctypes
import sys
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def counts():
    """The allocations and launches on the test device until now."""
    return torch.cuda.memory_stats()["allocation.all.allocated"], ctypes.CDLL("libcuda.so.1").fk_tick()


def main():
    if "history" in sys.argv:
        torch.cuda.memory._record_memory_history(max_entries=100_000, stacks="python")
    config = LlamaConfig(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8, vocab_size=128256, use_cache=False)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = LlamaForCausalLM(config).train()
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.zeros((1, 8192), dtype=torch.long, device="cuda")
    took, walls = [], []
    for _ in range(int(sys.argv[1])):
        before, began, at = counts(), time.process_time(), time.monotonic()
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()  # as programs log it: they wait for the device
        took.append(time.process_time() - began)
        walls.append(time.monotonic() - at)
        made = [now - then for now, then in zip(counts(), before)]
    print("steps", *(f"{t:.5f}" for t in took))
    print("walls", *(f"{t:.5f}" for t in walls))
    print("made", *made, flush=True)


main()
