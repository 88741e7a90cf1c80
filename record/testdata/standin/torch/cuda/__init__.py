import os

from .. import _C, OutOfMemoryError

TOTAL = 1 << 30
_initialized = False
_initialised_in = None
_queued = []
_events = []
_blocks = {}
_next = [0x7F0000000000]
_recording = None


def is_initialized():
    return _initialized


def _lazy_call(call):
    _queued.append(call)


def init():
    global _initialized, _initialised_in
    if _initialized:
        if _initialised_in != os.getpid():
            raise RuntimeError("Cannot re-initialize CUDA in forked subprocess")
        return
    for call in _queued:
        call()
    _initialized, _initialised_in = True, os.getpid()


def device_count():
    return 1


class _Properties:
    name = "stand-in"
    total_memory = TOTAL


def get_device_properties(device):
    return _Properties


def allocate(size):
    """Takes device memory and returns its address."""
    init()
    if memory_allocated() + size > TOTAL:
        for observer in list(_C.observers):
            observer(0, size, TOTAL, TOTAL - memory_allocated())
        raise OutOfMemoryError("CUDA out of memory.")
    address = _next[0]
    _next[0] += (size + 511) // 512 * 512
    _blocks[address] = size
    _note("alloc", address, size)
    return address


def free(address):
    size = _blocks.pop(address)
    _note("free_requested", address, size)
    _note("free_completed", address, size)


def _note(action, address, size):
    import sys
    import time

    if _recording is None:
        return
    frame = sys._getframe(2)
    where = {"filename": frame.f_code.co_filename, "line": frame.f_lineno, "name": frame.f_code.co_name}
    _events.append({"action": action, "addr": address, "size": size, "stream": 0, "time_us": time.time_ns() // 1000, "frames": [where]})
    del _events[: -_recording["max_entries"]]


def memory_allocated(device=0):
    return sum(_blocks.values())


def memory_reserved(device=0):
    return memory_allocated()


def memory_stats(device=0):
    n = memory_allocated()
    return {
        "allocated_bytes.all.current": n,
        "active_bytes.all.current": n,
        "reserved_bytes.all.current": n,
        "allocated_bytes.all.peak": n,
        "reserved_bytes.all.peak": n,
        "num_alloc_retries": 0,
        "num_ooms": 0,
    }


def empty_cache():
    pass


def ipc_collect():
    pass


def reset_peak_memory_stats(device=0):
    pass


from . import memory  # noqa: E402, F401

