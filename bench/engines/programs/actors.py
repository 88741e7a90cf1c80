"""Ray on one machine: an actor that keeps what it is sent, and one that does not.

    actors.py SECONDS      prints the process ids of the actors"""
import os
import sys
import time

import ray

for attempt in range(6):  # a busy machine takes longer than it waits
    try:
        ray.init(num_cpus=2, include_dashboard=False, object_store_memory=80 << 20, logging_level="ERROR")
        break
    except Exception:
        ray.shutdown()


@ray.remote
class Buffer:
    def __init__(self, keeps):
        self.keeps, self.kept = keeps, []

    def add(self, i):
        part = [str(i + k) for k in range(12000)]
        if self.keeps:
            self.kept.append(part)  # LINE kept
        return os.getpid()


actors = [Buffer.options(name="replay").remote(True), Buffer.options(name="scratch").remote(False)]
print(*ray.get([a.add.remote(0) for a in actors]), flush=True)
end, i = time.time() + float(sys.argv[1]), 0
while time.time() < end:
    ray.get([a.add.remote(i) for a in actors])
    i += 1
    time.sleep(0.02)
