"""Reports whether a backward pass runs, in which PyTorch's threads of C++ release tensors.

A tensor has an owner: Python while an object of Python refers to it, else C++. It changes hands when its last
reference of Python goes (THPVariable_tryResurrect), and if C++ releases the tensor at that very moment, its
object is freed twice. That does not happen to a program of one thread, which waits while its backward pass
runs. A pass for holders must not bring it about, so it neither takes a gradient from C++ nor drops what it
holds while one runs.
"""

from __future__ import annotations

import os
import sys
import time

_FILES = tuple(os.sep + os.path.join("torch", "autograd", name) for name in ("graph.py", "__init__.py"))
_CALLS = frozenset(("_engine_run_backward", "backward", "grad"))
_PAUSE = 0.002  # seconds between two looks


def idle() -> bool:
    """Report whether no thread of Python waits for a backward pass."""
    for frame in sys._current_frames().values():
        at = frame
        while at is not None:
            if at.f_code.co_name in _CALLS and at.f_code.co_filename.endswith(_FILES):
                return False
            at = at.f_back  # type: ignore[assignment]
    return True


def wait(seconds: float) -> bool:
    """Wait until none runs, and report whether that came to be in so many seconds."""
    end = time.monotonic() + seconds
    while not idle():
        if time.monotonic() > end:
            return False
        time.sleep(_PAUSE)
    return True
