"""Tells which objects only a reference cycle keeps, as Python's collector would find, without running it."""

from __future__ import annotations

import collections
import sys
from typing import Any, Callable, Dict, List, Set

from . import _owned

_LEVELS = 6  # of owners that are looked at
_MOST = 2048  # objects
_NAMED = 3  # classes that are named
_PLAIN = frozenset(("dict", "list", "tuple", "cell", "set"))


class Cycles:
    """Those of some objects that nothing keeps but objects that refer to each other, and the classes of these."""

    def __init__(self, objects: List[Any], owners: Callable[[List[Any]], List[Any]]) -> None:
        """Begin with objects that have owners. What was not come to counts as a name of the program does."""
        first = len(objects)
        closure = list(objects)
        index = {id(o): i for i, o in enumerate(closure)}
        ours = id(closure)
        begin = 0
        for _ in range(_LEVELS):
            end = len(closure)
            for r in owners(closure[begin:end]):
                if id(r) not in index and id(r) != ours and len(closure) < _MOST:
                    index[id(r)] = len(closure)
                    closure.append(r)
            r = None  # which would count as an owner
            begin = end
            if begin == len(closure):
                break
        refers = [[index[i] for i in map(id, _owned.referents(o)) if i in index] for o in closure]
        inside = collections.Counter(i for some in refers for i in some)
        counts = list(map(sys.getrefcount, closure))
        kept = [i for i in range(len(closure)) if (counts[i] - _OURS > inside[i] if i >= first else not inside[i])]
        seen = set(kept)
        while kept:
            more = set(refers[kept.pop()]) - seen
            seen |= more
            kept += more
        self.ids: Set[int] = {id(closure[i]) for i in range(first) if i not in seen}
        self.shared: Set[int] = set()  # of these, those whose objects keep others of them too, as a list that is in a cycle does
        for members in _apart([i for i in range(len(closure)) if i not in seen], refers):
            some = [id(closure[i]) for i in members if i < first]
            self.shared.update(some if len(some) > 1 else ())
        names = {type(closure[i]).__name__ for i in range(first, len(closure)) if i not in seen}
        self.path = "reference cycles of " + ", ".join(sorted(names - _PLAIN or names)[:_NAMED])
        closure.clear()


def qualify(out: Dict[str, Any], ended: bool) -> None:
    """Say less of what a pass found if the program has ended: its names may have led to cycles until then.

    Nothing is said of tensors that others share a cycle with: a list that the program kept may be in it.
    """
    for h in out["holders"] if ended else ():
        if h["kind"] == "garbage":
            h["kind"] = "cycles"
            shared = set(h["shared"])
            h["blocks"] = [a for a in h["blocks"] if a not in shared]
            out["blocks_sampled"] = [a for a in out["blocks_sampled"] if a not in shared]


def _apart(members: List[int], refers: List[List[int]]) -> List[List[int]]:
    """The parts of some objects between which there are no references, but those of what they refer to outside."""
    beside: Dict[int, Set[int]] = {i: set() for i in members}
    for i in members:
        for j in refers[i]:
            if j in beside:
                beside[i].add(j)
                beside[j].add(i)
    parts = []
    while beside:
        part = [next(iter(beside))]
        waiting = beside.pop(part[0])
        while waiting:
            i = waiting.pop()
            part.append(i)
            waiting |= beside.pop(i, set())
            waiting &= beside.keys()
        parts.append(part)
    return parts


_OURS = next(map(sys.getrefcount, [object()]))  # references that a list and a count of them are
