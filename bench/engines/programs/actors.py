"""Ray on one machine: an actor that keeps what it is sent, and one that does not.

    actors.py SECONDS [NODES [DEVICE]]      prints the process ids of the actors

With two NODES each actor has a raylet of its own. On a DEVICE (cuda) they keep tensors."""
import os
import signal
import sys
import time

import ray

SECONDS, NODES, DEVICE = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1, sys.argv[3] if len(sys.argv) > 3 else ""
STORE = 80 << 20


def start():
    if NODES == 1:
        ray.init(address="local", num_cpus=2, num_gpus=2 if DEVICE else None, include_dashboard=False, object_store_memory=STORE, logging_level="ERROR")
        return None
    from ray.cluster_utils import Cluster
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "num_gpus": 1 if DEVICE else 0, "object_store_memory": STORE, "include_dashboard": False, "resources": {"node0": 1}})
    for i in range(1, NODES):
        cluster.add_node(num_cpus=1, num_gpus=1 if DEVICE else 0, object_store_memory=STORE, resources={f"node{i}": 1})
    ray.init(address=cluster.address, logging_level="ERROR")
    return cluster


for attempt in range(6):  # a busy machine takes longer than it waits
    try:
        cluster = start()
        break
    except Exception as e:
        print(e, file=sys.stderr)
        ray.shutdown()


signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # so that Ray ends what it has started


class Actor:
    def __init__(self, keeps):
        self.keeps, self.kept = keeps, []

    def add(self, i):
        if DEVICE:
            import torch
            part = torch.empty(256 << 10, dtype=torch.uint8, device=DEVICE)
            if self.keeps:
                self.kept.append(torch.empty_like(part))  # LINE device
        else:
            part = [str(i + k) for k in range(12000)]  # LINE kept
            if self.keeps:
                self.kept.append(part)  # LINE kept
        return os.getpid()


@ray.remote(num_cpus=1, num_gpus=1 if DEVICE else 0)
class Replay(Actor):
    pass


@ray.remote(num_cpus=1, num_gpus=1 if DEVICE else 0)
class Scratch(Actor):
    pass


where = [{f"node{i % NODES}": 0.1} if NODES > 1 else {} for i in range(2)]
actors = [Replay.options(name="replay", resources=where[0]).remote(True), Scratch.options(name="scratch", resources=where[1]).remote(False)]
print(*ray.get([a.add.remote(0) for a in actors]), flush=True)
end, i = time.time() + SECONDS, 0
try:
    while time.time() < end:
        ray.get([a.add.remote(i) for a in actors])
        i += 1
        time.sleep(0.02)
finally:
    ray.shutdown()
    if cluster:
        cluster.shutdown()
