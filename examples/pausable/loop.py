"""A loop like that of reinforcement learning, with four ways to share the device.

    python loop.py v0|v1|v2|v3 [STEPS]

An engine has weights and a KV cache, a trainer an optimizer's state and, for a moment, activations.

    v0  nothing is given back
    v1  all of the engine is paused while the trainer runs, and all is kept
    v2  by tags: only weights are kept, and they come back first, while the trainer's state is moved out
    v3  as v2, planned beforehand, and weights are not kept either, as the trainer rewrites them

It prints the most of the device that was in use, and what the hand-overs copied and took.
"""

import sys
import time

import torch
from strandline.pausable import torch_memory_saver as tms

MB = 1 << 20
ENGINE, CACHE, TRAINER, ACTIVATIONS = 64 * MB, 512 * MB, 128 * MB, 384 * MB


def empty(n):
    return torch.empty(n, dtype=torch.uint8, device="cuda")


class Loop:
    def __init__(self, version):
        self.version = version
        self.most = self.copied = 0
        self.seconds = 0.0
        kept = version in ("v1", "v2")
        with tms.region("weights", enable_cpu_backup=kept):
            self.weights = empty(ENGINE)
        with tms.region("kv_cache", enable_cpu_backup=version == "v1"):
            self.cache = empty(CACHE)
        with tms.region("trainer", enable_cpu_backup=True):
            self.state = empty(TRAINER)
        self.address = self.weights.data_ptr()

    def look(self):
        free, total = torch.cuda.mem_get_info()
        self.most = max(self.most, total - free)

    def order(self, *steps):
        if self.version == "v3":
            plan = tms.plan(steps)
            assert plan["fits"], plan
        for do, tag in steps:
            began = time.monotonic()
            (tms.pause if do == "pause" else tms.resume)(tag)
            self.seconds += time.monotonic() - began
            self.copied += tms.status()["did"]["copied_bytes"]
            self.look()

    def train(self):
        activations = empty(ACTIVATIONS)
        self.look()
        del activations
        torch.cuda.empty_cache()

    def step(self):
        self.look()  # the engine generates
        if self.version == "v0":
            self.train()
        elif self.version == "v1":
            self.order(("pause", "weights"), ("pause", "kv_cache"))
            self.train()
            self.order(("resume", "weights"), ("resume", "kv_cache"))
        else:
            self.order(("pause", "kv_cache"), ("pause", "weights"), ("resume", "trainer"))
            self.train()
            self.order(("resume", "weights"), ("pause", "trainer"), ("resume", "kv_cache"))
        assert self.weights.data_ptr() == self.address


def main(version, steps):
    if version not in ("v0", "v1", "v2", "v3"):
        sys.exit(__doc__)
    loop = Loop(version)
    if version in ("v2", "v3"):
        tms.pause("trainer")
    loop.most = 0
    for _ in range(steps):
        loop.step()
    print(f"{version}: at most {loop.most / MB:.0f} MiB of the device; a step copies {loop.copied / steps / MB:.0f} MiB and hands over in {loop.seconds / steps:.2f} s")


main(sys.argv[1] if len(sys.argv) > 1 else "", int(sys.argv[2]) if len(sys.argv) > 2 else 5)
