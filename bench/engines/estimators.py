#!/usr/bin/env python3
"""Asks estimators before a run about runs whose peak was published, and prints a table.

    bench/engines/estimators.py --torch DIR [--strandline PATH]

    --torch DIR  PyTorch with accelerate and deepspeed, as setup.sh leaves it

accelerate estimates the training with Adam in one process, from a model's weights, as `accelerate estimate-memory`
does; it is asked for float32 here. DeepSpeed estimates the states of the model for ZeRO 2 or 3, without activations.
Models are made of their shapes alone, since the hub is not needed for that.
"""
import argparse
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cases"))
GIB = 1 << 30
LLAMA = {"vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8}
LLAMA70 = dict(LLAMA, hidden_size=8192, intermediate_size=28672, num_hidden_layers=80, num_attention_heads=64)
QWEN = {"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 2,
        "tie_word_embeddings": True, "attention_bias": True}
# The name, the shape, GPUs of a node and nodes, the stage of ZeRO, the plan's flags, and the published peak in GiB.
RUNS = [
    ("Llama-3.1-8B, 8 H100, torchtitan", LLAMA, 8, 1, 3, "--model Llama-3.1-8B --gpu H100 --gpus 8 --seq 8192 --batch 2 --checkpointing selective-op", 82.4),
    ("Llama-3.1-8B, 128 H100, torchtitan", LLAMA, 8, 16, 3, "--model Llama-3.1-8B --gpu H100 --gpus 128 --seq 8192 --batch 2 --checkpointing selective-op", 67.0),
    ("Llama-3.1-70B, 256 H100, TP 8, torchtitan", LLAMA70, 8, 32, 3, "--model Llama-3.1-70B --gpu H100 --gpus 256 --tp 8 --seq 8192 --batch 16", 71.9),
    ("Qwen2.5-3B, 8 A100, DeepSpeed ZeRO 2", QWEN, 8, 1, 2, "--model Qwen2.5-3B --gpu A100 --gpus 8 --seq 2048 --batch 4 --trainer zero2", 34.5),
]


def inside():
    """Runs where PyTorch is: prints what accelerate and DeepSpeed estimate of each run, in GiB, and their seconds."""
    import contextlib
    import io
    import re

    import torch
    from accelerate.commands.estimate import estimate_training_usage
    from accelerate.utils import calculate_maximum_sizes
    from deepspeed.runtime.zero.stage3 import estimate_zero3_model_states_mem_needs_all_cold
    from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs_all_cold
    from transformers import LlamaConfig, LlamaForCausalLM

    for _, shape, gpus, nodes, stage, _, _ in RUNS:
        with torch.device("meta"):
            model = LlamaForCausalLM(LlamaConfig(**shape))
        parameters = sum(p.numel() for p in model.parameters())
        began = time.time()
        total, _ = calculate_maximum_sizes(model)
        hf = max(estimate_training_usage(total, "float32").values()) / GIB
        took = time.time() - began
        began = time.time()
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            if stage == 2:
                estimate_zero2_model_states_mem_needs_all_cold(parameters, gpus, nodes)
            else:
                largest = max(sum(p.numel() for p in m.parameters(recurse=False)) for m in model.modules())
                estimate_zero3_model_states_mem_needs_all_cold(parameters, largest, gpus, nodes)
        # A line for each set-up: memory of the host, of a GPU, and its settings. No offload is asked for here.
        rows = [m for m in re.findall(r"([\d.]+)GB \| +([\d.]+)GB \| (.*)", text.getvalue()) if "cpu" not in m[2]]
        print("RESULT", json.dumps([hf, took, float(rows[-1][1]), time.time() - began]), flush=True)


def main():
    if sys.argv[1:] == ["inside"]:
        return inside()
    from run import built
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--torch", required=True)
    parser.add_argument("--strandline")
    o = parser.parse_args()
    strandline = os.path.abspath(o.strandline or built())
    began = time.time()
    done = subprocess.run([os.path.join(HERE, "..", "pytorch", "run.sh"), o.torch, os.path.abspath(__file__), "inside"], capture_output=True, text=True)
    got = [json.loads(line[7:]) for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if len(got) != len(RUNS):
        sys.exit(done.stderr)
    whole = (time.time() - began) / len(RUNS)
    for (name, _, _, _, _, flags, true), (hf, _, ds, _) in zip(RUNS, got):
        began = time.time()
        text = subprocess.run([strandline, "plan", "train", "--json", *flags.split()], capture_output=True, text=True).stdout
        peak = json.loads(text)["peak"]
        low, high = peak["low_bytes"] / GIB, peak["high_bytes"] / GIB
        print(f"{name} | {true:.1f} | {low:.1f} to {high:.1f}, {time.time() - began:.1f} s | {hf:.1f} | {ds:.1f}, {whole:.0f} s", flush=True)


if __name__ == "__main__":
    main()
