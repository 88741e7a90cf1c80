"""Takes a snapshot without importing anything.

To name the lines behind code that torch.compile generated, PyTorch looks for torch._inductor, and its lookup
imports that module where the program has not. In the recorder's thread that would be an import beside those of
the program: two threads that import modules of PyTorch in opposite orders end in a _DeadlockError. A program
without torch._inductor has no generated code, so nothing is missing from the snapshot.
"""

from __future__ import annotations

import threading
from typing import Any, Mapping

_LAZY = "_inductor"


def empty() -> Mapping[str, Any]:
    """What that is in a process without a device."""
    return {"segments": [], "device_traces": [], "allocator_settings": {}}


def take(torch: Any) -> Mapping[str, Any]:
    """The allocator's state and history, as torch.cuda.memory._snapshot returns it."""
    names = vars(torch)
    lookup = names.get("__getattr__")
    if lookup is None or _LAZY in names:
        return _of(torch)
    thread = threading.get_ident()

    def __getattr__(name: str) -> Any:
        if name == _LAZY and threading.get_ident() == thread:
            raise AttributeError(name)
        return lookup(name)

    names["__getattr__"] = __getattr__
    try:
        return _of(torch)
    finally:
        if names.get("__getattr__") is __getattr__:
            names["__getattr__"] = lookup


def _of(torch: Any) -> Mapping[str, Any]:
    snapshot: Mapping[str, Any] = torch.cuda.memory._snapshot()
    return snapshot
