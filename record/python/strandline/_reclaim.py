"""Gives memory back: collects garbage, empties PyTorch's cache, and resets its peaks."""

from __future__ import annotations

import gc
import time
from typing import Any, Dict


def reclaim(torch: Any) -> Dict[str, Any]:
    """Reclaim what can be, and return what each part gave back and how long it took.

    Bytes are summed over the devices of this process, times are in seconds.
    """

    def total(what: str) -> int:
        f = getattr(torch.cuda, what)
        return sum(int(f(i)) for i in range(torch.cuda.device_count()))

    began = time.monotonic()
    allocated, reserved = total("memory_allocated"), total("memory_reserved")
    objects = gc.collect()
    collected = time.monotonic()
    allocated_after = total("memory_allocated")
    if hasattr(torch.cuda, "ipc_collect"):
        torch.cuda.ipc_collect()
    torch.cuda.empty_cache()
    emptied = time.monotonic()
    reserved_after = total("memory_reserved")
    for i in range(torch.cuda.device_count()):
        torch.cuda.reset_peak_memory_stats(i)
    return {
        "collected_objects": objects,
        "collected_bytes": allocated - allocated_after,
        "collect_seconds": round(collected - began, 6),
        "emptied_bytes": reserved - reserved_after,
        "empty_seconds": round(emptied - collected, 6),
        "reserved_bytes": reserved_after,
    }
