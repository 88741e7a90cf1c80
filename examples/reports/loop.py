"""Adds up losses whose graph it keeps, and prints main memory and device memory."""
import resource

import torch

total = torch.zeros(1, device="cuda")
for step in range(300001):
    loss = torch.rand(1, device="cuda").requires_grad_()
    total = total + loss
    if step % 15000 == 0:
        host = int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() >> 20
        print(f"iter {step}, mem: {host}Mb, gpu mem:{torch.cuda.memory_allocated() >> 20}Mb", flush=True)
