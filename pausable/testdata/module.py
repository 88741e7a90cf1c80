"""Uses strandline.pausable with a PyTorch that only has what it calls."""

import contextlib
import ctypes
import sys
import types

torch = types.ModuleType("torch")
settings = {}
torch._C = types.SimpleNamespace(_cuda_memorySnapshot=lambda: {"allocator_settings": settings})
torch.cuda = types.SimpleNamespace(
    current_device=lambda: 0,
    init=lambda: None,
    MemPool=lambda allocator=None: object(),
    use_mem_pool=lambda pool: contextlib.nullcontext(),
    memory=types.SimpleNamespace(CUDAPluggableAllocator=lambda *a: types.SimpleNamespace(allocator=lambda: None)),
)
sys.modules["torch"] = torch

from strandline.pausable import Failure, NotEnoughMemory, torch_memory_saver as tms

MEMORY = 64 << 20  # of a device


def fails(what, kind, text):
    try:
        what()
    except kind as e:
        assert text in str(e), e
        return e
    raise AssertionError(f"no {kind.__name__}")


def tag(name):
    return next(t for t in tms.status()["tags"] if t["tag"] == name)


assert tms.status() == {"tags": [], "devices": []}
tms.pause()  # nothing is there
fails(lambda: tms.pause("w"), Failure, "no tag w")
settings["expandable_segments"] = True
fails(lambda: tms.region().__enter__(), Failure, "expandable_segments")
settings.clear()
fails(lambda: tms.region("x" * 64).__enter__(), ValueError, "63 bytes")
fails(lambda: tms.region(enable_cpu_backup=True, cpu_backup_backend="tape").__enter__(), ValueError, "tape")
fails(lambda: tms.region(enable_cpu_backup=True, enable_disk_backup=True).__enter__(), ValueError, "either")
fails(lambda: tms.disable().__enter__(), Failure, "no region")

lib = tms._loaded()
lib.pausable_malloc.restype = ctypes.c_void_p
lib.pausable_malloc.argtypes = [ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
lib.pausable_free.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
SIZE = 300_000
want = {}
for name, options in {
    "pinned": {"enable_cpu_backup": True},
    "a page": {"enable_cpu_backup": True, "cpu_backup_backend": "mmap"},
    "file": {"enable_disk_backup": True},
    "none": {},
}.items():
    with tms.region(tag=name, **options):
        with tms.disable():
            pass
        at = lib.pausable_malloc(SIZE, 0, None)
    assert at
    want[name] = at, bytes((i * 7 + len(name)) % 251 for i in range(SIZE))
    ctypes.memmove(at, want[name][1], SIZE)


def same():
    for name, (at, text) in want.items():
        assert name == "none" or ctypes.string_at(at, SIZE) == text, name


device = tms.status()["devices"][0]
assert device["total_bytes"] == MEMORY and device["free_bytes"] < MEMORY
for verify in (False, True):
    tms.set(verify=verify)
    tms.pause()
    tms.pause()
    assert tms.status()["devices"][0]["free_bytes"] == MEMORY
    assert [t["state"] for t in tms.status()["tags"]] == ["paused"] * 4
    assert [t["backup"] for t in tms.status()["tags"]] == ["pinned", "pageable", "file", "none"]
    assert tag("pinned")["backup_bytes"] == SIZE and tag("none")["backup_bytes"] == 0
    tms.memory_margin_bytes = MEMORY
    e = fails(lambda: tms.resume("pinned"), NotEnoughMemory, "device 0 has 0 bytes free")
    assert e.device == 0 and e.available == 0 and e.needed >= SIZE
    tms.memory_margin_bytes = 0
    tms.resume("a page")
    assert tag("a page")["state"] == "active" and tag("pinned")["state"] == "paused"
    tms.resume_async().result()
    same()
tms.pause_async("file").result()
assert tag("file")["held_bytes"] == 0
fails(lambda: tms.pause_async("nothing").result(), Failure, "no tag nothing")
tms.resume()
same()
for at, _ in want.values():
    lib.pausable_free(at, SIZE, 0, None)
assert not tms.status()["tags"] and tms.status()["devices"][0]["free_bytes"] == MEMORY
print("ok")
