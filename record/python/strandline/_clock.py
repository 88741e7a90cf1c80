"""The clock of bounded passes: it stands still while other programs have the processor, for some time."""

import time

_LONGEST = 3.0  # seconds that it stands still in a pass

_began = _own = 0.0


def start() -> float:
    """Begin a pass of this thread, and return the time."""
    global _began, _own
    _began, _own = time.monotonic(), time.thread_time()
    return _began


def now() -> float:
    """The time in seconds, like time.monotonic(), less what this thread did not run of the pass."""
    wall = time.monotonic()
    waited = wall - _began - (time.thread_time() - _own)
    return wall - min(max(waited, 0.0), _LONGEST)
