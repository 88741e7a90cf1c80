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

Calls are those of torch_memory_saver in its mode "torch". What fails raises an exception, and what was
begun is taken back: a resume for which the device has not enough memory can be tried again. Kernels and
copies of the device are waited for before its memory is given back; no other thread may use the memory
from then on.
"""

from __future__ import annotations

import ctypes
import os
import threading
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Optional, Tuple
from urllib.parse import unquote

__all__ = ["Failure", "NotEnoughMemory", "MemorySaver", "torch_memory_saver"]

_BACKUPS = {"none": 0, "pinned": 1, "pageable": 2, "mmap": 2, "file": 3}
_DEVICE_MEMORY = 1
_MARGIN, _PINNED_POOL, _VERIFY, _RETAIN = 0, 1, 2, 5


class Failure(RuntimeError):
    """A pause, a resume or another call that failed. What it had begun is taken back."""


class NotEnoughMemory(Failure):
    """The device has not enough free memory: device, and the bytes that are needed and available."""

    def __init__(self, text: str, device: int, needed: int, available: int) -> None:
        super().__init__(text)
        self.device = device
        self.needed = needed
        self.available = available


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


def _load() -> Any:
    """The library, which PyTorch loads again by the same path."""
    try:
        lib = ctypes.CDLL(_path())
    except OSError as e:
        raise Failure(f"the library of pausable memory, which `strandline record --module DIR` writes, cannot be loaded: {e}") from None
    lib.pausable_failure.restype = ctypes.POINTER(_Failure)
    lib.pausable_region.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int]
    lib.pausable_pause.argtypes = lib.pausable_resume.argtypes = lib.pausable_set_folder.argtypes = [ctypes.c_char_p]
    lib.pausable_set.argtypes = [ctypes.c_int, ctypes.c_uint64]
    lib.pausable_status.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
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

    # Regions

    @property
    def enabled(self) -> bool:
        """Whether the library is loaded, which the first region does."""
        return self._lib is not None

    @property
    def hook_mode(self) -> str:
        """How allocations are found: "torch", by a pool of PyTorch's allocator."""
        return "torch"

    @hook_mode.setter
    def hook_mode(self, mode: str) -> None:
        if mode != "torch":
            raise Failure(f"there is no hook mode {mode!r}, only 'torch'")

    @contextmanager
    def region(
        self,
        tag: str = "default",
        enable_cpu_backup: bool = False,
        enable_disk_backup: bool = False,
        cpu_backup_backend: Optional[str] = None,
    ) -> Iterator[None]:
        """Makes the memory pausable that PyTorch takes from the current device.

        The contents are kept in the memory of the host with enable_cpu_backup (cpu_backup_backend: "pinned",
        which is faster, or "mmap", which goes back to the host with each resume), in a file with
        enable_disk_backup, and otherwise not at all.
        """
        torch: Any = _torch()

        kind = _kind(enable_cpu_backup, enable_disk_backup, cpu_backup_backend)
        name = tag.encode()
        if len(name) > 63:
            raise ValueError(f"a tag has at most 63 bytes: {tag!r}")
        pool = self._pool(torch, tag, kind)
        with self._as_region(name, kind), torch.cuda.use_mem_pool(pool):
            yield

    @contextmanager
    def disable(self) -> Iterator[None]:
        """Makes what is allocated within a region ordinary memory again, for as long as this is open."""
        torch: Any = _torch()

        if not getattr(self._local, "regions", None):
            raise Failure("there is no region that could be disabled")
        pool = torch.cuda.MemPool()
        try:
            with torch.cuda.use_mem_pool(pool):
                yield
        finally:
            with self._lock:  # PyTorch empties a pool that is dropped, which it cannot within a region
                self._dropped.append(pool)

    @contextmanager
    def _as_region(self, name: bytes, kind: int) -> Iterator[None]:
        """Opens a region in this thread, and for threads that have none: PyTorch sends those to its pool too."""
        own: List[Tuple[bytes, int]] = self._local.__dict__.setdefault("regions", [])
        region = (name, kind)
        with self._lock:
            own.append(region)
            self._regions.append(region)
            self._set_regions(own)
        try:
            yield
        finally:
            with self._lock:
                own.pop()
                self._regions.remove(region)
                self._set_regions(own)
                dropped, self._dropped = ([], self._dropped) if self._regions else (self._dropped, [])
            dropped.clear()

    def _set_regions(self, own: List[Tuple[bytes, int]]) -> None:
        for everywhere, open_ in enumerate((own, self._regions)):
            name, kind = open_[-1] if open_ else (None, 0)
            self._check(self._lib.pausable_region(name, kind, everywhere))

    def _pool(self, torch: Any, tag: str, kind: int) -> Any:
        """The pool of a tag. Without its own, a region would get memory that PyTorch took before it."""
        key = (tag, kind, torch.cuda.current_device())
        with self._lock:
            if key in self._pools:
                return self._pools[key]
            torch.cuda.init()
            _refuse_expandable(torch)
            self._loaded()
            if self._allocator is None:
                self._allocator = _for_good(torch.cuda.memory.CUDAPluggableAllocator(_path(), "pausable_malloc", "pausable_free"))
            pool = _for_good(torch.cuda.MemPool(self._allocator.allocator()))
            self._pools[key] = pool
            return pool

    def _loaded(self) -> Any:
        if self._lib is None:
            self._lib = _load()
            if os.environ.get("TMS_DISK_BACKUP_DIR"):
                self._check(self._lib.pausable_set_folder(os.fsencode(os.environ["TMS_DISK_BACKUP_DIR"])))
            if os.environ.get("TMS_RETAIN_CPU_BACKUP", "").lower() in ("1", "true", "yes"):
                self._check(self._lib.pausable_set(_RETAIN, 1))
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
        if self._lib is not None:
            self._check(getattr(self._lib, name)(None if tag is None else tag.encode()))
        elif tag is not None:
            raise Failure(f"there is no tag {tag}")

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
        """The contents of a paused tensor, on the host. With zero_copy it is valid until the tensor is resumed."""
        torch: Any = _torch()

        size = tensor.untyped_storage().nbytes()
        at = self._lib and size and self._lib.pausable_backup(tensor.untyped_storage().data_ptr(), size)
        if not at:
            raise Failure("there is no backup of this tensor in the host's memory: it is not paused, or has none")
        data = torch.frombuffer((ctypes.c_char * size).from_address(at), dtype=torch.uint8)
        out = torch.empty(0, dtype=tensor.dtype).set_(data.untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride())
        return out if zero_copy else out.clone()

    def set_disk_backup_dir(self, path: str) -> None:
        """Sets the folder of backups in files, which have no name and end with the process."""
        self._check(self._loaded().pausable_set_folder(os.fsencode(path)))

    def set(self, *, margin: Optional[int] = None, pinned_pool: Optional[int] = None, verify: Optional[bool] = None, retain: Optional[bool] = None) -> None:
        """Changes settings: bytes of a device that stay free; bytes of pinned memory that are kept for the next
        pause, at most; whether what comes back is compared with what was saved; whether each block keeps the
        memory of its backup."""
        values = {_MARGIN: margin, _PINNED_POOL: pinned_pool, _VERIFY: verify, _RETAIN: retain}
        for setting, value in values.items():
            if value is not None:
                self._check(self._loaded().pausable_set(setting, int(value)))

    def _write_only(self) -> int:
        raise AttributeError("this can be set, and not read")

    @property
    def memory_margin_bytes(self) -> int:
        """Bytes of a device that stay free; it can only be set."""
        return self._write_only()

    @memory_margin_bytes.setter
    def memory_margin_bytes(self, n: int) -> None:
        self.set(margin=n)

    @property
    def retain_cpu_backup(self) -> int:
        """Whether blocks keep the memory of their backups; it can only be set."""
        return self._write_only()

    @retain_cpu_backup.setter
    def retain_cpu_backup(self, on: bool) -> None:
        self.set(retain=on)

    def status(self) -> Dict[str, Any]:
        """What each tag holds, and what the driver says of each device, in bytes."""
        out: Dict[str, Any] = {"tags": [], "devices": []}
        if self._lib is None:
            return out
        size = self._lib.pausable_status(None, 0) + 4096
        text = ctypes.create_string_buffer(size)
        self._lib.pausable_status(text, size)
        for line in text.value.decode("ascii", "replace").splitlines():
            word, *rest = line.split(" ")
            if word == "tag":
                name, size_, blocks, state, backup, kept, held = rest
                out["tags"].append(
                    {"tag": unquote(name), "bytes": int(size_), "blocks": int(blocks), "state": state, "backup": backup,
                     "backup_bytes": int(kept), "held_bytes": int(held)}
                )
            elif word == "device":
                index, free, total = map(int, rest)
                out["devices"].append({"device": index, "free_bytes": free, "total_bytes": total})
            elif word == "freed":
                out["not_freed_bytes"] = int(rest[1])
            elif word == "kept":
                out["pinned_pool_bytes"] = int(rest[0])
        return out


def _torch() -> Any:
    import torch

    return torch


def _kind(cpu: bool, disk: bool, backend: Optional[str]) -> int:
    if cpu and disk:
        raise ValueError("a backup is either in the memory of the host or in a file")
    if backend not in (None, "pinned", "mmap"):
        raise ValueError(f"there is no backend {backend!r} of backups: pinned, or mmap")
    return _BACKUPS["file" if disk else (backend or "pinned") if cpu else "none"]


def _refuse_expandable(torch: Any) -> None:
    """Raises where PyTorch would ignore the pool's allocator."""
    settings = torch._C._cuda_memorySnapshot().get("allocator_settings", {})
    if settings.get("expandable_segments"):
        raise Failure("with expandable_segments:True PyTorch takes memory in another way: take it out of PYTORCH_CUDA_ALLOC_CONF")


def _for_good(what: Any) -> Any:
    """Keeps an object until the process ends. PyTorch frees the memory of a pool with it, which it cannot do as
    the interpreter ends, when the allocator may be gone."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(what))
    return what


torch_memory_saver = MemorySaver()
