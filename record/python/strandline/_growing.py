"""Finds the lines of Python whose objects stay, for `strandline check`.

While a program looks like one that leaks, its allocations are traced for a while by Python's own tracemalloc,
which knows the line of each object. What was allocated meanwhile and is still there, more and more of it, is
what grows. What tracing takes itself is no part of the levels.

A program that counts steps is traced for some of them. In one that does not, a signal says that it is to begin,
and each further one that a period has passed.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import time
import tracemalloc
from typing import Any, Dict, List, Tuple

_FRAMES = 12
_FEWEST = 12  # steps that are traced
_SHARE = 8  # one in so many of the steps until then
_SETTLING = 2  # steps at first that do not count: caches that hold the last objects are filled anew
_MOST = 16 << 20  # bytes of tracemalloc's own, after which it ends
_PLACES = 1000  # that are looked at
_LINES = 10  # that are written
_PERIODS = 9  # ends of periods at which a program without steps is looked at
_DIPS = 0.1  # of its growth, by which what a line holds may be less than a period before
_BETWEEN = 4  # times of a look between two, so that the program gets on
_MOST_BETWEEN = 1.0  # seconds
_FEWEST_PERIODS = 5  # from which something can be told

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
        self.periods: List[Tuple[float, int, _Sizes]] = []  # time, bytes of the process, of its objects
        self.by_period = False
        self.next = 0.0  # time before which a period is too short
        atexit.register(self.end)

    def begin(self, n: int, asked: int) -> None:
        """Trace from the end of step n on, if lines were asked for more often than before."""
        if asked <= self.asked or tracemalloc.is_tracing():
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
            self.at[n], _ = sizes()
        if own > _MOST or n >= self.last:
            self.end()
            return 0
        return own

    def period(self, asked: int, held: int) -> None:
        """A period has ended, at which the process holds so many bytes.

        Trace from the first one on, if lines were asked for more often than before.
        """
        if not self.by_period:
            if asked > self.asked and not tracemalloc.is_tracing():
                self.asked, self.by_period, self.periods = asked, True, []
                with open(self.path + "~", "w"):  # shows that levels are not those of the program alone
                    pass
                tracemalloc.start(_FRAMES)
            return
        began = time.monotonic()
        if began < self.next:
            return
        own, (objects, ours) = tracemalloc.get_tracemalloc_memory(), sizes()
        self.periods.append((began, held - own - ours, objects))
        now = time.monotonic()
        self.next = now + min(_BETWEEN * (now - began), _MOST_BETWEEN)
        if own > _MOST or len(self.periods) >= _PERIODS:
            self.end()

    def end(self) -> None:
        """Stop tracing, and write what grows."""
        if self.first:
            self.first = 0
            tracemalloc.stop()
            steps = sorted(self.at)
            if len(steps) > 1:
                a, b, c = self.at[steps[0]], self.at[steps[1]], self.at[steps[-1]]
                stayed = [k for k, (size, _) in c.items() if a.get(k, _NONE)[0] < b.get(k, _NONE)[0] and (b[k][0] < size or b is c)]
                self.write(a, c, stayed, {"steps": steps[-1] - steps[0]})
        elif self.by_period:
            self.by_period = False
            tracemalloc.stop()
            self.of_periods()

    def of_periods(self) -> None:
        """Write what grows in a program that may be looked at in the middle of a step.

        What lives for a moment is sometimes less than before. What stays is not.
        """
        if len(self.periods) < _FEWEST_PERIODS:
            self.write({}, {}, [], {"seconds": 0})
            return
        a, c = self.periods[0], self.periods[-1]
        stayed = []
        for k in c[2]:
            sizes = [p[2].get(k, _NONE)[0] for p in self.periods]
            most = _DIPS * (sizes[-1] - sizes[0])
            if most > 0 and all(x - y <= most for x, y in zip(sizes, sizes[1:])):
                stayed.append(k)
        seconds = c[0] - a[0]
        rates = sorted((y[1] - x[1]) / (y[0] - x[0]) for i, x in enumerate(self.periods) for y in self.periods[i + 1 :])
        self.write(a[2], c[2], stayed, {"seconds": round(seconds, 3), "grew": round(seconds * rates[len(rates) // 2])})

    def write(self, a: _Sizes, c: _Sizes, stayed: List[_Stack], basis: Dict[str, Any]) -> None:
        """Write what those lines hold more of in c than in a."""
        if os.getpid() != self.pid:
            return
        lines = [(c[k][0] - a.get(k, _NONE)[0], c[k][1] - a.get(k, _NONE)[1], k) for k in stayed]
        lines.sort(reverse=True)
        most = [{"bytes": size, "count": count, "frames": [{"file": f, "line": n} for f, n in stack]} for size, count, stack in lines[:_LINES]]
        with open(self.path + "~", "w", encoding="utf-8") as f:
            json.dump({"pid": os.getpid(), **basis, "lines": most}, f)
        os.replace(self.path + "~", self.path)


_NONE = (0, 0)


def sizes() -> Tuple[_Sizes, int]:
    """Bytes and number of the objects that are there, by the frames that allocated them, innermost first; and bytes of ours."""
    if gc.isenabled():
        gc.collect()
    folder, ours = os.path.dirname(__file__), 0
    out: _Sizes = {}
    for s in tracemalloc.take_snapshot().statistics("traceback")[:_PLACES]:
        key = tuple((f.filename, f.lineno) for f in reversed(s.traceback))
        if key[0][0] == tracemalloc.__file__ or os.path.dirname(key[0][0]) == folder:
            ours += s.size
        else:
            out[key] = s.size, s.count
    return out, ours
