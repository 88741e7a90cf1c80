import os
import sys
import time

import torch

from .. import _RELEASE, cuda


def get_allocator_backend():
    return "native"


def _begin(**arguments):
    cuda._recording = arguments if arguments["enabled"] else None
    if not arguments["enabled"]:
        cuda._events.clear()


if _RELEASE == "2.0":

    def _record_memory_history(
        enabled: bool,
        record_context=True,
        trace_alloc_max_entries=1,
        trace_alloc_record_context=False,
        device=None,
        record_context_cpp=False,
    ):
        assert isinstance(enabled, bool)
        _begin(enabled=enabled, max_entries=trace_alloc_max_entries, stacks="all" if record_context_cpp else "python")

elif _RELEASE == "2.11":

    def _record_memory_history(
        enabled="all",
        context="all",
        stacks="all",
        max_entries=sys.maxsize,
        device=None,
        clear_history=False,
        compile_context=False,
        global_record_annotations=False,
        skip_actions=None,
    ):
        assert enabled in (None, "state", "all")
        _begin(enabled=enabled, max_entries=max_entries, stacks=stacks)

else:

    def _record_memory_history(enabled="all", *args, **kwargs):
        assert enabled in (None, "state", "all")
        _impl(enabled, *args, **kwargs)

    def _impl(enabled="all", context="all", stacks="all", max_entries=sys.maxsize, device=None):
        _begin(enabled=enabled, max_entries=max_entries, stacks=stacks)

    import inspect

    _record_memory_history.__signature__ = inspect.signature(_impl)


def _snapshot():
    if os.environ.get("STANDIN_SNAPSHOT") == "raise":
        raise RuntimeError("no snapshot today")
    time.sleep(float(os.environ.get("STANDIN_SNAPSHOT_SECONDS", "0")))
    hasattr(torch, "_inductor")  # as PyTorch does, for the lines behind generated code
    blocks = [
        {"address": a, "size": (n + 511) // 512 * 512, "requested_size": n, "state": "active_allocated", "frames": []}
        for a, n in sorted(cuda._blocks.items())
    ]
    segments = []
    for b in blocks:  # each is a segment of its own
        size = b["size"]
        segments.append(
            {
                "device": 0,
                "address": b["address"],
                "total_size": size,
                "allocated_size": size,
                "active_size": size,
                "requested_size": b["requested_size"],
                "stream": 0,
                "segment_type": "large",
                "segment_pool_id": (0, 0),
                "is_expandable": False,
                "frames": [],
                "blocks": [b],
            }
        )
    return {"segments": segments, "device_traces": [list(cuda._events)], "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": ""}, "external_annotations": []}
