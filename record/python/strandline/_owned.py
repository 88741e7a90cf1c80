"""Lists objects of the collector that may be referred to while other threads run.

A tensor that only C++ refers to may have a Python object too, which the collector lists. C++ expects to
be its only owner: if its last reference goes while somebody in Python has one, PyTorch prints a warning,
and the object is unusable. Threads of C++ release tensors at any time, but they take the interpreter's
lock before they look at the object. So a list in which such objects stand must be gone before the
interpreter can run another thread, which it may between any two instructions.

Each function here therefore makes its lists, chooses from them and drops them in one call of list: the
iterators are made before, consume nothing until then, and nothing else refers to them.
"""

from __future__ import annotations

import functools
import gc
import itertools
import operator
import sys
from typing import Any, Callable, Iterable, Iterator, List, Set


def referred(kinds: Set[int], limit: Iterator[bool]) -> List[Any]:
    """The objects of some classes, given by their ids, to which one of the collector's objects refers.

    Python owns them: no reference of C++ is needed to keep them. An object is listed for each reference. Objects
    are looked into until the limit, an iterator of as many True, has come to its end; see referents for the one
    that is not.
    """

    def source() -> Iterator[Any]:
        objects = itertools.compress(_listed(gc.get_objects, ()), limit)
        safe = itertools.filterfalse(functools.partial(operator.is_, sys.modules.get("_asyncio")), objects)
        return itertools.chain.from_iterable(map(gc.get_referents, safe))

    return list(_chosen(kinds, True, *itertools.tee(source())))


def referents(o: Any) -> List[Any]:
    """What an object refers to; of the module _asyncio, its namespace.

    That of Python 3.12 lists iterators that are freed already. A reference to one frees it again, after which the
    collector never comes to the end of that list.
    """
    return [vars(o)] if o is sys.modules.get("_asyncio") else gc.get_referents(o)


def referrers(objects: List[Any], kinds: Set[int]) -> List[Any]:
    """The collector's objects that refer to some, but for those of some classes, given by their ids."""
    return list(_chosen(kinds, False, *itertools.tee(_listed(gc.get_referrers, objects))))


def instances(kinds: Set[int]) -> List[Any]:
    """The collector's objects of some classes, given by their ids, which only Python owns."""
    return list(_chosen(kinds, True, *itertools.tee(_listed(gc.get_objects, ()))))


def _listed(call: Callable[..., List[Any]], arguments: Iterable[Any]) -> Iterator[Any]:
    """The objects that a call lists, which is made when the first is asked for."""
    return itertools.chain.from_iterable(itertools.starmap(call, (arguments,)))


def _chosen(kinds: Set[int], of_them: bool, found: Iterator[Any], examined: Iterator[Any]) -> Iterator[Any]:
    """Those found whose class is one of some, or is not; examined are the same objects."""
    of_kinds = map(kinds.__contains__, map(id, map(type, examined)))
    return itertools.compress(found, of_kinds if of_them else map(operator.not_, of_kinds))
