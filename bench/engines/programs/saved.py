"""Memory that is paused and resumed, by the calls of torch_memory_saver: saved.py CASE

Each case is a property that its documentation, tests or issues name. Contents are compared by checksums.
Kernels of the test device do nothing, so that contents come from the host."""
import ctypes
import hashlib
import os
import resource
import sys
import tempfile

import torch
from torch_memory_saver import torch_memory_saver as saver

MIB = 1 << 20
PRELOADED = bool(os.environ.get("LD_PRELOAD"))
if not PRELOADED:
    saver.hook_mode = "torch"


def used(device=0):
    free, total = torch.cuda.mem_get_info(device)
    return total - free


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def drawn(size, seed, device="cuda"):
    return torch.randint(0, 256, (size,), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed)).to(device)


def checksum(tensors):
    out = hashlib.sha256()
    for t in tensors:
        out.update(t.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return out.hexdigest()


def end(text):
    print(text, flush=True)
    os._exit(0 if text == "holds" else 1)


def need(true, text):
    if not true:
        end(text)


def fails(do):
    try:
        do()
    except Exception as e:
        return str(e) or type(e).__name__
    return ""


def model(backup=True):
    """Weights of many sizes and types, and a cache."""
    with saver.region("model", enable_cpu_backup=backup):
        weights = [drawn(n, n) for n in (42, 1000, 4096, 3 * MIB + 8, 9 * MIB, 24 * MIB)]
        weights.append(torch.arange(3 * MIB, dtype=torch.int64).cuda().reshape(3, -1).t())
        weights.append(torch.linspace(0, 1, 100003).to(torch.bfloat16).cuda())
    with saver.region("cache"):
        cache = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    return weights, cache


def addresses():
    weights, cache = model()
    at, all_ = [t.data_ptr() for t in (*weights, cache)], used()
    saver.pause()
    need(used() <= all_ - 110 * MIB, "a pause returns too little")
    saver.resume()
    need(used() == all_ and at == [t.data_ptr() for t in (*weights, cache)], "other addresses, or more memory")


def tags():
    weights, cache = model()
    want, all_ = checksum(weights), used()
    for order in (("cache", "model"), ("model", "cache")):
        for resumed in (order, order[::-1]):
            left = all_
            for tag in order:
                saver.pause(tag)
                need(used() < left, f"{tag} stays")
                left = used()
            for tag in resumed:
                saver.resume(tag)
            need(used() == all_ and checksum(weights) == want, "other weights, or more memory")


def weights():
    """Others use the device in between, in twelve cycles."""
    weights, cache = model()
    want, all_ = checksum(weights), used()
    for cycle in range(12):
        saver.pause("cache")
        saver.pause("model")
        others = [drawn(20 * MIB, 7 + k) for k in range(5)]
        del others
        torch.cuda.empty_cache()
        saver.resume("cache")
        saver.resume("model")
        cache.copy_(torch.full((64 * MIB,), cycle, dtype=torch.uint8))
        need(checksum(weights) == want, f"other weights in cycle {cycle}")
        need(used() == all_, f"{(used() - all_) / MIB:.0f} MiB more in cycle {cycle}")


def written():
    """The newest contents come back, also of a view."""
    weights, _ = model()
    for cycle in range(3):
        for t in weights[3:6]:
            t[8:].copy_(drawn(t.numel() - 8, cycle, "cpu"))
        want = checksum(weights)
        saver.pause("model")
        saver.resume("model")
        need(checksum(weights) == want, f"other weights in cycle {cycle}")


def cleared():
    """Without a backup, what comes back is not what was there: nothing was kept."""
    with saver.region():
        x = drawn(8 * MIB, 1)
    want = checksum([x])
    saver.pause()
    saver.resume()
    need(checksum([x]) != want, "it is still there")


def absent():
    """Asking for a backup that was not made is answered."""
    with saver.region():
        x = drawn(8 * MIB, 1)
    saver.pause()
    need(saver.get_cpu_backup(x) is None, "there is a backup")


def backup():
    weights, cache = model()
    want = [checksum([t]) for t in weights]
    saver.pause()
    for t, sum_ in zip(weights, want):
        if t.is_contiguous():
            for zero_copy in (False, True):
                need(checksum([saver.get_cpu_backup(t, zero_copy=zero_copy)]) == sum_, "another backup")
    part = saver.get_cpu_backup(weights[4][5 * MIB + 1:])
    need(part.shape == (4 * MIB - 1,), "another shape")
    saver.resume()
    need(checksum([part]) == checksum([weights[4][5 * MIB + 1:]]), "another part")


def host():
    """After a resume the host has its memory back."""
    with saver.region(enable_cpu_backup=True, cpu_backup_backend="mmap"):
        x = drawn(256 * MIB, 1)
    want = checksum([x])
    before = resident()
    for _ in range(3):
        saver.pause()
        saver.resume()
    need(checksum([x]) == want, "other contents")
    need(resident() < before + 400 * MIB, f"{(resident() - before) / MIB:.0f} MiB stay on the host")  # 256 are the device's


def retained():
    with saver.region(enable_cpu_backup=True):
        x = drawn(8 * MIB, 1)
    saver.retain_cpu_backup = True
    saver.pause()
    saver.resume()
    need(checksum([saver.get_cpu_backup(x)]) == checksum([x]), "no backup after the resume")
    x.copy_(drawn(8 * MIB, 2, "cpu"))
    saver.pause()
    need(checksum([saver.get_cpu_backup(x)]) == checksum([drawn(8 * MIB, 2)]), "an old backup")
    saver.retain_cpu_backup = False
    saver.resume()
    need(saver.get_cpu_backup(x) is None, "a backup is kept")


def disk():
    with tempfile.TemporaryDirectory(dir=".") as folder:
        saver.set_disk_backup_dir(folder)
        with saver.region(enable_disk_backup=True):
            x = drawn(13 * MIB + 5, 3)
        want = checksum([x])
        for _ in range(3):
            saver.pause()
            saver.resume()
            need(checksum([x]) == want, "other contents")
        del x


def both():
    """A backup in memory and one on disk exclude each other, also by variables."""
    def do():
        x = drawn(8 * MIB, 3)
        saver.pause()
        if saver.get_cpu_backup(x) is not None:
            end("it is kept in memory, and not on disk")
    need(fails(do), "it is not refused")


def devices(other=False):
    torch.cuda.set_device(1 if other else 0)
    with saver.region(enable_cpu_backup=True):
        a = drawn(16 * MIB, 1, "cuda:0")
    torch.cuda.set_device(1)
    with saver.region(enable_cpu_backup=True):
        b = drawn(32 * MIB, 2, "cuda:1")
    want, all_ = checksum([a, b]), (used(0), used(1))
    saver.pause()
    need(used(0) <= all_[0] - 16 * MIB and used(1) <= all_[1] - 32 * MIB, "memory of a device stays")
    saver.resume()
    need((used(0), used(1)) == all_ and checksum([a, b]) == want, "other contents, or more memory")


def other_device():
    """A region is of the current device, and its tensor of another."""
    devices(True)


def nested():
    """All is in a region with a backup, but for one without."""
    w = drawn(8 * MIB, 1)
    with saver.region("gradients", enable_cpu_backup=False):
        g = drawn(8 * MIB, 2)
    later = drawn(8 * MIB, 3)
    want, lost = checksum([w, later]), checksum([g])
    saver.pause()
    saver.resume()
    need(checksum([w, later]) == want and checksum([g]) != lost, "other contents")


def disabled():
    """While all is paused, a program works outside, and leaves nothing."""
    w = drawn(64 * MIB, 1)
    want = checksum([w])
    saver.pause()
    least = used()
    with saver.disable():
        x = drawn(96 * MIB, 2)
        need(used() >= least + 96 * MIB, "it is in the region")
        del x
    need(used() <= least + 10 * MIB, f"{(used() - least) / MIB:.0f} MiB stay")
    saver.resume()
    need(checksum([w]) == want, "other contents")


def graph():
    graph, before = torch.cuda.CUDAGraph(), used()
    with saver.cuda_graph(graph, tag="graph"):
        out = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    at, taken = out.data_ptr(), used() - before
    need(taken >= 64 * MIB, "the graph has no memory")
    saver.pause("graph")
    need(used() <= before + 4 * MIB, f"{(used() - before) / MIB:.0f} MiB stay")
    saver.resume("graph")
    graph.replay()
    need(used() == before + taken and out.data_ptr() == at, "other addresses, or more memory")


def unaligned():
    runtime, at = ctypes.CDLL(None), ctypes.c_void_p()
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    need(runtime.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(6912)) == 0, "cudaMalloc fails")
    saver.pause()
    saver.resume()
    need(runtime.cudaFree(at) == 0, "cudaFree fails")


def full():
    """A resume for which the device has no room fails, changes nothing, and works later."""
    weights, cache = model()
    want = checksum(weights)
    saver.pause()
    other = torch.empty(torch.cuda.mem_get_info()[0] - 16 * MIB, dtype=torch.uint8, device="cuda")
    least = used()
    need(fails(saver.resume), "it does not fail")
    need(used() == least, "a part is resumed")
    del other
    torch.cuda.empty_cache()
    saver.resume()
    need(checksum(weights) == want, "other weights")


def twice():
    weights, _ = model()
    want = checksum(weights)
    for do in (saver.pause, saver.pause, saver.resume, saver.resume):
        do()
    need(checksum(weights) == want, "other weights")


def freed():
    """Tensors that are freed while they are paused leave nothing, and others come back."""
    weights, cache = model()
    want, all_ = checksum(weights[3:]), used()
    saver.pause()
    del cache
    weights = weights[3:]
    torch.cuda.empty_cache()
    saver.resume()
    need(checksum(weights) == want and used() <= all_, "other weights, or more memory")
    saver.pause()
    saver.resume()
    need(checksum(weights) == want, "other weights")


def freed_whole():
    """PyTorch gives memory of no pool back to the driver while it is paused."""
    weights, cache = drawn(24 * MIB, 1), torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    want, all_ = checksum([weights]), used()
    saver.pause()
    del cache
    torch.cuda.empty_cache()
    saver.resume()
    need(used() <= all_ - 64 * MIB, "it is not given back")
    need(checksum([weights]) == want, "other weights")


def expandable():
    need(fails(lambda: saver.region().__enter__()), "it is not refused")


def expandable_later():
    """verl turns expandable segments on for its trainer."""
    weights, _ = model()
    want, all_ = checksum(weights), used()
    saver.pause()
    torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    x = drawn(64 * MIB, 1)
    del x
    torch.cuda.empty_cache()
    torch.cuda.memory._set_allocator_settings("expandable_segments:False")
    saver.resume()
    need(checksum(weights) == want and used() == all_, "other weights, or more memory")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    torch.cuda.synchronize()
    end("holds")
