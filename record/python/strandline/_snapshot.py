"""Switches the history on, and takes a snapshot without importing anything.

To name the lines behind code that torch.compile generated, PyTorch looks for torch._inductor, and its lookup
imports that module where the program has not. In the recorder's thread that would be an import beside those of
the program: two threads that import modules of PyTorch in opposite orders end in a _DeadlockError. A program
without torch._inductor has no generated code, so nothing is missing from the snapshot.
"""

from __future__ import annotations

import inspect
import threading
from typing import Any, Dict, Mapping

from . import _options

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


def parameters(torch: Any) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(torch.cuda.memory._record_memory_history).parameters


def record_history(torch: Any, o: _options.Options) -> Dict[str, Any]:
    """Switch recording on by whatever arguments this release has, and return them."""
    known = parameters(torch)
    if "trace_alloc_max_entries" in known:  # 2.0
        arguments: Dict[str, Any] = {
            "enabled": True,
            "record_context": True,
            "trace_alloc_max_entries": o.entries,
            "trace_alloc_record_context": True,
            "record_context_cpp": o.stacks == "all",
        }
    else:
        arguments = {"enabled": "all", "context": o.context, "stacks": o.stacks, "max_entries": o.entries}
    if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.values()):
        arguments = {k: v for k, v in arguments.items() if k in known}
    torch.cuda.memory._record_memory_history(**arguments)
    return arguments
