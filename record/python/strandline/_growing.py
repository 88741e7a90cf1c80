"""Finds the lines of Python whose objects stay, for `strandline check`.

While a program looks like one that leaks, its allocations are traced during a few steps by Python's own
tracemalloc, which knows the line of each object. What was allocated in them and is still there, more of it
after each half, is what grows. What tracing takes itself is no part of the levels.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import tracemalloc
from typing import Dict, List, Tuple

_FRAMES = 12
_FEWEST = 12  # steps that are traced
_SHARE = 8  # one in so many of the steps until then
_SETTLING = 2  # steps at first that do not count: caches that hold the last objects are filled anew
_MOST = 16 << 20  # bytes of tracemalloc's own, after which it ends
_PLACES = 1000  # that are looked at
_LINES = 10  # that are written

_Stack = Tuple[Tuple[str, int], ...]  # innermost first
_Sizes = Dict[_Stack, Tuple[int, int]]  # bytes and number


class Growing:
    """The steps of one process in which its allocations are traced."""

    def __init__(self, path: str) -> None:
        self.path = path  # what is found is written there
        self.pid = os.getpid()
        self.asked = 0  # how often it was asked for
        self.first = 0  # the step after which tracing began; 0 if it does not run
        self.begins = self.middle = self.last = 0
        self.at: Dict[int, _Sizes] = {}
        atexit.register(self.end)

    def begin(self, n: int, asked: int) -> None:
        """Trace from the end of step n on, if lines were asked for more often than before."""
        if self.first or asked <= self.asked or tracemalloc.is_tracing():
            return
        steps = max(_FEWEST, n // _SHARE)
        self.asked, self.at = asked, {}
        self.first, self.begins, self.middle, self.last = n, n + _SETTLING, n + _SETTLING + steps // 2, n + _SETTLING + steps
        tracemalloc.start(_FRAMES)

    def step(self, n: int) -> int:
        """Step n has ended. Returns the bytes that tracing takes."""
        if not self.first:
            return 0
        own = tracemalloc.get_tracemalloc_memory()
        if own > _MOST or n in (self.begins, self.middle, self.last):
            self.at[n] = sizes()
        if own > _MOST or n >= self.last:
            self.end()
            return 0
        return own

    def end(self) -> None:
        """Stop tracing, and write what grows."""
        if not self.first:
            return
        self.first = 0
        tracemalloc.stop()
        steps = sorted(self.at)
        if len(steps) < 2 or os.getpid() != self.pid:
            return
        a, b, c = self.at[steps[0]], self.at[steps[1]], self.at[steps[-1]]
        lines: List[Tuple[int, int, _Stack]] = []
        for frames, (size, count) in c.items():
            before, early = a.get(frames, (0, 0)), b.get(frames, (0, 0))
            if before[0] < early[0] and (early[0] < size or b is c):
                lines.append((size - before[0], count - before[1], frames))
        lines.sort(reverse=True)
        most = [{"bytes": size, "count": count, "frames": [{"file": f, "line": n} for f, n in stack]} for size, count, stack in lines[:_LINES]]
        with open(self.path + "~", "w", encoding="utf-8") as f:
            json.dump({"pid": os.getpid(), "steps": steps[-1] - steps[0], "lines": most}, f)
        os.replace(self.path + "~", self.path)


def sizes() -> _Sizes:
    """Bytes and number of the objects that are there, by the frames that allocated them, innermost first."""
    if gc.isenabled():
        gc.collect()
    own = os.path.dirname(__file__)
    out: _Sizes = {}
    for s in tracemalloc.take_snapshot().statistics("traceback")[:_PLACES]:
        key = tuple((f.filename, f.lineno) for f in reversed(s.traceback))
        if key[0][0] != tracemalloc.__file__ and os.path.dirname(key[0][0]) != own:
            out[key] = s.size, s.count
    return out
