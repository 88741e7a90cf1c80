"""A program of 200 steps with the allocator noise of a real one, which leaks so many bytes a step, or not.

    noisy.py SHAPE BYTES SEED [STEPS]

What lives after the shape's own beginning is bounded in every shape: nothing but BYTES a step is a leak.
"""

import concurrent.futures
import random
import sys
import threading

import strandline

shape, leak, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
steps = int(sys.argv[4]) if len(sys.argv) > 4 else 200
r = random.Random(seed)
kept, cache, tables, pending = [], {}, [], []
lock = threading.Lock()
workers = r.choice([0, 2, 4])
scale = r.choice([1, 1, 3])  # how heavy a step is
keys = r.randrange(50, 400)  # of the cache
tau = r.uniform(5, 30)  # steps that a warm-up takes
period = r.randrange(5, 40)  # steps between two flushes
size = r.choice([200, 2000, 40000])  # bytes of what is cached
pieces = r.choice([1, 1, 8, 64])  # that a leak of a step consists of


def work(r):
    """What a step does beside: parse, batch, convert; all of it is freed."""
    records = [{"id": i, "text": "x" * r.randrange(10, 300), "tags": [str(r.random()) for _ in range(3)]} for i in range(r.randrange(50, 200) * scale)]
    batch = [bytearray(int(2 ** r.uniform(6, 20))) for _ in range(r.randrange(5, 20) * scale)]
    text = "".join(x["text"] for x in records)
    loop = []
    loop.append(loop)  # garbage that only the collector frees
    loop.append(bytearray(r.randrange(100, 5000)))
    return len(text) + sum(map(len, batch))


def remember(r):
    """A cache of so many keys that drops the oldest."""
    with lock:
        for _ in range(20):
            k = r.randrange(2 * keys)
            if k not in cache:
                cache[k] = bytearray(r.randrange(size // 2, size))
            if len(cache) > keys:
                del cache[next(iter(cache))]


def step(i, pool):
    rs = [random.Random(r.random()) for _ in range(max(workers, 1))]
    if pool is None:
        work(rs[0])
    else:
        list(pool.map(work, rs))
    if shape == "cache":
        remember(r)
    if shape == "warm-up" and r.random() < 2.718 ** (-i / tau):
        tables.append([bytearray(r.randrange(1 << 10, 1 << 18)) for _ in range(20)])
    if shape == "sawtooth":
        pending.append([bytearray(r.randrange(1 << 10, 1 << 16)) for _ in range(10)])
        if i % period == 0:
            pending.clear()
    if leak:
        kept.append([bytearray(leak // pieces) for _ in range(pieces)])


pool = concurrent.futures.ThreadPoolExecutor(workers) if workers else None
for i in range(steps):
    step(i, pool)
    strandline.step()
