"""Programs as people write them, beside the random ones of features.py: training steps,
streams, pools, graphs, storage that is given back and taken again, pinned memory.
Kernels do nothing on the substitute device; modules, autograd and optimizers are real.
"""
import threading

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

MIB = 1 << 20
RELEASE = tuple(int(n) for n in torch.__version__.split(".")[:2])
NAMES = ("checkpointing", "optimizers", "streams", "many_pools", "graph_pools", "storages", "loading", "caching",
         "threads", "limits", "raw")


def empty(n):
    return torch.empty(n, dtype=torch.uint8, device="cuda")


class Block(nn.Module):
    """A transformer block without kernels that need values."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        x = x + self.out(torch.softmax(q @ k.transpose(-1, -2), dim=-1) @ v)
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self, width=256, layers=4, checkpoints=False):
        super().__init__()
        self.embed, self.head = nn.Embedding(1000, width), nn.Linear(width, 1000)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.checkpoints = checkpoints

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpoints else block(x)
        return self.head(x)


def steps(rng, model, optimizer, count, widths=(64, 96, 128, 200), accumulate=1, to_none=True):
    """Training steps on batches of drawn lengths."""
    for step in range(count):
        tokens = torch.zeros(rng.choice((2, 4, 7)), rng.choice(widths), dtype=torch.long, device="cuda")
        logits = model(tokens)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
        loss.backward()
        if (step + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad(set_to_none=to_none)
        del tokens, logits, loss


def training(rng, kind, checkpoints=False, count=12, accumulate=1, **options):
    model = Model(checkpoints=checkpoints).cuda()
    optimizer = kind(model.parameters(), lr=1e-3, **options)
    steps(rng, model, optimizer, count, accumulate=accumulate)
    return model, optimizer


def checkpointing(rng, churn):
    """Activation checkpointing, gradient accumulation, and saved tensors on the host."""
    kept = training(rng, torch.optim.AdamW, checkpoints=True, accumulate=3)
    model, optimizer = kept
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        steps(rng, model, optimizer, 3)
    return kept


def optimizers(rng, churn):
    """Optimizers that take lists of tensors, one after the other, with and without capture."""
    kept = []
    for kind, options in ((torch.optim.Adam, {"foreach": True}), (torch.optim.SGD, {"foreach": True, "momentum": 0.9}),
                          (torch.optim.AdamW, {"foreach": True, "amsgrad": True}), (torch.optim.RMSprop, {"foreach": True}),
                          (torch.optim.Adam, {"foreach": False, "capturable": True})):
        model, optimizer = training(rng, kind, count=4, **options)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        steps(rng, model, optimizer, 2, to_none=False)
        kept.append((model, optimizer))
        del kept[:-2], model, optimizer
        if rng.random() < 0.5:
            torch.cuda.empty_cache()
    return kept


def streams(rng, churn, count=300):
    """Producers and consumers on eight streams, by events and record_stream."""
    side = [torch.cuda.Stream(priority=-(i % 2)) for i in range(8)]
    queue, kept = [], []
    for _ in range(count):
        a, b = rng.sample(side, 2)
        with torch.cuda.stream(a):
            x = empty(rng.randrange(1, 12 * MIB)).fill_(1)
            done = a.record_event()
        with torch.cuda.stream(b):
            b.wait_event(done)
            y = x + 1
            if rng.random() < 0.7:
                x.record_stream(b)
        queue.append((x, y))
        del x, y
        if len(queue) > rng.randrange(2, 20):
            x, y = queue.pop(rng.randrange(len(queue)))
            kept.append(y)
            if rng.random() < 0.3:
                y.record_stream(rng.choice(side))
            del x, y
        if len(kept) > 12:
            del kept[rng.randrange(len(kept))]
        if rng.random() < 0.03:
            rng.choice(side).synchronize()
    return queue, kept


def many_pools(rng, churn, count=500):
    """Forty MemPools that come and go, with memory of theirs that outlives them."""
    pools, kept = [], []
    for _ in range(count):
        r = rng.random()
        if r < 0.08 and len(pools) < 40 or not pools:
            pools.append(torch.cuda.MemPool())
        elif r < 0.12:
            del pools[rng.randrange(len(pools))]
        elif r < 0.14:
            with torch.cuda.use_mem_pool(rng.choice(pools)):
                torch.cuda.empty_cache()
        elif r < 0.8:
            with torch.cuda.use_mem_pool(rng.choice(pools)):
                kept += [empty(rng.randrange(1, 9 * MIB)) for _ in range(rng.randrange(1, 4))]
        else:
            kept.append(empty(rng.randrange(1, 5 * MIB)))
        while len(kept) > 60:
            del kept[rng.randrange(len(kept))]
    torch.cuda.empty_cache()
    return pools, kept


def graph_pools(rng, churn):
    """Graphs that share a pool, one with MemPools in it, captured again after a reset."""
    model = Model(layers=2).cuda()
    tokens = torch.zeros(2, 64, dtype=torch.long, device="cuda")
    shared = torch.cuda.graph_pool_handle()
    side = [torch.cuda.MemPool() for _ in range(2 if RELEASE >= (2, 10) else 0)]
    graphs, kept = [], []
    with torch.no_grad():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            model(tokens)
        for turn in range(6):
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g, pool=shared if turn % 2 else None):
                out = model(tokens)
                for pool in side:
                    with torch.cuda.use_mem_pool(pool):
                        kept.append(empty(rng.randrange(1, 6 * MIB)).fill_(1))
            graphs.append((g, out))
            kept.append(model(tokens[:, :rng.randrange(8, 64)]))
            del g, out
            if turn == 3:
                graphs[0][0].reset()
                del graphs[0]
                torch.cuda.empty_cache()
    return model, graphs, kept, side


def storages(rng, churn, count=400):
    """Storage that is freed and taken again in place, as sharded training does, and grown."""
    shards = [empty(rng.randrange(1, 20 * MIB)) for _ in range(24)]
    sizes = [t.untyped_storage().nbytes() for t in shards]
    for _ in range(count):
        i = rng.randrange(len(shards))
        storage = shards[i].untyped_storage()
        r = rng.random()
        if storage.nbytes() == 0:
            storage.resize_(sizes[i])
        elif r < 0.6:
            storage.resize_(0)
        elif r < 0.8:
            sizes[i] = max(1, int(sizes[i] * rng.uniform(0.5, 1.6))) % (30 * MIB) + 1
            storage.resize_(sizes[i])
        else:
            shards[i].resize_(rng.randrange(1, 25 * MIB))
            sizes[i] = shards[i].untyped_storage().nbytes()
    return shards


def loading(rng, churn, count=150):
    """Batches by way of pinned memory, copied on a stream of their own."""
    stream, kept = torch.cuda.Stream(), []
    for _ in range(count):
        host = torch.zeros(rng.randrange(1, 3 * MIB), dtype=torch.uint8).pin_memory()
        with torch.cuda.stream(stream):
            x = host.to("cuda", non_blocking=True)
        torch.cuda.current_stream().wait_stream(stream)
        x.record_stream(torch.cuda.current_stream())
        kept.append((host if rng.random() < 0.5 else None, x.float() * 2))
        if len(kept) > 8:
            del kept[rng.randrange(len(kept))]
        del host, x
    return kept


def caching(rng, churn, count=200):
    """A cache that grows by concatenation beside half-precision work, and is cut at times."""
    cache, kept = [None] * 6, []
    for step in range(count):
        i = rng.randrange(len(cache))
        new = torch.empty(rng.choice((1, 16, 200)), 8, 64, dtype=torch.bfloat16, device="cuda")
        cache[i] = new if cache[i] is None else torch.cat((cache[i], new))
        kept.append(cache[i].float().softmax(-1).half())
        if len(kept) > 3:
            kept.pop(0)
        if cache[i].numel() > 3 * MIB or rng.random() < 0.02:
            cache[i] = None
        elif rng.random() < 0.1:
            cache[i] = cache[i][rng.randrange(cache[i].shape[0]):].clone()
    return cache, kept


def threads(rng, churn, count=150):
    """Four threads, each with a stream of its own."""
    kept = [[] for _ in range(4)]
    seeds = [rng.random() for _ in kept]

    def work(mine, seed):
        own = type(rng)(seed)
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(count):
                mine.append(empty(own.randrange(1, 15 * MIB)))
                if len(mine) > 10:
                    del mine[own.randrange(len(mine))]

    running = [threading.Thread(target=work, args=a) for a in zip(kept, seeds)]
    for t in running:
        t.start()
    for t in running:
        t.join()
    return kept


def limits(rng, churn):
    """A limit that is set, lowered and raised on the way, and cached memory given back by it."""
    load = churn(0.9)
    for fraction in (0.9, 0.5, 0.7, 1.0):
        torch.cuda.set_per_process_memory_fraction(fraction)
        load.run(150)
    return load


def raw(rng, churn, count=300):
    """Memory taken from the allocator itself, as other libraries do."""
    kept, pointers = [], []
    for _ in range(count):
        if rng.random() < 0.5:
            pointers.append(torch.cuda.caching_allocator_alloc(rng.randrange(1, 10 * MIB)))
        else:
            kept.append(empty(rng.randrange(1, 4 * MIB)))
        if len(pointers) > 10:
            torch.cuda.caching_allocator_delete(pointers.pop(rng.randrange(len(pointers))))
        if len(kept) > 10:
            del kept[rng.randrange(len(kept))]
    return kept
