"""Finds the lines of Python whose objects stay, for `strandline check`.

While a program looks like one that leaks, its allocations are traced for a while by Python's own tracemalloc,
which knows the line of each object. What was allocated meanwhile and is still there, more and more of it, is
what grows. What tracing takes itself is no part of the levels.

A program that counts steps is traced for some of them. In one that does not, a signal says that it is to begin,
and each further one that a period has passed. To look at what is traced takes longer the more a program holds, so
that the program gets on for some times as long before the next look. An import, which makes many objects that all
stay, is not traced.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import sys
import time
import tracemalloc
from typing import Any, Callable, Dict, List, Tuple

from . import _folder

_FRAMES = 12
_FEWEST = 12  # steps that are traced
_LOOKS = 3  # at their beginning, middle and end
_SHARE = 8  # one in so many of the steps until then
_SETTLING = 2  # steps at first that do not count: caches that hold the last objects are refilled
_MOST = 32 << 20  # bytes of tracemalloc's own, after which it ends
_PLACES = 1000  # that are looked at
_LINES = 10  # that are written
_PERIODS = 9  # ends of periods at which a program without steps is looked at
_DIPS = 0.1  # of its growth, by which what a line holds may be less than a period before
_FEWEST_PERIODS = 5  # from which something can be told
_BETWEEN = 4  # times of a look between two, so that the program gets on
_SHORTEST, _PART = 0.25, 32  # seconds of a period, and the part of the time until then that it is
_MANY = 384 << 10  # bytes of tracemalloc's own, some 4,000 objects that stayed, after which a period ends early
_LONGEST = 20.0  # seconds that a program without steps is traced, if there are the fewest periods by then
_NEARLY = 0.25  # of that growth, by which theirs may differ from it

_Stack = Tuple[Tuple[str, int], ...]  # innermost first
_Sizes = Dict[_Stack, Tuple[int, int]]  # bytes and number


class Growing:
    """The steps of one process in which its allocations are traced."""

    def __init__(self, folder: Callable[[], _folder.Folder], name: str, tell: Callable[[str, Exception], None], began: float) -> None:
        self.folder = folder
        self.name = name  # of the file in the folder that has what is found
        self.tell = tell  # notes what failed
        self.pid = os.getpid()
        self.asked = 0  # how often it was asked for
        self.first = 0  # the step after which tracing began; 0 if it does not run
        self.due = self.half = 0  # the step of the next look at the earliest, and the steps between two
        self.at: Dict[int, _Sizes] = {}
        self.periods: List[Tuple[float, int, _Sizes]] = []  # time, bytes of the process, of its objects
        self.by_period = False
        self.n = 0  # the last step
        self.next = 0.0  # time before which there is no further look
        self.began = began  # when the program did
        self.long = self.ends = 0.0  # seconds of a period, and when this one ends
        self.own = 0  # bytes of tracemalloc at the last look
        atexit.register(self.end)

    def begin(self, n: int, asked: int) -> None:
        """Trace from the end of step n on, if lines were asked for more often than before."""
        if asked <= self.asked or tracemalloc.is_tracing():
            return
        self.asked, self.at, self.next = asked, {}, 0.0
        self.first, self.due, self.half = n, n + _SETTLING, max(_FEWEST, n // _SHARE) // 2
        with contextlib.suppress(OSError), self.folder() as folder:  # it shows that malloc's calls are not those of the program alone
            folder.append(self.name + "+").close()
        tracemalloc.start(_FRAMES)

    def step(self, n: int) -> int:
        """Step n has ended. Returns the bytes that tracing takes."""
        self.n = n
        if self.by_period:  # it counts steps after all
            self.drop()
        if not self.first:
            return 0
        own = taken()
        if own > _MOST or n >= self.due and time.monotonic() >= self.next:
            self.at[n], _ = self.look()
            self.due = n + max(self.half, n - min(self.at))  # as many steps after the second look as before it
            if own > _MOST or len(self.at) == _LOOKS:
                self.end()
                return 0
        return own

    def look(self) -> Tuple[_Sizes, int]:
        """Look at what is there, and set the time of the next look by how long that took."""
        began = time.thread_time()
        out = sizes()
        self.next = time.monotonic() + _BETWEEN * (time.thread_time() - began)
        return out

    def period(self, asked: int, held: int, frame: Any) -> None:
        """A period may have ended, at which the process holds so many bytes, and its main thread is there.

        Trace from the first one on, if lines were asked for more often than before. Tracing slows a program of small
        objects down 30 times, but of many that stay a short time says enough.
        """
        if not self.by_period:
            if asked > self.asked and not tracemalloc.is_tracing() and not importing(frame):
                now = time.monotonic()
                self.asked, self.by_period, self.periods, self.next, self.own = asked, True, [], 0.0, 0
                self.long = max(_SHORTEST, (now - self.began) / _PART)
                self.ends = now + self.long
                with self.folder() as folder:  # a file shows that levels are not those of the program alone
                    folder.append(self.name + "~").close()
                tracemalloc.start(_FRAMES)
            return
        if importing(frame):
            self.drop()
            self.asked -= 1
            return
        began, own = time.monotonic(), taken()
        if began < self.next or began < self.ends and own < self.own + _MANY:
            return
        self.ends, self.own = began + self.long, own
        objects, ours = self.look()
        self.periods.append((began, held - own - ours, objects))
        first, last = self.periods[0], self.periods[-1]
        enough = len(self.periods) >= _FEWEST_PERIODS and (last[1] <= first[1] or last[0] - first[0] > _LONGEST or self.explained())
        if own > _MOST or enough or len(self.periods) >= _PERIODS:
            self.end()

    def drop(self) -> None:
        """Stop tracing a program without steps, and forget what was seen. The result of an earlier trace stays."""
        self.by_period = False
        tracemalloc.stop()
        with self.folder() as folder:
            folder.unlink(self.name + "~")

    def end(self) -> None:
        """Stop tracing, and write what grows."""
        if self.first:
            if len(self.at) == 1 and self.n >= self.due:  # it has ended before the time of the next look
                self.at[self.n], _ = sizes()
            self.first = 0
            tracemalloc.stop()
            if os.getpid() == self.pid:  # not a forked child
                with contextlib.suppress(OSError), self.folder() as folder:
                    folder.unlink(self.name + "+")
            steps = sorted(self.at)
            if len(steps) > 1:
                a, b, c = self.at[steps[0]], self.at[steps[1]], self.at[steps[-1]]
                stayed = [k for k, (size, _) in c.items() if a.get(k, _NONE)[0] < b.get(k, _NONE)[0] and (b[k][0] < size or b is c)]
                self.write(a, c, stayed, {"steps": steps[-1] - steps[0]})
        elif self.by_period and len(self.periods) < _FEWEST_PERIODS:
            self.drop()
        elif self.by_period:
            self.by_period = False
            tracemalloc.stop()
            self.of_periods()

    def stayed(self) -> List[_Stack]:
        """The lines that hold more with each period. What lives for a moment is sometimes less than before."""
        out = []
        for k in self.periods[-1][2]:
            sizes = [p[2].get(k, _NONE)[0] for p in self.periods]
            most = _DIPS * (sizes[-1] - sizes[0])
            if most > 0 and all(x - y <= most for x, y in zip(sizes, sizes[1:])):
                out.append(k)
        return out

    def grew(self) -> float:
        """The bytes by which the process grew in the periods, by the median of their rates."""
        rates = sorted((y[1] - x[1]) / (y[0] - x[0]) for i, x in enumerate(self.periods) for y in self.periods[i + 1 :])
        return (self.periods[-1][0] - self.periods[0][0]) * rates[len(rates) // 2]

    def explained(self) -> bool:
        """Whether the lines hold about as much more as the process does."""
        a, c = self.periods[0][2], self.periods[-1][2]
        held, grew = sum(c[k][0] - a.get(k, _NONE)[0] + _ROUNDED * (c[k][1] - a.get(k, _NONE)[1]) for k in self.stayed()), self.grew()
        return abs(held - grew) < _NEARLY * grew

    def of_periods(self) -> None:
        """Write what grows in a program that may be looked at in the middle of a step."""
        a, c = self.periods[0], self.periods[-1]
        self.write(a[2], c[2], self.stayed(), {"seconds": round(c[0] - a[0], 3), "grew": round(self.grew())})

    def write(self, a: _Sizes, c: _Sizes, stayed: List[_Stack], basis: Dict[str, Any]) -> None:
        """Write what those lines hold more of in c than in a."""
        if os.getpid() != self.pid:
            return
        lines = [(c[k][0] - a.get(k, _NONE)[0], c[k][1] - a.get(k, _NONE)[1], k) for k in stayed]
        lines.sort(reverse=True)
        most = [{"bytes": size, "count": count, "frames": [{"file": f, "line": n} for f, n in stack]} for size, count, stack in lines[:_LINES]]
        try:
            with self.folder() as folder:
                folder.replace(self.name, json.dumps({"pid": os.getpid(), **basis, "lines": most}).encode())
        except OSError as e:
            self.tell("the lines that grow are not known", e)


_NONE = (0, 0)
_ROUNDED = 8  # bytes by which an object is rounded up, on average


def taken() -> int:
    """The bytes that tracemalloc takes. It does not count that malloc rounds up, nor half of each trace since CPython 3.9."""
    return int(tracemalloc.get_tracemalloc_memory() * (1.87 if sys.version_info >= (3, 9) else 1.13))


def importing(frame: Any) -> bool:
    """Report whether a module is being imported there."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def sizes() -> Tuple[_Sizes, int]:
    """Bytes and number of the objects that are there, by the frames that allocated them, innermost first; and bytes of ours."""
    if gc.isenabled():
        gc.collect()
    # Each object that is made here is traced, too, which takes the time of a look with statistics(): ten times as long.
    snapshot: Any = tracemalloc.take_snapshot()
    by_stack: Dict[_Stack, List[int]] = {}
    for trace in snapshot.traces._traces:  # domain, size, frames, and since CPython 3.9 how many there were
        some = by_stack.get(trace[2])
        if some is None:
            some = by_stack[trace[2]] = []
        some.append(trace[1])
    most = sorted(((sum(some), len(some), stack) for stack, some in by_stack.items()), reverse=True)[:_PLACES]
    folder, ours = os.path.dirname(__file__), 0
    out: _Sizes = {}
    for size, count, stack in most:
        if os.path.dirname(stack[0][0]) == folder or stack[0][0] == tracemalloc.__file__:
            ours += size
        else:
            out[stack] = size, count
    return out, ours
