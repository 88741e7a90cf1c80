"""Uses strandline.pausable with a PyTorch that only has what it calls."""

import contextlib
import ctypes
import os
import sys
import threading
import types
import warnings

torch = types.ModuleType("torch")
settings = {}
used = []  # pools that are in use, the outermost first


class Pool:
    def __init__(self, allocator=None):
        self.id = (0, id(self))


@contextlib.contextmanager
def use_mem_pool(pool, device=None):
    assert not used, "of several pools PyTorch uses the first"
    used.append(pool.id)
    yield
    used.remove(pool.id)


torch._C = types.SimpleNamespace()
torch.cuda = types.SimpleNamespace(
    current_device=lambda: 0,
    device_count=lambda: 1,
    init=lambda: None,
    memory_stats=lambda i: {"segment.all.allocated": 0},
    get_allocator_backend=lambda: settings.get("backend", "native"),
    MemPool=Pool,
    use_mem_pool=use_mem_pool,
    OutOfMemoryError=type("OutOfMemoryError", (RuntimeError,), {}),
    memory=types.SimpleNamespace(_snapshot=lambda: {"allocator_settings": settings}, CUDAPluggableAllocator=lambda *a: types.SimpleNamespace(allocator=lambda: None)),
)
sys.modules["torch"] = torch

from strandline.pausable import Failure, NotEnoughMemory, configure_subprocess, torch_memory_saver as tms

import strandline

sys.path.append(os.path.join(os.path.dirname(strandline.__file__), "stand_in"))
import torch_memory_saver.utils

instead = torch_memory_saver.torch_memory_saver
assert tms.enabled and instead.enabled and instead._impl is None
assert torch_memory_saver.configure_subprocess is configure_subprocess
assert (torch_memory_saver.region, torch_memory_saver.pause, torch_memory_saver.resume) == (instead.region, instead.pause, instead.resume)
assert (strandline.pausable.region, strandline.pausable.pause) == (tms.region, tms.pause)
assert not hasattr(torch_memory_saver, "_nothing") and not hasattr(strandline.pausable, "nothing")
assert torch_memory_saver.utils.get_binary_path_from_package("any").exists()

MEMORY = 64 << 20  # of a device
UNIT = 64 << 10


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


def shrugs(what):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        what("w")
    assert "there is no tag w" in str(said[0].message) and said[0].filename == __file__, said


shrugs(instead.pause)
shrugs(instead.resume)

# Hook modes.
assert tms.hook_mode == "torch"
fails(lambda: setattr(tms, "hook_mode", "other"), Failure, "no hook mode 'other'")
tms.hook_mode = "preload"
for what in (tms.region().__enter__, tms.pause, tms.resume, tms.status):
    fails(what, Failure, "not preloaded; start the process with LD_PRELOAD=")
before = os.environ.pop("LD_PRELOAD", None)
with configure_subprocess():
    assert os.environ["LD_PRELOAD"].endswith("/libstrandline-mem.so")
    fails(tms.pause, Failure, "which names it: it was set after the start")
assert "LD_PRELOAD" not in os.environ
os.environ["STRANDLINE_MEM_LIBRARY"] = os.environ["SHARED"] + "/strandline/libstrandline-mem.so"
fails(configure_subprocess().__enter__, Failure, "LD_PRELOAD cannot name")
assert "LD_PRELOAD" not in os.environ
fails(lambda: strandline.pausable._load("torch"), Failure, "STRANDLINE_MEM_LIBRARY cannot name")
del os.environ["STRANDLINE_MEM_LIBRARY"]
os.environ["LD_PRELOAD"] = "/lib/other.so"
with configure_subprocess():
    assert os.environ["LD_PRELOAD"].endswith("/libstrandline-mem.so:/lib/other.so")
assert os.environ.pop("LD_PRELOAD") == "/lib/other.so"
tms.hook_mode = "torch"
with configure_subprocess():
    assert "LD_PRELOAD" not in os.environ
fails(tms.cuda_graph(None).__enter__, Failure, "only in hook mode 'preload'")
os.environ["TMS_INIT_ENABLE"] = "maybe"
fails(tms.region().__enter__, Failure, "TMS_INIT_ENABLE=maybe is neither")
os.environ.update(TMS_INIT_ENABLE="1", TMS_INIT_ENABLE_CPU_BACKUP="1", TMS_INIT_ENABLE_DISK_BACKUP="yes")
fails(tms.region().__enter__, Failure, "TMS_INIT_ENABLE_DISK_BACKUP: a backup is either")
del os.environ["TMS_INIT_ENABLE"], os.environ["TMS_INIT_ENABLE_CPU_BACKUP"], os.environ["TMS_INIT_ENABLE_DISK_BACKUP"]

# Settings and arguments.
settings["expandable_segments"] = True
fails(tms.region().__enter__, Failure, "expandable_segments")
settings.clear()
settings["backend"] = "cudaMallocAsync"
fails(tms.region().__enter__, Failure, "cudaMallocAsync")
settings.clear()
fails(tms.region("x" * 64).__enter__, ValueError, "63 bytes")
fails(tms.region("").__enter__, ValueError, "63 bytes")
fails(tms.region(enable_cpu_backup=True, cpu_backup_backend="tape").__enter__, ValueError, "tape")
fails(tms.region(enable_cpu_backup=True, enable_disk_backup=True).__enter__, ValueError, "either")
fails(tms.disable().__enter__, Failure, "no region")
assert not used

lib = tms._loaded()
fails(lambda: setattr(tms, "hook_mode", "preload"), Failure, "is 'torch' since")
lib.pausable_malloc.restype = ctypes.c_void_p
lib.pausable_malloc.argtypes = [ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
lib.pausable_free.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]


def allocate(size):
    at = lib.pausable_malloc(size, 0, None)
    assert at
    return at


def elsewhere(what, *args):
    """The result of a call in a new thread."""
    out = []
    thread = threading.Thread(target=lambda: out.append(what(*args)))
    thread.start()
    thread.join()
    return out[0]


SIZE = 300_000
want = {}
for name, options in {
    "pinned": {"enable_cpu_backup": True},
    "a page": {"enable_cpu_backup": True, "cpu_backup_backend": "mmap"},
    "file": {"enable_disk_backup": True},
    "none": {},
}.items():
    with tms.region(tag=name, **options):
        outer = list(used)
        with tms.disable():
            assert len(used) == 1 and used != outer
        with tms.region("inner"):
            assert len(used) == 1 and used != outer
        assert used == outer
        at = allocate(SIZE)
    assert not used
    want[name] = at, bytes((i * 7 + len(name)) % 251 for i in range(SIZE))
    ctypes.memmove(at, want[name][1], SIZE)


def same():
    for name, (at, text) in want.items():
        assert name == "none" or ctypes.string_at(at, SIZE) == text, name


# PyTorch says of any allocation that failed that there is not enough memory.
def lacking(device, says="CUDA out of memory. 80 GiB is free", kind=torch.cuda.OutOfMemoryError):
    with tms.region("none"):
        assert not lib.pausable_malloc(SIZE if device else 2 * MEMORY, device, None)
        raise kind(says)


assert type(fails(lambda: lacking(99), Failure, "there is no device 99").__cause__) is torch.cuda.OutOfMemoryError
fails(lambda: lacking(99, "CUDA error: invalid argument", RuntimeError), Failure, "there is no device 99")
for says, kind in (("of the program", RuntimeError), ("CUDA error", ValueError)):
    assert type(fails(lambda: lacking(99, says, kind), kind, says)) is kind
notes = getattr(fails(lambda: lacking(0), torch.cuda.OutOfMemoryError, "80 GiB is free"), "__notes__", None)
assert notes is None and sys.version_info < (3, 11) or "cuMemCreate on device 0" in notes[0], notes

device = tms.status()["devices"][0]
assert device["total_bytes"] == MEMORY and device["free_bytes"] < MEMORY

# An order is tried before it is run, and does what was foretold.
whole = -(-SIZE // UNIT) * UNIT
plan = tms.plan([("pause", "pinned"), ("pause", "file"), ("resume", None)])
assert plan["fits"] and plan["devices"] == [{"device": 0, "total_bytes": MEMORY, "peak_bytes": 4 * whole, "peak_step": None}], plan
assert plan["host"] == {"peak_bytes": SIZE, "peak_step": 0}
assert [s["devices"] for s in plan["steps"]] == [[{"device": 0, "takes_bytes": n * whole, "free_bytes": MEMORY - (4 - m) * whole}] for n, m in ((-1, 1), (-1, 2), (2, 0))]
assert [s["copies_bytes"] for s in plan["steps"]] == [SIZE, SIZE, 2 * SIZE]
assert tag("pinned")["state"] == "active"
fails(lambda: tms.plan([("pause", "nothing")]), ValueError, "step 0: there is no tag nothing")
fails(lambda: tms.plan([("stop", None)]), ValueError, "neither a pause nor a resume")

for verify in (False, True):
    tms.set(verify=verify)
    tms.pause()
    tms.pause()
    status = tms.status()
    assert status["devices"][0]["free_bytes"] == MEMORY
    assert status["did"]["do"] == "pause" and status["did"]["tag"] is None and status["did"]["succeeded"]
    assert [t["state"] for t in status["tags"]] == ["paused"] * 4
    assert [t["backup"] for t in status["tags"]] == ["pinned", "pageable", "file", "none"]
    assert tag("pinned")["backup_bytes"] == SIZE and tag("none")["backup_bytes"] == 0
    tms.memory_margin_bytes = MEMORY - whole
    plan = tms.plan([("resume", "pinned"), ("resume", "file")])
    assert [s["fits"] for s in plan["steps"]] == [True, False] and not plan["fits"], plan
    assert plan["devices"][0]["peak_bytes"] == 2 * whole and plan["devices"][0]["peak_step"] == 1
    tms.memory_margin_bytes = MEMORY
    e = fails(lambda: tms.resume("pinned"), NotEnoughMemory, "device 0 has 0 B free beyond the margin, and 320 KiB are to come back: 320 KiB are missing")
    assert e.device == 0 and e.available == 0 and e.needed >= SIZE
    assert e.holders == [{"pid": os.getpid(), "name": "this process", "bytes": 1000}, {"pid": 2**22 + 1, "name": "", "bytes": 7}], e.holders
    assert f"1000 B by {os.getpid()} (this process)" in str(e)
    assert not tms.status()["did"]["succeeded"]
    tms.memory_margin_bytes = 0
    tms.resume("a page")
    assert tag("a page")["state"] == "active" and tag("pinned")["state"] == "paused"
    tms.resume_async().result()
    same()
tms.pause_async("file").result()
assert tag("file")["held_bytes"] == 0 and tms.status()["did"]["copied_bytes"] == SIZE
fails(lambda: tms.pause_async("nothing").result(), Failure, "no tag nothing")
tms.resume()
same()

# Threads: PyTorch before 2.8 sends all to the pool that is in use, and the library follows; later ones ask.
began = []
for own, threads, found in ((False, False, "t"), (True, False, "default"), (True, True, "t")):
    if own:
        torch._C._cuda_beginAllocateCurrentThreadToPool = None
        torch._C._cuda_beginAllocateToPool = lambda device, pool: began.append(pool)
        torch._C._cuda_endAllocateToPool = lambda device, pool: began.remove(pool)
        torch._C._cuda_releasePool = lambda device, pool: None
    with tms.region("t", threads=threads):
        assert len(began) == (own and threads) and len(used) == 1 - len(began)
        at = elsewhere(allocate, 1)
        with tms.region("inner", threads=True):
            assert len(began) + len(used) == 1
    assert not began and not used
    assert tag(found)["blocks"] == 1
    lib.pausable_free(at, 1, 0, None)

# Under the other name it is the same memory, with what programs take for granted there.
assert instead.status() == tms.status()
shrugs(instead.pause)
inside = instead._impl._binary_wrapper.cdll
assert not inside.tms_get_interesting_region()
with tms.region("t"):
    assert inside.tms_get_interesting_region()
    for on in (False, False, True, True):
        inside.tms_set_interesting_region(on)
        assert inside.tms_get_interesting_region() == on
assert not inside.tms_get_interesting_region()
instead.retain_cpu_backup = True
assert tms.retain_cpu_backup is True
tms.set(retain=False, margin=5)
assert instead.retain_cpu_backup is False and instead.memory_margin_bytes == 5
tms.set(margin=0)

# A program can turn expandable segments on later: what is pausable stays so, but no pool is made.
tms._mode = "preload"
settings["expandable_segments"] = True
tms.pause()
tms.resume()
same()
for name in ("none", "new"):
    fails(tms.region(name).__enter__, Failure, "expandable_segments:True PyTorch takes memory in another way: the program set it")
os.environ.update(TMS_INIT_ENABLE="1", PYTORCH_ALLOC_CONF="expandable_segments:True")
fails(tms.pause, Failure, "take it out of PYTORCH_ALLOC_CONF")
del os.environ["TMS_INIT_ENABLE"], os.environ["PYTORCH_ALLOC_CONF"]
tms._mode = "torch"
settings.clear()

for at, _ in want.values():
    lib.pausable_free(at, SIZE, 0, None)
assert not tms.status()["tags"] and tms.status()["devices"][0]["free_bytes"] == MEMORY
tms._mode, settings["expandable_segments"] = "preload", True
fails(tms.pause, Failure, "expandable_segments")
tms._mode = "torch"
print("ok")
