"""One program for each feature of the allocator, all of one release in one go.

    run.sh DIR workloads/features.py OUT [NAME...]
    run.sh DIR workloads/features.py OUT -        read names, answer each when it has run

PyTorch is imported once; each program runs in a process of its own that is forked
before the first use of the device. It leaves OUT/NAME.pickle, the snapshot, and
OUT/NAME.json, PyTorch's own counters at that moment. A program that this release
cannot run leaves a reason in OUT/NAME.json. SEED and OPS draw other programs. The name
drawn.N is a random program under random settings, both drawn with seed N.
"""
import ctypes
import functools
import json
import os
import random
import sys
import traceback

import torch

import programs
from settings import draw, kinds_of_pools, size

MIB = 1 << 20
SEED = int(os.environ.get("SEED", 1))
OPS = int(os.environ.get("OPS", 1000))
RELEASE = tuple(int(n) for n in torch.__version__.split(".")[:2])
FEATURES = {}
EVENTS = 4 * OPS + 200_000


def feature(conf="", since=(0, 0), **device):
    """Names a program, its settings, the first release that has it, and its device."""
    def add(f):
        FEATURES[f.__name__] = (f, conf, since, device)
        return f
    return add


def record(**options):
    torch.cuda.memory._record_memory_history(stacks="python", max_entries=EVENTS, **options)


def empty(n):
    return torch.empty(n, dtype=torch.uint8, device="cuda")


class Churn:
    """Random requests and frees whose load swings between little and a share of the device."""

    def __init__(self, share=0.8, streams=2, seed=SEED):
        self.rng = random.Random(seed)
        self.limit = torch.cuda.get_device_properties(0).total_memory * share
        self.streams = [torch.cuda.current_stream()] + [torch.cuda.Stream() for _ in range(streams - 1)]
        self.live, self.held, self.pools = [], 0, []

    def shrink(self):
        i = self.rng.randrange(len(self.live))
        self.live[i], self.live[-1] = self.live[-1], self.live[i]
        t, _ = self.live.pop()
        self.held -= t.numel()

    def grow(self):
        n, stream = size(self.rng), self.rng.choice(self.streams)
        with torch.cuda.stream(stream):
            self.live.append((empty(n), stream))
        self.held += n

    def step(self, target):
        rng, r = self.rng, self.rng.random()
        if r < 0.004:
            torch.cuda.empty_cache()
        elif r < 0.02 and self.live:
            t, owner = rng.choice(self.live)
            other = rng.choice(self.streams)
            if other != owner:
                t.record_stream(other)
        elif r < 0.022:
            torch.cuda.synchronize()
        elif self.live and (self.held > target or r < 0.25):
            self.shrink()
        else:
            try:
                if self.pools and rng.random() < 0.3:
                    with torch.cuda.use_mem_pool(rng.choice(self.pools)):
                        self.grow()
                else:
                    self.grow()
            except RuntimeError as e:  # OutOfMemoryError, or the driver's of pages
                if "out of memory" not in str(e):
                    raise
                for _ in range(min(len(self.live), 5)):
                    self.shrink()

    def run(self, ops=OPS):
        for op in range(ops):
            self.step(self.limit * (0.15 + 0.85 * abs((op / ops * 5) % 2 - 1)))
        return self


SMALL = {"FAKE_CUDA_TOTAL_MEM": "3g"}
LAG = {"FAKE_CUDA_EVENT_LAG": "5"}


@feature(**SMALL)
def defaults():
    record()
    return Churn().run()


@feature("expandable_segments:True", **SMALL)
def expandable():
    record()
    return Churn().run()


@feature("expandable_segments:True", **SMALL)
def reservations():
    """A choice that depends on the addresses which are left behind the last page."""
    record()
    kept = [empty(1000)] + [empty(300 * MIB) for _ in range(9)] + [empty(280 * MIB), empty(20 * MIB)]
    del kept[2:10]
    torch.cuda.empty_cache()
    kept.insert(0, empty(585 * MIB))
    del kept[-1]
    return kept, empty(11 * MIB)


@feature("max_split_size_mb:64", **SMALL)
def split():
    record()
    return Churn(1.1).run()


@feature("max_split_size_mb:64,max_non_split_rounding_mb:32", **SMALL)
def split_rounding():
    record()
    return Churn(1.1).run()


@feature("roundup_power2_divisions:[1:8,8:4,64:2,>:4]", **SMALL)
def rounding():
    record()
    return Churn().run()


@feature("garbage_collection_threshold:0.6", **SMALL)
def garbage():
    torch.cuda.set_per_process_memory_fraction(0.9)
    record()
    return Churn().run()


@feature("max_split_size_mb:64,garbage_collection_threshold:0.6", **SMALL)
def split_garbage():
    torch.cuda.set_per_process_memory_fraction(0.9)
    record()
    return Churn().run()


@feature(**SMALL)
def oom():
    record()
    return Churn(1.2).run()


@feature("expandable_segments:True", **SMALL)
def expandable_oom():
    record()
    return Churn(1.2).run()


@feature(**SMALL, **LAG)
def deferred():
    record()
    c = Churn(1.1, streams=4)
    for stream in c.streams:  # work, so that time passes for events
        with torch.cuda.stream(stream):
            empty(MIB).fill_(0)
    return c.run()


@feature(**SMALL)
def late():
    c = Churn().run(OPS // 2)
    record()
    return c.run(OPS // 2)


@feature(**SMALL)
def pools():
    record()
    c = Churn(streams=3)
    c.pools = [torch.cuda.MemPool() for _ in range(3)]
    c.run(OPS // 2)
    c.pools.pop()
    torch.cuda.empty_cache()
    return c.run(OPS // 2)


@feature(**SMALL)
def pools_oom():
    record()
    c = Churn(1.2)
    c.pools = [torch.cuda.MemPool()]
    return c.run()


@feature("expandable_segments:True", **SMALL)
def pools_expandable():
    record()
    c = Churn()
    c.pools = [torch.cuda.MemPool() for _ in range(2)]
    return c.run()


@feature(**SMALL)
def pools_nested():
    record()
    a, b = torch.cuda.MemPool(), torch.cuda.MemPool()
    kept = []
    for n in range(40):
        with torch.cuda.use_mem_pool(a):
            kept.append(empty(n * 300_000 + 1))
            with torch.cuda.use_mem_pool(b):
                kept.append(empty(n * 400_000 + 1))
            kept.append(empty(n * 100_000 + 1))
        del kept[::3]
    return a, b, kept


@feature(since=(2, 8), **SMALL)
def pools_use_on_oom():
    record()
    pool = torch.cuda.MemPool(use_on_oom=True)
    with torch.cuda.use_mem_pool(pool):
        warm = [empty(n * 20 * MIB) for n in range(1, 6)]
    del warm
    c = Churn(1.2)
    c.run()
    return c, pool


@feature(since=(2, 10), **SMALL)
def pools_no_split():
    record()
    c = Churn()
    c.pools = [torch.cuda.MemPool(no_split=True)]
    return c.run()


def capture(c, work=60, **options):
    """A graph in whose capture some requests are made, on two streams."""
    g = torch.cuda.CUDAGraph()
    kept = []
    side = torch.cuda.Stream()
    with torch.cuda.graph(g, **options):
        for i in range(work):
            kept.append(empty(size(c.rng) % (30 * MIB) + 1).fill_(1))
            if i % 10 == 5:
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    kept.append(empty(2 * MIB + i).fill_(1))
                kept[-2].record_stream(side)
                torch.cuda.current_stream().wait_stream(side)
            if len(kept) > 6:
                del kept[c.rng.randrange(len(kept))]
    return g, kept


@feature(**SMALL)
def graphs():
    record()
    c = Churn()
    c.run(OPS // 4)
    first = capture(c)
    second = capture(c, pool=first[0].pool())
    third = capture(c)
    c.run(OPS // 4)
    del first, second
    torch.cuda.empty_cache()
    c.run(OPS // 4)
    return c, third


@feature("expandable_segments:True", **SMALL)
def graphs_expandable():
    return graphs()


@feature("graph_capture_record_stream_reuse:True", since=(2, 9), **SMALL)
def graphs_reuse():
    return graphs()


@feature(since=(2, 10), **SMALL)
def graphs_pools():
    """Several pools in one graph."""
    record()
    c = Churn()
    c.run(OPS // 4)
    other = torch.cuda.MemPool()
    g = torch.cuda.CUDAGraph()
    kept = []
    with torch.cuda.graph(g):
        for i in range(60):
            kept.append(empty(size(c.rng) % (30 * MIB) + 1).fill_(1))
            with torch.cuda.use_mem_pool(other):
                kept.append(empty(size(c.rng) % (30 * MIB) + 1).fill_(1))
            if len(kept) > 8:
                del kept[c.rng.randrange(len(kept))]
    c.run(OPS // 4)
    return c, g, other, kept


@feature(**SMALL)
def graphs_failed():
    record()
    c = Churn()
    c.run(OPS // 4)
    good = capture(c)
    for _ in range(2):
        kept = []
        try:
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                for i in range(20):
                    kept.append(empty(size(c.rng) % (30 * MIB) + 1).fill_(1))
                torch.cuda.synchronize()
        except RuntimeError:
            pass
        del kept
    c.run(OPS // 4)
    torch.cuda.empty_cache()
    c.run(OPS // 4)
    return c, good


@feature(**SMALL)
def graphs_oom():
    record()
    c = Churn(0.7)
    c.run(OPS // 4)
    kept = []
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            while True:
                kept.append(empty(100 * MIB).fill_(1))
    except RuntimeError:
        pass
    del kept
    return c.run(OPS // 4)


@feature("large_segment_size_mb:64", since=(2, 11), **SMALL)
def large_segment():
    record()
    return Churn().run()


@feature("large_segment_size_mb:64,expandable_segments:True", since=(2, 11), **SMALL)
def large_segment_expandable():
    record()
    return Churn().run()


@feature("per_process_memory_fraction:0.7", since=(2, 10), **SMALL)
def fraction():
    record()
    return Churn(0.9).run()


@feature("per_process_memory_fraction:0.7,throw_on_cudamalloc_oom:True", since=(2, 12), **SMALL)
def throw():
    record()
    return Churn(0.9).run()


@feature("throw_on_cudamalloc_oom:True", since=(2, 12), **SMALL)
def throw_at_total():
    """Refused above the device's memory, though a part of it is cached."""
    record()
    return Churn(1.2).run()


@feature("expandable_segments:True,expandable_segments_reserve:2G", since=(2, 15), **SMALL)
def reserve():
    record()
    return Churn().run()


@feature("expandable_segments:True,expandable_segments_reserve_by_class:[capture:1G]", since=(2, 15), **SMALL)
def reserve_by_class():
    return graphs()


def pin(rng, kept):
    for _ in range(200):
        kept.append(torch.empty(size(rng) % (20 * MIB) + 1, dtype=torch.uint8, pin_memory=True))
        if len(kept) > 12:
            del kept[rng.randrange(len(kept))]


@feature(since=(2, 14), **SMALL)
def pinned():
    record(record_pinned_host_memory=True)
    c, kept = Churn(), []
    c.run(OPS // 4)
    pin(c.rng, kept)
    c.run(OPS // 4)
    return c, kept


@feature("pinned_reserve_segment_size_mb:64,pinned_max_cached_size_mb:8,pinned_max_round_threshold_mb:4", since=(2, 14), **SMALL)
def pinned_options():
    return pinned()


@feature("pinned_use_background_threads:True,pinned_use_cuda_host_register:True,pinned_num_register_threads:4",
         since=(2, 14), **SMALL)
def pinned_threads():
    """A thread completes frees while requests are served."""
    record(record_pinned_host_memory=True)
    return programs.loading(random.Random(SEED), Churn)


@feature(since=(2, 14), **SMALL)
def annotated():
    record()
    c = Churn()
    for i in range(8):
        torch.cuda.memory._set_memory_metadata(f"part {i}")
        c.run(OPS // 16)
        if c.live:
            torch.cuda.memory._annotate_tensor(c.live[0][0], "kept")
    return c


@feature(since=(2, 13), **SMALL)
def resized():
    """Storage that takes its memory again at an address of its own."""
    record()
    c = Churn()
    for _ in range(20):
        c.run(OPS // 20)
        for t, _ in c.rng.sample(c.live, min(5, len(c.live))):
            s, n, at = t.untyped_storage(), t.untyped_storage().nbytes(), t.data_ptr()
            s.resize_(0)
            try:
                s._resize_with_addr_(n, at)
            except RuntimeError:
                s.resize_(n)
    return c


@feature(since=(2, 13), **SMALL)
def resized_inside():
    """The same, in the middle of a larger free block."""
    record()
    kept = []
    for n in (30, 64, 100, 41):
        whole = empty(n * MIB)
        at = whole.data_ptr()
        del whole
        part = torch.empty(0, dtype=torch.uint8, device="cuda")
        part.untyped_storage()._resize_with_addr_(7 * MIB, at + 12 * MIB)
        kept.append(part)
        kept.append(empty(9 * MIB))
    return kept


@feature(FAKE_CUDA_DEVICES="2", **SMALL)
def devices():
    record()
    c = Churn()
    kept = []
    for i in range(200):
        c.run(3)
        kept.append(torch.empty(size(c.rng) % (20 * MIB) + 1, dtype=torch.uint8, device=f"cuda:{i % 2}"))
        if len(kept) > 9:
            del kept[c.rng.randrange(len(kept))]
    return c, kept


@feature(**SMALL)
def changed():
    """Settings that the program changes on the way."""
    change = getattr(torch.cuda.memory, "_set_allocator_settings", None)
    change = change or torch._C._accelerator_setAllocatorSettings
    record()
    c = Churn().run(OPS // 2)
    change("expandable_segments:True")
    return c.run(OPS // 2)


def program(name, conf, **device):
    """Names a program of programs.py, drawn by SEED."""
    def run():
        record(**({"record_pinned_host_memory": True} if RELEASE >= (2, 14) else {}))
        return getattr(programs, name)(random.Random(SEED), Churn)
    FEATURES[name + "_expandable" if conf else name] = (run, conf, (0, 0), {**SMALL, **device})


for name in programs.NAMES:
    for conf in "", "expandable_segments:True":
        program(name, conf, **(LAG if name in ("streams", "loading") else {}))


@feature(since=(99, 0))
def drawn(seed):
    """A random program under drawn settings: OPS operations."""
    rng = random.Random(-seed)
    expandable = "expandable_segments" in os.environ["PYTORCH_CUDA_ALLOC_CONF"]
    record(**({"record_pinned_host_memory": True} if RELEASE >= (2, 14) else {}))
    c = Churn(rng.choice((0.6, 0.8, 1.1)), streams=rng.choice((1, 2, 4)), seed=seed)
    if rng.random() < 0.4 and not (expandable and RELEASE == (2, 7)):
        c.pools = [torch.cuda.MemPool(**rng.choice(kinds_of_pools())) for _ in range(rng.choice((1, 3)))]
    captures = rng.choice((0, 0, 3)) if c.limit < 2.5e9 else 0
    kept = []
    for part in range(4):
        c.run(OPS // 4)
        if part < captures:
            kept.append(capture(c, work=30))
            del kept[:-2]
        if RELEASE >= (2, 14):
            pin(c.rng, kept)
            del kept[:-12]
    return c, kept


def dump(path, conf):
    stats = [dict(torch.cuda.memory_stats(d)) for d in range(torch.cuda.device_count())]
    torch.cuda.memory._dump_snapshot(path + ".pickle")
    host = getattr(torch.cuda, "host_memory_stats", dict)()
    write(path, {"torch": torch.__version__, "conf": conf, "stats": stats, "host": dict(host)})


def write(path, data):
    with open(path + ".json", "w", encoding="utf-8") as f:
        json.dump(data, f, default=str)


def run(name, path):
    name, _, seed = name.partition(".")
    f, conf, since, device = FEATURES[name]
    if seed:
        seed = int(seed)
        f = functools.partial(f, seed)
        conf, since, device = draw(random.Random(seed)), (0, 0), {**SMALL, **LAG}
    if RELEASE < since:
        write(path, {"torch": torch.__version__, "reason": "since %d.%d" % since})
        return
    os.environ.update(device, PYTORCH_CUDA_ALLOC_CONF=conf)
    ctypes.CDLL("libcuda.so.1").fk_reset()
    try:
        kept = f()
        dump(path, conf)
        del kept
    except Exception as e:  # noqa: BLE001: the reason of an empty cell
        traceback.print_exc()
        write(path, {"torch": torch.__version__, "conf": conf, "reason": f"{type(e).__name__}: {e}".split("\n")[0][:200]})


def apart(name, out):
    """Run a program in a process of its own."""
    pid = os.fork()
    if pid == 0:
        try:
            run(name, os.path.join(out, name))
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    if status:
        write(os.path.join(out, name), {"torch": torch.__version__, "reason": f"killed by signal {status & 127}"})


def main():
    out, names = sys.argv[1], sys.argv[2:]
    os.makedirs(out, exist_ok=True)
    if names == ["-"]:
        for line in sys.stdin:
            apart(line.strip(), out)
            print(line.strip(), flush=True)
        return
    for name in names or [n for n in FEATURES if n != "drawn"]:
        apart(name, out)


main()
