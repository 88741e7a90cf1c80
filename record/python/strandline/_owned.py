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

import gc
import itertools
import operator
import sys
import types
from typing import Any, Callable, Iterable, Iterator, List, Set

from . import _clock

_AT_ONCE = 64  # objects between two looks at the clock
_names: Any = vars(types.ModuleType)["__dict__"]


class _Listed(List[Any]):
    """A list of this module, which is no owner."""

    __slots__ = ()


# The ids of classes whose objects refer to no others of interest: values of a function or class are in a tuple or dict.
_WITHOUT = set(map(id, (_Listed, types.FunctionType, type, types.WrapperDescriptorType, types.MethodDescriptorType, types.GetSetDescriptorType)))


def shared(kinds: Set[int], ids: Set[int]) -> List[Any]:
    """The objects of some classes, given by their ids, to which there are several references. The ids of all are added to ids.

    C++ has one at most, so that Python owns these.
    """
    every, members = _Listed(), _Listed()
    counts: List[int] = []
    steps = itertools.chain(
        map(every.extend, itertools.starmap(gc.get_objects, ((),))),
        map(members.extend, (itertools.compress(iter(every), _among(kinds, iter(every))),)),
        map(_Listed.clear, (every,)),
        map(counts.extend, (map(sys.getrefcount, iter(members)),)),
        map(ids.update, (map(id, iter(members)),)),
    )
    out = itertools.compress(iter(members), map(_ONCE.__lt__, iter(counts)))
    return list(itertools.chain(filter(None, steps), out, filter(None, map(_Listed.clear, (members,)))))


def referred(kinds: Set[int], without: Set[int], limit: Iterator[bool], deadline: float) -> List[Any]:
    """The objects of some classes, given by their ids, to which one of the collector's objects refers.

    Python owns them: no reference of C++ is needed to keep them. Objects are looked into until the limit, an
    iterator of as many True, has come to its end, or the clock to the deadline; those of the classes without are
    not. See referents for why modules must be among these. Their namespaces are looked into.
    """
    every, some, members = _Listed(), _Listed(), _Listed()
    ids: Set[int] = set()
    owned: Set[int] = set()
    chosen = itertools.compress(itertools.compress(iter(every), limit), map(operator.not_, _among(without | _WITHOUT, iter(every))))
    parts = itertools.takewhile(bool, map(some.__getitem__, map(slice, itertools.count(0, _AT_ONCE), itertools.count(_AT_ONCE, _AT_ONCE))))
    refers = itertools.chain.from_iterable(itertools.starmap(gc.get_referents, itertools.compress(parts, _until(deadline, 1))))
    steps = itertools.chain(
        map(every.extend, itertools.starmap(gc.get_objects, ((),))),
        map(some.extend, (chosen,)),
        map(members.extend, (itertools.compress(iter(every), _among(kinds, iter(every))),)),
        map(ids.update, (map(id, iter(members)),)),
        map(owned.update, map(ids.intersection, (map(id, refers),))),
    )
    out = itertools.compress(iter(members), map(owned.__contains__, map(id, iter(members))))
    return list(itertools.chain(filter(None, steps), out, filter(None, map(_Listed.clear, (every, some, members)))))


def referents(o: Any) -> List[Any]:
    """What an object refers to; of a module, its namespace.

    A module of C may list objects that it has freed, as _asyncio of Python 3.12 does. A reference to one frees it
    again, after which the collector never comes to the end of that list.
    """
    return [_names.__get__(o)] if issubclass(type(o), types.ModuleType) else gc.get_referents(o)


def referrers(objects: List[Any], kinds: Set[int]) -> List[Any]:
    """The collector's objects that refer to some, but for those of some classes, given by their ids."""
    every: List[Any] = []
    return list(_filled(every, gc.get_referrers, objects, _chosen(kinds, False, iter(every), iter(every))))


def instances(kinds: Set[int], deadline: float) -> List[Any]:
    """The collector's objects of some classes, given by their ids, which only Python owns, as far as there is time."""
    every: List[Any] = []
    return list(_filled(every, gc.get_objects, (), _chosen(kinds, True, itertools.compress(iter(every), _until(deadline, _AT_ONCE)), iter(every))))


def _until(deadline: float, at_once: int) -> Iterator[float]:
    """True values until the clock has come to the deadline, so many between two looks at it."""
    looks = itertools.takewhile(deadline.__gt__, iter(_clock.now, None))
    return itertools.chain.from_iterable(map(itertools.repeat, looks, itertools.repeat(at_once)))


def _filled(every: List[Any], call: Callable[..., List[Any]], arguments: Iterable[Any], chosen: Iterator[Any]) -> Iterator[Any]:
    """Fills a list with the objects that a call lists, when the first is asked for, and empties it after those chosen.

    A list can be gone through twice. A buffer of tee would be an owner of what is in it, and with itself among
    that it would stay until the next collection, with all of it.
    """
    fill = map(every.extend, itertools.starmap(call, (arguments,)))
    empty = itertools.starmap(every.clear, ((),))
    return itertools.chain(filter(None, fill), chosen, filter(None, empty))


def _chosen(kinds: Set[int], of_them: bool, found: Iterator[Any], examined: Iterator[Any]) -> Iterator[Any]:
    """Those found whose class is one of some, or is not; examined are the same objects."""
    of_kinds = _among(kinds, examined)
    return itertools.compress(found, of_kinds if of_them else map(operator.not_, of_kinds))


def _among(kinds: Set[int], objects: Iterator[Any]) -> Iterator[bool]:
    """Of each of some objects whether its class is one of those given by their ids."""
    return map(kinds.__contains__, map(id, map(type, objects)))


_ONCE = 1 + next(map(sys.getrefcount, [object()]))  # references to an object of a list that one other thing refers to
