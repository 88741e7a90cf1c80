"""A rank of a loop of rollout and update, which sleeps and wakes by tags, with one planted failure.

It reads orders, one JSON object a line: what it has, for how many cycles, and its failure. Each is
done by a process of its own.
"""
import ctypes
import json
import os
import sys
import time

import torch
from strandline.pausable import torch_memory_saver as tms

MIB = 1 << 20
driver = ctypes.CDLL("libcuda.so.1")


def empty(mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


def communicator(mib):
    """Memory that a library takes from the driver, as NCCL does for a process group."""
    at = ctypes.c_ulonglong()
    if driver.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(mib * MIB)):
        raise MemoryError
    return at


class Rank:
    def __init__(self, order):
        self.order, self.fault = order, order.get("fault") or {}
        self.memory, self.kept, self.driver, self.graph = {}, [], [], None
        for tag, mib in order["tags"].items():
            with tms.region(tag, enable_cpu_backup=False):
                self.memory[tag] = empty(mib)
        if order.get("resident"):
            self.kept.append(empty(order["resident"]))
        if order.get("communicator"):
            self.driver.append(communicator(order["communicator"]))
        if self.fault.get("kind") == "graphs":
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.kept.append(empty(self.fault["mib"]))

    def begins(self, cycle, kind):
        return self.fault.get("kind") == kind and cycle >= self.fault.get("from", 0)

    def sleep(self, cycle):
        for tag in reversed(list(self.memory)):
            stays = self.fault.get("kind") == "awake" and tag in self.fault["tags"] and cycle in self.fault.get("cycles", range(99))
            if not stays:
                tms.pause(tag)

    def update(self, cycle):
        activations = empty(self.order["activations"])
        del activations
        if self.begins(cycle, "shard") and not (self.fault.get("from") != cycle and "from" in self.fault or self.fault.get("made")):
            self.kept.append(empty(self.fault["mib"]))
            self.fault["made"] = True
        if self.begins(cycle, "nccl") and not self.fault.get("made"):
            self.driver.append(communicator(self.fault["mib"]))
            self.fault["made"] = True
        if self.begins(cycle, "tensors-again"):
            self.kept.append(empty(self.fault["mib"]))
        if self.begins(cycle, "driver-again"):
            self.driver.append(communicator(self.fault["mib"]))
        if self.fault.get("kind") != "cache":
            torch.cuda.empty_cache()

    def wake(self, cycle):
        for tag in self.memory:
            tms.resume(tag)
        if self.begins(cycle, "tag-again"):
            with tms.region(self.fault["tag"], enable_cpu_backup=False):
                self.kept.append(empty(self.fault["mib"]))


def loop(order):
    torch.cuda.set_device(int(os.environ["RANK"]))
    tms.set(log=order["log"])
    rank = Rank(order)
    print(os.getpid(), flush=True)
    sys.stdin.readline()  # until somebody watches
    for cycle in range(order["cycles"]):
        time.sleep(order["seconds"])
        rank.sleep(cycle)
        time.sleep(order["seconds"] / 2)
        rank.update(cycle)
        time.sleep(order["seconds"] / 2)
        if cycle == order["cycles"] - 1:
            print("asleep", flush=True)
            sys.stdin.readline()  # until the driver has asked
        rank.wake(cycle)
    time.sleep(order["seconds"])
    print("done", flush=True)
    sys.stdin.readline()


def main():
    while line := sys.stdin.readline():
        child = os.fork()  # PyTorch is imported once
        if child == 0:
            try:
                loop(json.loads(line))
            finally:
                sys.stdout.flush()
                os._exit(0)
        os.waitpid(child, 0)
        print("ended", flush=True)


main()
