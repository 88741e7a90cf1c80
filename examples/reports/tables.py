"""Serves prompts on eight devices, and prints PyTorch's table of each before and after a test
with long prompts, of which devices 0 and 6 get some."""
import torch


def serve(device, tokens):
    hidden = torch.empty(tokens, 4096, dtype=torch.bfloat16, device=f"cuda:{device}")
    for _ in range(3):
        hidden = torch.empty_like(hidden)


def report(when):
    print(f"{when}:", flush=True)
    for device in range(8):
        print(torch.cuda.memory_summary(device), flush=True)


weights = [torch.empty(6 << 30, dtype=torch.uint8, device=f"cuda:{d}") for d in range(8)]
for device in range(8):
    serve(device, 2048)
report("before the test")
for device in (0, 6):
    for tokens in (8192, 20000, 36000):
        serve(device, tokens)
report("after the test")
