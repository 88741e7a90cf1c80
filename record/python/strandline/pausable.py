"""Gives the memory of CUDA tensors back for a time, and takes it again at the same addresses.

    from strandline.pausable import torch_memory_saver

    with torch_memory_saver.region(tag="weights", enable_cpu_backup=True):
        model = Model().cuda()
    with torch_memory_saver.region(tag="kv_cache"):
        cache = torch.empty(...)
    torch_memory_saver.pause()             # or of one tag
    ...
    torch_memory_saver.resume("weights")   # with its contents, as there is a backup
    torch_memory_saver.resume("kv_cache")  # with undefined contents

Calls are those of torch_memory_saver, in its modes "torch" and "preload". What fails raises an exception, and what was
begun is taken back: a resume for which the device has not enough memory can be tried again. A pause waits for
the device's work; no other thread may use the memory from then on.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from contextlib import contextmanager, nullcontext
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from . import _guarded, _pausing

__all__ = ["Failure", "NotEnoughMemory", "MemorySaver", "configure_subprocess", "torch_memory_saver"]

_BACKUPS = {"none": 0, "pinned": 1, "pageable": 2, "mmap": 2, "file": 3}
_DEVICE_MEMORY, _ARGUMENT = 1, 4
_MARGIN, _PINNED_POOL, _VERIFY, _RETAIN = 0, 1, 2, 5


class Failure(RuntimeError):
    """A pause, a resume or another call that failed. What it had begun is taken back."""


class NotEnoughMemory(Failure):
    """The device has not enough free memory: device, the bytes that are needed and available, and holders, the
    processes that hold its memory (dicts of pid, name and bytes; empty where the driver does not tell)."""

    def __init__(self, text: str, device: int, needed: int, available: int) -> None:
        self.device = device
        self.needed = needed
        self.available = available
        self.holders = _pausing.holders(device)
        held = ", ".join(f"{_pausing.size(p['bytes'])} by {p['pid']} ({p['name'] or 'of another container'})" for p in self.holders[:4])
        super().__init__(f"{text}; held are {held}" if held else text)


class _Failure(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int),
        ("code", ctypes.c_int),
        ("device", ctypes.c_int),
        ("needed", ctypes.c_uint64),
        ("available", ctypes.c_uint64),
        ("text", ctypes.c_char * 232),
    ]


def _path() -> str:
    """The path of the library: STRANDLINE_MEM_LIBRARY, or beside this file."""
    named = os.environ.get("STRANDLINE_MEM_LIBRARY")
    return named or os.path.join(os.path.dirname(os.path.abspath(__file__)), "libstrandline-mem.so")


def _preloaded() -> Any:
    """The library, if this process was started with it preloaded; else None."""
    lib = ctypes.CDLL(None)
    return lib if hasattr(lib, "pausable_hooked") else None


def _load(mode: str) -> Any:
    """The library: that which is preloaded, or that which PyTorch loads again by the same path."""
    lib = _preloaded() if mode == "preload" else None
    if mode == "preload" and lib is None:
        named = ", which names it: it was set after the start, or it cannot be loaded" if _path() in os.environ.get("LD_PRELOAD", "") else ""
        raise Failure(f"hook mode 'preload', but the library is not preloaded; start the process with LD_PRELOAD={_path()}{named}")
    if lib is None and os.environ.get("STRANDLINE_MEM_LIBRARY"):
        _guarded.check(_path(), "STRANDLINE_MEM_LIBRARY", Failure)
    try:
        lib = lib or ctypes.CDLL(_path())
    except OSError as e:
        raise Failure(f"the library of pausable memory, which `strandline record --module DIR` writes, cannot be loaded: {e}") from None
    lib.pausable_hooked.restype = ctypes.c_uint64
    lib.pausable_failure.restype = ctypes.POINTER(_Failure)
    lib.pausable_region.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int]
    lib.pausable_pause.argtypes = lib.pausable_resume.argtypes = lib.pausable_set_folder.argtypes = [ctypes.c_char_p]
    lib.pausable_set.argtypes = [ctypes.c_int, ctypes.c_uint64]
    lib.pausable_get.argtypes = [ctypes.c_int]
    lib.pausable_get.restype = ctypes.c_uint64
    lib.pausable_status.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    lib.pausable_set_log.argtypes = lib.pausable_note.argtypes = [ctypes.c_char_p]
    lib.pausable_size.argtypes = [ctypes.c_void_p]
    lib.pausable_size.restype = ctypes.c_uint64
    lib.pausable_status.restype = ctypes.c_size_t
    lib.pausable_backup.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    lib.pausable_backup.restype = ctypes.c_void_p
    return lib


class MemorySaver:
    """The pausable memory of this process. There is one, [torch_memory_saver]."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lib: Any = None
        self._allocator: Any = None
        self._pools: Dict[Tuple[str, int, int], Any] = {}
        self._regions: List[Tuple[bytes, int]] = []  # that are open, in all threads
        self._dropped: List[Any] = []
        self._local = threading.local()
        self._mode: Optional[str] = None

    # Regions

    @property
    def enabled(self) -> bool:
        """Whether the library is there."""
        return _preloaded() is not None or os.path.exists(_path())

    @property
    def hook_mode(self) -> str:
        """How allocations are found: "torch", by a pool of PyTorch's allocator; or "preload", by a library in
        LD_PRELOAD that replaces cudaMalloc, which is the default where it is preloaded. It can be set before
        the first region."""
        return self._mode or ("preload" if _preloaded() else "torch")

    @hook_mode.setter
    def hook_mode(self, mode: str) -> None:
        if mode not in ("preload", "torch"):
            raise Failure(f"there is no hook mode {mode!r}, only 'preload' and 'torch'")
        if self._lib is not None and mode != self.hook_mode:
            raise Failure(f"the hook mode is {self.hook_mode!r} since the first region")
        self._mode = mode

    @contextmanager
    def region(
        self,
        tag: str = "default",
        enable_cpu_backup: bool = False,
        enable_disk_backup: bool = False,
        cpu_backup_backend: Optional[str] = None,
        threads: bool = False,
    ) -> Iterator[None]:
        """Makes the memory pausable that PyTorch takes from the current device.

        The contents are kept in the memory of the host with enable_cpu_backup (cpu_backup_backend: "pinned",
        which is faster, or "mmap", which goes back to the host with each resume), in a file with
        enable_disk_backup, and otherwise not at all. With threads it counts for other threads too, as it always
        does where PyTorch sends all threads to the pool that is in use (before 2.8).
        """
        torch: Any = _torch()

        kind = _kind(enable_cpu_backup, enable_disk_backup, cpu_backup_backend)
        name = _name(tag)
        pool = self._pool(torch, tag, kind)
        everywhere = threads or not hasattr(torch._C, "_cuda_beginAllocateCurrentThreadToPool")
        with self._explained(torch), self._as_region(name, kind, everywhere), self._only(_Use(torch, pool, everywhere)):
            yield
        self._check_taken(torch)

    @contextmanager
    def cuda_graph(
        self,
        cuda_graph: Any,
        pool: Any = None,
        stream: Any = None,
        capture_error_mode: str = "global",
        tag: str = "default",
        enable_cpu_backup: bool = False,
        enable_disk_backup: bool = False,
        cpu_backup_backend: Optional[str] = None,
    ) -> Iterator[None]:
        """Is torch.cuda.graph, and makes the memory pausable that the graph takes for itself. Mode "preload"."""
        torch: Any = _torch()
        kind = _kind(enable_cpu_backup, enable_disk_backup, cpu_backup_backend)
        name = _name(tag)
        if self.hook_mode != "preload":
            raise Failure("a graph takes its memory by cudaMalloc, so that it is pausable only in hook mode 'preload'")
        self._ready(torch)
        capture = torch.cuda.graph(cuda_graph, pool=pool, stream=stream, capture_error_mode=capture_error_mode)
        with self._explained(torch), self._only(None), capture, self._as_region(name, kind, True):
            yield
        self._check_taken(torch)

    @contextmanager
    def disable(self) -> Iterator[None]:
        """Makes what is allocated within a region ordinary memory again, for as long as this is open."""
        torch: Any = _torch()

        preload = self.hook_mode == "preload"
        if not getattr(self._local, "regions", None) and not (preload and _truth("TMS_INIT_ENABLE")):
            raise Failure("there is no region that could be disabled")
        self._begun(torch)
        pool = torch.cuda.MemPool()
        try:
            with self._as_region(b"", 0, True) if preload else nullcontext(), self._only(_Use(torch, pool, True)):
                yield
        finally:
            with self._lock:  # PyTorch empties a pool that is dropped, which it cannot within a region
                self._dropped.append(pool)
            self._drop()

    @contextmanager
    def _explained(self, torch: Any) -> Iterator[None]:
        """Has an allocation that failed raise the library's reason: PyTorch takes any failure for a lack of memory."""
        f = self._lib.pausable_failure().contents
        f.kind = 0
        try:
            yield
        except RuntimeError as e:
            text = f.text.decode(errors="replace")
            if not f.kind or not (isinstance(e, torch.cuda.OutOfMemoryError) or "CUDA error" in str(e)):
                raise
            if f.kind != _DEVICE_MEMORY:
                raise Failure(text) from e
            if hasattr(e, "add_note"):
                e.add_note(text)
            raise

    @contextmanager
    def _as_region(self, name: bytes, kind: int, everywhere: bool) -> Iterator[None]:
        """Opens a region in this thread, and everywhere for threads that have none."""
        own: List[Tuple[bytes, int]] = self._local.__dict__.setdefault("regions", [])
        region = (name, kind)
        with self._lock:
            own.append(region)
            if everywhere:
                self._regions.append(region)
            self._set_regions(own)
        try:
            yield
        finally:
            with self._lock:
                own.pop()
                if everywhere:
                    self._regions.remove(region)
                self._set_regions(own)
            self._drop()

    @contextmanager
    def _only(self, use: "Optional[_Use]") -> Iterator[None]:
        """Uses a pool, and not that of the region around it: of several, PyTorch takes the outermost."""
        open_: List[Optional[_Use]] = self._local.__dict__.setdefault("uses", [])
        outer = open_[-1] if open_ else None
        if outer:
            outer.end()
        open_.append(use)
        try:
            if use:
                use.begin()
            yield
        finally:
            open_.pop()
            if use:
                use.end()
            if outer:
                outer.begin()

    def _drop(self) -> None:
        """Drops the pools of disable, once there is no region."""
        with self._lock:
            dropped, self._dropped = ([], self._dropped) if self._regions else (self._dropped, [])
        dropped.clear()

    def _set_regions(self, own: List[Tuple[bytes, int]]) -> None:
        if getattr(self._local, "suspended", False):
            own = [(b"", 0)]
        for everywhere, open_ in enumerate((own, self._regions)):
            name, kind = open_[-1] if open_ else (None, 0)
            self._check(self._lib.pausable_region(name, kind, everywhere))

    def _suspend(self, on: bool) -> None:
        """Makes what this thread allocates ordinary memory, if it is in a region, or goes on with that region."""
        with self._lock:
            if not on or self._lib.pausable_in_region():
                self._local.suspended = on
            self._set_regions(getattr(self._local, "regions", []))

    def _pool(self, torch: Any, tag: str, kind: int) -> Any:
        """The pool of a tag. Without its own, a region would get memory that PyTorch took before it."""
        key = (tag, kind, torch.cuda.current_device())
        with self._lock:
            self._ready(torch)  # settings may have changed
            if key in self._pools:
                return self._pools[key]
            if self.hook_mode == "preload":
                pool = torch.cuda.MemPool()
            else:
                if self._allocator is None:
                    self._allocator = _for_good(torch.cuda.memory.CUDAPluggableAllocator(_path(), "pausable_malloc", "pausable_free"))
                pool = torch.cuda.MemPool(self._allocator.allocator())
            self._pools[key] = _for_good(pool)
            return pool

    def _ready(self, torch: Any) -> None:
        """Loads the library, and raises where PyTorch would take memory past it."""
        torch.cuda.init()
        _refuse_settings(torch)
        self._begun(torch)

    def _begun(self, torch: Any) -> None:
        """Is the same where settings do not matter, which a program can change while it runs."""
        torch.cuda.init()
        self._loaded()
        self._check_taken(torch)

    def _check_taken(self, torch: Any) -> None:
        """Raises if PyTorch has taken memory of which the preloaded library saw nothing."""
        if self.hook_mode != "preload" or self._loaded().pausable_hooked():
            return
        if any(torch.cuda.memory_stats(i).get("segment.all.allocated") for i in range(torch.cuda.device_count())):
            raise Failure("PyTorch does not call the preloaded cudaMalloc: CUDA's runtime is linked into it. Use hook mode 'torch'")

    def _loaded(self) -> Any:
        if self._lib is None:
            true = {variable: _truth(variable) for variable in _TRUTHS}
            if true["TMS_INIT_ENABLE_CPU_BACKUP"] and true["TMS_INIT_ENABLE_DISK_BACKUP"]:
                raise Failure("TMS_INIT_ENABLE_CPU_BACKUP and TMS_INIT_ENABLE_DISK_BACKUP: a backup is either in the memory of the host or in a file")
            lib = _load(self.hook_mode)
            self._mode = self.hook_mode
            self._lib = lib
            if os.environ.get("STRANDLINE_MEM_LOG"):
                self.set(log=os.environ["STRANDLINE_MEM_LOG"])
        return self._lib

    # Pause and resume

    def pause(self, tag: Optional[str] = None) -> None:
        """Gives the memory of a tag back, or of all. What is paused already stays so."""
        self._operate("pausable_pause", tag)

    def resume(self, tag: Optional[str] = None) -> None:
        """Takes the memory of a tag again, or of all. What is active already stays so.

        Raises NotEnoughMemory where the device has not enough; nothing has changed then.
        """
        self._operate("pausable_resume", tag)

    def pause_async(self, tag: Optional[str] = None) -> Any:
        """Begins a pause, and returns a concurrent.futures.Future."""
        return self._begin(self.pause, tag)

    def resume_async(self, tag: Optional[str] = None) -> Any:
        """Begins a resume, and returns a concurrent.futures.Future."""
        return self._begin(self.resume, tag)

    def _operate(self, name: str, tag: Optional[str]) -> None:
        if self.hook_mode == "preload":  # there may have been a region from the start
            self._begun(_torch())
            # What was taken since settings changed is not pausable; what is comes back whatever they are.
            if not self.status()["tags"] or name == "pausable_pause" and _truth("TMS_INIT_ENABLE"):
                _refuse_settings(_torch())
        kind = 0
        if self._lib is not None:
            self._note()
            kind = getattr(self._lib, name)(None if tag is None else tag.encode())
        if tag is not None and (self._lib is None or kind == _ARGUMENT):
            self._unknown(tag)
            return
        self._check(kind)
        if self._lib is not None:
            self._note()

    def _unknown(self, tag: str) -> None:
        raise Failure(f"there is no tag {tag}")

    def _note(self) -> None:
        """Notes in the log, if there is one, what PyTorch has besides pausable memory."""
        if self._lib.pausable_note(None):
            rank = next((os.environ[n] for n in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "LOCAL_RANK") if n in os.environ), "")
            for text in ("rank " + rank, *("torch {device} {tensors_bytes} {cache_bytes} {pools_bytes} {split_bytes}".format(**d) for d in self.outside())):
                self._lib.pausable_note(text.encode())

    def _begin(self, what: Any, tag: Optional[str]) -> Any:
        from concurrent.futures import Future

        future: Any = Future()

        def run() -> None:
            try:
                what(tag)
            except BaseException as e:
                future.set_exception(e)
            else:
                future.set_result(None)

        future.set_running_or_notify_cancel()
        threading.Thread(target=run, name="strandline-pausable", daemon=True).start()
        return future

    def _check(self, kind: int) -> None:
        if not kind:
            return
        f = self._lib.pausable_failure().contents
        text = f.text.decode(errors="replace")
        if kind == _DEVICE_MEMORY:
            raise NotEnoughMemory(text, f.device, f.needed, f.available)
        raise Failure(text)

    # Backups, settings, figures

    def get_cpu_backup(self, tensor: Any, zero_copy: bool = False) -> Any:
        """The contents of a paused tensor, on the host; None where there is no backup in its memory. With zero_copy
        it is valid until the tensor is resumed. Where backups are retained, there are also those of the last pause."""
        torch: Any = _torch()

        size = tensor.untyped_storage().nbytes()
        at = self._lib and size and self._lib.pausable_backup(tensor.untyped_storage().data_ptr(), size)
        if not at:
            return None
        data = torch.frombuffer((ctypes.c_char * size).from_address(at), dtype=torch.uint8)
        out = torch.empty(0, dtype=tensor.dtype).set_(data.untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride())
        return out if zero_copy else out.clone()

    def set_disk_backup_dir(self, path: str) -> None:
        """Sets the folder of backups in files, which have no name and end with the process."""
        self._check(self._loaded().pausable_set_folder(os.fsencode(path)))

    def set(self, *, margin: Optional[int] = None, pinned_pool: Optional[int] = None, verify: Optional[bool] = None, retain: Optional[bool] = None,
            log: Optional[str] = None) -> None:
        """Changes settings: bytes of a device that stay free; bytes of pinned memory that are kept for the next
        pause, at most; whether what comes back is compared with what was saved; whether each block keeps the
        memory of its backup; the folder of a log for `strandline plan rl --check`, "" for none."""
        if log is not None:
            self._check(self._loaded().pausable_set_log(os.fsencode(log) or None))
        values = {_MARGIN: margin, _PINNED_POOL: pinned_pool, _VERIFY: verify, _RETAIN: retain}
        for setting, value in values.items():
            if value is not None:
                self._check(self._loaded().pausable_set(setting, int(value)))

    @property
    def memory_margin_bytes(self) -> int:
        """Bytes of a device that stay free."""
        return int(self._loaded().pausable_get(_MARGIN))

    @memory_margin_bytes.setter
    def memory_margin_bytes(self, n: int) -> None:
        self.set(margin=n)

    @property
    def retain_cpu_backup(self) -> bool:
        """Whether blocks keep the memory of their backups."""
        return bool(self._loaded().pausable_get(_RETAIN))

    @retain_cpu_backup.setter
    def retain_cpu_backup(self, on: bool) -> None:
        self.set(retain=on)

    def status(self) -> Dict[str, Any]:
        """What each tag holds, and what the driver reports for each device, in bytes."""
        if self._lib is None and self.hook_mode != "preload":
            return _pausing.parse("")
        self._loaded()
        size = self._lib.pausable_status(None, 0) + 4096
        text = ctypes.create_string_buffer(size)
        self._lib.pausable_status(text, size)
        return _pausing.parse(text.value.decode("ascii", "replace"))

    def outside(self) -> List[Dict[str, int]]:
        """What PyTorch has of each device in no region, in bytes: tensors_bytes; cache_bytes, of which split_bytes are in
        segments of tensors and stay with them; and pools_bytes, of CUDA graphs and the program's own, which stay."""
        torch: Any = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_initialized():
            return []
        lib, out = self._loaded(), {}  # type: Any, Dict[int, Dict[str, int]]
        for s in torch.cuda.memory_snapshot():
            d = out.setdefault(s["device"], {"device": s["device"], "tensors_bytes": 0, "cache_bytes": 0, "split_bytes": 0, "pools_bytes": 0})
            if lib.pausable_size(s["address"]):
                continue
            if tuple(s.get("segment_pool_id", (0, 0))) != (0, 0):
                d["pools_bytes"] += s["total_size"]
            else:
                d["tensors_bytes"] += s["allocated_size"]
                for key in ("cache_bytes", "split_bytes") if s["allocated_size"] else ("cache_bytes",):
                    d[key] += s["total_size"] - s["allocated_size"]
        return sorted(out.values(), key=lambda d: d["device"])

    def plan(self, steps: Iterable[Tuple[str, Optional[str]]]) -> Dict[str, Any]:
        """What pauses and resumes would do in this order, none of which is done: whether each fits, and the peaks
        of each device and of the host, with the step after which they are.

        A step is ("pause", tag) or ("resume", tag), with None for all tags. What others take of the device
        meanwhile is not known. Where one does not fit, the peak is above the device's total.
        """
        return _pausing.plan(self.status(), steps)


def _torch() -> Any:
    import torch

    return torch


def _kind(cpu: bool, disk: bool, backend: Optional[str]) -> int:
    if cpu and disk:
        raise ValueError("a backup is either in the memory of the host or in a file")
    backend = backend or os.environ.get("TMS_INIT_CPU_BACKUP_BACKEND") or "pinned"
    if backend not in ("pinned", "mmap"):
        raise ValueError(f"there is no backend {backend!r} of backups: pinned, or mmap")
    return _BACKUPS["file" if disk else backend if cpu else "none"]


def _name(tag: str) -> bytes:
    name = tag.encode()
    if not 0 < len(name) < 64 or 0 in name:
        raise ValueError(f"a tag has 1 to 63 bytes: {tag!r}")
    return name


_TRUTHS = ("TMS_INIT_ENABLE", "TMS_INIT_ENABLE_CPU_BACKUP", "TMS_INIT_ENABLE_DISK_BACKUP", "TMS_RETAIN_CPU_BACKUP")


def _truth(variable: str) -> bool:
    """The value of a variable of the environment, as torch_memory_saver reads it."""
    value = os.environ.get(variable, "").lower()
    if value not in ("", "0", "false", "no", "1", "true", "yes"):
        raise Failure(f"{variable}={os.environ[variable]} is neither 1, true, yes nor 0, false, no")
    return value in ("1", "true", "yes")


def _refuse_settings(torch: Any) -> None:
    """Raises where PyTorch would take memory in another way than the library gives it."""
    backend = torch.cuda.get_allocator_backend()
    if backend != "native":
        raise Failure(f"PyTorch's allocator is {backend}, which takes memory in another way: take backend out of PYTORCH_CUDA_ALLOC_CONF")
    settings = torch.cuda.memory._snapshot().get("allocator_settings", {})
    if settings.get("expandable_segments"):
        named = [v for v in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF") if "expandable_segments" in os.environ.get(v, "")]
        change = f"take it out of {named[0]}" if named else "the program set it, and must unset it for as long as a region is open"
        raise Failure(f"with expandable_segments:True PyTorch takes memory in another way: {change}")


class _Use:
    """The use of a pool, which can end and begin again."""

    def __init__(self, torch: Any, pool: Any, everywhere: bool) -> None:
        self._torch = torch
        self._pool = pool
        self._device = torch.cuda.current_device()
        self._everywhere = everywhere and hasattr(torch._C, "_cuda_beginAllocateCurrentThreadToPool")
        self._context: Any = None

    def begin(self) -> None:
        if self._everywhere:  # use_mem_pool is for this thread only
            self._torch._C._cuda_beginAllocateToPool(self._device, self._pool.id)
        else:
            self._context = self._torch.cuda.use_mem_pool(self._pool, self._device)
            self._context.__enter__()

    def end(self) -> None:
        if self._everywhere:
            self._torch._C._cuda_endAllocateToPool(self._device, self._pool.id)
            self._torch._C._cuda_releasePool(self._device, self._pool.id)
        else:
            self._context.__exit__(None, None, None)


@contextmanager
def configure_subprocess() -> Iterator[None]:
    """Has processes that are started meanwhile preload the library. In hook mode "torch" it changes nothing."""
    if torch_memory_saver._mode == "torch":
        yield
        return
    path, before = _path(), os.environ.get("LD_PRELOAD")
    if not os.path.exists(path):
        raise Failure(f"the library of pausable memory, which `strandline record --module DIR` writes, is not at {path}")
    if " " in path or ":" in path:
        raise Failure(f"LD_PRELOAD cannot name {path}, which has a space or a colon")
    _guarded.check(path, "LD_PRELOAD", Failure)
    os.environ["LD_PRELOAD"] = path + (":" + before if before else "")
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("LD_PRELOAD", None)
        else:
            os.environ["LD_PRELOAD"] = before


def _for_good(what: Any) -> Any:
    """Keeps an object until the process ends. PyTorch frees the memory of a pool with it, which it cannot do as
    the interpreter ends, when the allocator may be gone."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(what))
    return what


torch_memory_saver = MemorySaver()


def __getattr__(name: str) -> Any:
    """The calls of torch_memory_saver are those of the module, too: pausable.region(tag="weights")."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(torch_memory_saver, name)
