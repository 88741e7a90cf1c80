"""Counts the nodes of the autograd graphs that tensors keep, and measures their chains.

Of a very long chain the newest part is measured. PyTorch numbers the nodes that a thread makes, so the numbers of
two newest nodes tell by how much the chain grew between two looks.
"""

from __future__ import annotations

import bisect
import collections
import heapq
from typing import Any, Callable, Dict, List, Optional, Set

from . import _clock, _paths

NODES = 300_000  # of a census
_CHAIN = 5_000  # nodes that are measured for one tensor
_UNNUMBERED = 1 << 62  # from which a number is that of a leaf
_NEARLY = 0.9  # of the longest chain
_SIDE = 8  # nodes of a branch that leaves a chain, at most


class Chain(_paths.Group):
    """The graphs that tensors at paths of one shape keep."""

    def __init__(self) -> None:
        super().__init__()
        self.tensors: List[Any] = []
        self.nodes = 0
        self.length = 0
        self.deepest: Any = None
        self.types: Dict[str, int] = {}
        self.node = ""
        self.cut = False  # whether the chain is longer than what was measured of it
        self.newest = 0  # the number of its newest node, 0 if unknown
        self.gap = 1.0  # between the numbers of two nodes of it

    def figures(self) -> Dict[str, Any]:
        return {"tensors": len(self.tensors), "nodes": self.nodes, "chain_length": self.length, "node": self.node, "by_node": self.types}

    def extend(self, length: int, newest: int, deadline: float) -> bool:
        """Estimate the length of a chain that is cut, from its length at an earlier look and its newest node then.

        The graph of a large step is cut too, and another one at each look: it does not reach back to that node.
        """
        if not self.cut or not 0 < newest < self.newest or not _reaches(self.deepest, newest, deadline):
            return False
        estimate = length + round((self.newest - newest) / self.gap)
        if estimate > self.length > 0:
            self.nodes = self.nodes * estimate // self.length
            self.length = estimate
        return True


class Census:
    """The graphs of some tensors."""

    def __init__(self) -> None:
        self.groups: List[Chain] = []
        self.bound = ""
        self.depth: Dict[Any, int] = {}  # of nodes, which it keeps alive
        self.next: Dict[Any, List[Any]] = {}
        self.cut: Set[Any] = set()  # nodes below which nothing was measured
        self.unmeasured: Set[Any] = set()  # those, and all above them


def census(tensors: List[Any], path_to: Callable[[Any], Optional[_paths.Path]], deadline: float) -> Census:
    """The graphs of those tensors to which there is a path, by its shape; the largest first.

    A node that several of them keep counts for the one with the longest chain, or for the one that lies lowest of those
    whose chains are nearly as long: of a loss and the state it was computed from, which is carried over, the state.
    Measuring takes half of the time, as what follows needs no more.
    """
    out = Census()
    groups: Dict[Any, Chain] = {}
    now = _clock.now()
    half = now + (deadline - now) / 2
    for t in tensors:
        if _clock.now() > half:
            out.bound = "time"
            break
        path = path_to(t)
        if path is None:
            continue
        g = groups.setdefault(path.shape(), Chain())
        g.add(path)
        g.tensors.append(t)
        node = t.grad_fn
        _measure(out, node, half)
        if node in out.depth and out.depth[node] > g.length:
            g.length, g.deepest = out.depth[node], node
    counted: Dict[Any, bool] = {}
    rest = sorted(groups.values(), key=lambda g: g.length)
    lengths = [g.length for g in rest]
    while rest:
        i = bisect.bisect_left(lengths, _NEARLY * lengths[-1])
        g, _ = rest.pop(i), lengths.pop(i)
        types = _types(out, [t.grad_fn for t in g.tensors], counted, deadline)
        g.nodes = sum(types.values())
        g.types = dict(sorted(types.items(), key=lambda item: -item[1])[:6])
        _describe(out, g, deadline)
        out.groups.append(g)
    out.groups.sort(key=lambda g: -g.nodes)
    return out


def _describe(out: Census, g: Chain, deadline: float) -> None:
    """Say what the longest chain consists of: the type of most of its nodes."""
    on_it: Dict[str, int] = collections.Counter()
    n, count = g.deepest, 0
    numbers: List[int] = []
    while n is not None:
        if _late(out, count, deadline):
            break
        count += 1
        on_it[_name(n)] += 1
        number = _number(n)
        if number:
            numbers.append(number)
        g.cut = n in out.cut
        # At its end, a chain that is cut is shorter than what leaves it.
        n = max(out.next.get(n, ()), key=lambda m: out.depth.get(m, 0) + _SIDE * (m in out.unmeasured), default=None)
    if numbers:
        g.newest = numbers[0]
    if on_it:
        g.node = max(on_it, key=lambda k: on_it[k])
        g.gap = max(1.0, (max(numbers) - min(numbers)) / on_it[g.node]) if numbers else 1.0
        if 3 * on_it[g.node] > g.length:
            g.length = on_it[g.node]


def _number(node: Any) -> int:
    """The number that PyTorch gave a node, 0 if it has none."""
    try:
        number = int(node._sequence_nr())
    except Exception:  # before 2.1
        return 0
    return number if number < _UNNUMBERED else 0


def _reaches(root: Any, number: int, deadline: float) -> bool:
    """Whether a graph has a node with that number or a lower one. The lowest that are known are followed first."""
    waiting, seen = [(_number(root), 0, root)], {root}
    while waiting:
        lowest, _, node = heapq.heappop(waiting)
        if lowest <= number:
            return True
        if len(seen) & 63 == 0 and _clock.now() > deadline:
            break
        for n, _ in node.next_functions:
            if n is not None and n not in seen and _number(n):
                seen.add(n)
                heapq.heappush(waiting, (_number(n), len(seen), n))
    return False


def _name(node: Any) -> str:
    return str(node.name()).rpartition("::")[2]


def _measure(out: Census, root: Any, deadline: float) -> None:
    """Set the depth of a node and of all below it."""
    waiting = [root]
    depth, after = out.depth, out.next
    most = len(after) + (_CHAIN if _number(root) else NODES)
    while waiting:
        node = waiting[-1]
        if node in depth:
            waiting.pop()
            continue
        if node not in after:
            if len(after) >= NODES:
                out.bound = f"{NODES} graph nodes"
            elif len(after) & 255 == 255 and _clock.now() > deadline:
                out.bound = "time"
            if len(after) >= most:
                out.cut.add(node)
            after[node] = [] if out.bound or node in out.cut else [n for n, _ in node.next_functions if n is not None]
            below = [n for n in after[node] if n not in depth]
            if below:
                waiting += below
                continue
        depth[node] = 1 + max((depth.get(n, 0) for n in after[node]), default=0)
        if node in out.cut or any(n in out.unmeasured for n in after[node]):
            out.unmeasured.add(node)
        waiting.pop()


def _types(out: Census, roots: List[Any], counted: Dict[Any, bool], deadline: float) -> Dict[str, int]:
    """How many nodes of each type are below some, without those that are counted already."""
    types: Dict[str, int] = collections.Counter()
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node in counted:
            continue
        if _late(out, len(counted), deadline):
            break
        counted[node] = True
        types[_name(node)] += 1
        waiting += out.next.get(node, ())
    return types


def _late(out: Census, count: int, deadline: float) -> bool:
    """Whether the time is over, which is looked at now and then."""
    if count & 63 or _clock.now() <= deadline:
        return False
    out.bound = "time"
    return True
