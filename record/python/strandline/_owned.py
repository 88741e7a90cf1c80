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
import time
import types
from typing import Any, Callable, Iterable, Iterator, List, Set

_AT_ONCE = 64  # objects between two looks at the clock
_names: Any = vars(types.ModuleType)["__dict__"]


def referred(kinds: Set[int], modules: Set[int], limit: Iterator[bool], deadline: float) -> List[Any]:
    """The objects of some classes, given by their ids, to which one of the collector's objects refers.

    Python owns them: no reference of C++ is needed to keep them. An object is listed for each reference. Objects
    are looked into until the limit, an iterator of as many True, has come to its end, or the clock to the deadline;
    see referents for why modules, given by the ids of their classes, are not. Their namespaces are.
    """
    every: List[Any] = []  # gone through twice without a buffer of tee, which would be an owner of what is in it
    fill = map(every.extend, itertools.starmap(gc.get_objects, ((),)))
    empty = itertools.starmap(every.clear, ((),))
    objects = itertools.compress(itertools.compress(iter(every), limit), _until(deadline))
    safe = itertools.compress(objects, map(operator.not_, _among(modules, iter(every))))
    others = itertools.filterfalse(functools.partial(operator.is_, every), safe)
    found = itertools.chain.from_iterable(map(gc.get_referents, others))
    return list(itertools.chain(filter(None, fill), _chosen(kinds, True, *itertools.tee(found)), filter(None, empty)))


def referents(o: Any) -> List[Any]:
    """What an object refers to; of a module, its namespace.

    A module of C may list objects that it has freed, as _asyncio of Python 3.12 does. A reference to one frees it
    again, after which the collector never comes to the end of that list.
    """
    return [_names.__get__(o)] if issubclass(type(o), types.ModuleType) else gc.get_referents(o)


def referrers(objects: List[Any], kinds: Set[int]) -> List[Any]:
    """The collector's objects that refer to some, but for those of some classes, given by their ids."""
    return list(_chosen(kinds, False, *itertools.tee(_listed(gc.get_referrers, objects))))


def instances(kinds: Set[int], deadline: float) -> List[Any]:
    """The collector's objects of some classes, given by their ids, which only Python owns, as far as there is time."""
    return list(_chosen(kinds, True, *itertools.tee(itertools.compress(_listed(gc.get_objects, ()), _until(deadline)))))


def _until(deadline: float) -> Iterator[float]:
    """True values until the clock has come to the deadline."""
    looks = itertools.takewhile(deadline.__gt__, iter(time.monotonic, None))
    return itertools.chain.from_iterable(map(itertools.repeat, looks, itertools.repeat(_AT_ONCE)))


def _listed(call: Callable[..., List[Any]], arguments: Iterable[Any]) -> Iterator[Any]:
    """The objects that a call lists, which is made when the first is asked for."""
    return itertools.chain.from_iterable(itertools.starmap(call, (arguments,)))


def _chosen(kinds: Set[int], of_them: bool, found: Iterator[Any], examined: Iterator[Any]) -> Iterator[Any]:
    """Those found whose class is one of some, or is not; examined are the same objects."""
    of_kinds = _among(kinds, examined)
    return itertools.compress(found, of_kinds if of_them else map(operator.not_, of_kinds))


def _among(kinds: Set[int], objects: Iterator[Any]) -> Iterator[bool]:
    """Of each of some objects whether its class is one of those given by their ids."""
    return map(kinds.__contains__, map(id, map(type, objects)))
