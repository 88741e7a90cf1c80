"""Makes allocator requests of a seeded random order, and dumps the history with memory_stats():
allocations.py FILE SEED OPERATIONS [LIMIT_MIB] [pool] [graph]

FILE.pickle is the snapshot and FILE.json memory_stats() of that moment. Requests come from two
streams, with record_stream and empty_cache between them; with "pool" a third of them goes to a
MemPool, and with "graph" training steps are captured as CUDA graphs and replayed.
"""
import json
import random
import sys

import torch

KIB, MIB = 1 << 10, 1 << 20


def pick_size(rng):
    kind = rng.random()
    if kind < 0.35:
        return rng.randrange(1, 64 * KIB)
    if kind < 0.55:
        return rng.randrange(64 * KIB, MIB + 4 * KIB)
    if kind < 0.65:
        return rng.choice((512, MIB - 1, MIB, MIB + 1, 2 * MIB, 10 * MIB - 1, 10 * MIB, 20 * MIB, 1 << rng.randrange(9, 27)))
    if kind < 0.85:
        return rng.randrange(MIB, 12 * MIB)
    return rng.randrange(10 * MIB, 90 * MIB)


def request(live, size, stream):
    with torch.cuda.stream(stream):
        live.append((torch.empty(size, dtype=torch.uint8, device="cuda"), stream))


def operate(rng, operations, limit, pool):
    streams = [torch.cuda.current_stream(), torch.cuda.Stream()]
    live, held, failed = [], 0, 0

    def release():
        i = rng.randrange(len(live))
        live[i], live[-1] = live[-1], live[i]
        return live.pop()[0].numel()

    for n in range(operations):
        target = limit * (0.15 + 0.85 * abs((n / operations * 5) % 2 - 1))
        r = rng.random()
        if r < 0.004:
            torch.cuda.empty_cache()
        elif r < 0.02 and live:
            tensor, owner = rng.choice(live)
            other = rng.choice(streams)
            if other != owner:
                with torch.cuda.stream(other):
                    tensor.fill_(1)
                tensor.record_stream(other)
            del tensor
        elif r < 0.024:
            torch.cuda.synchronize()
        elif live and (held > target or r < 0.25):
            held -= release()
        else:
            size, stream = pick_size(rng), rng.choice(streams)
            try:
                if pool is not None and rng.random() < 0.3:
                    with torch.cuda.use_mem_pool(pool):
                        request(live, size, stream)
                else:
                    request(live, size, stream)
                held += size
            except torch.OutOfMemoryError:
                failed += 1
                for _ in range(min(len(live), 5)):
                    held -= release()
    return live, failed


def capture(model, x):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            model(x).sum().backward()
    torch.cuda.current_stream().wait_stream(side)
    graphs = []
    for n in range(2):
        model.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=graphs[0][0].pool() if n else None):
            out = model(x * (n + 1))
            out.sum().backward()
        graphs.append((graph, out))
    for graph, _ in graphs:
        graph.replay()
    torch.cuda.synchronize()
    return graphs


def main():
    path, seed, operations = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    limit = int(sys.argv[4]) * MIB if len(sys.argv) > 4 else 0
    words = sys.argv[5:]
    if limit:
        torch.cuda.set_per_process_memory_fraction(limit / torch.cuda.get_device_properties(0).total_memory)
    torch.cuda.memory._record_memory_history(max_entries=200_000, stacks="python")
    rng = random.Random(seed)
    pool = torch.cuda.MemPool() if "pool" in words else None
    graphs = []
    if "graph" in words:
        model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512)).cuda()
        graphs = capture(model, torch.rand(256, 512, device="cuda"))
    live, failed = operate(rng, operations, (limit or 4096 * MIB), pool)
    torch.cuda.synchronize()
    stats = dict(torch.cuda.memory_stats())
    torch.cuda.memory._dump_snapshot(path + ".pickle")
    with open(path + ".json", "w") as f:
        json.dump({"torch": torch.__version__, "failed": failed, "memory_stats": stats}, f)
    del live, graphs


main()
