"""Finds who keeps the tensors of the places that grow: a path of names from a module or a frame, or a graph.

A pass begins at the names that a program gives things (the globals of its modules, the locals of its
frames) and follows the collector's references until it has come to the tensors in question, so that it
sees a part of the objects of most programs. No other Python thread runs meanwhile. It is bounded in
time and objects, keeps nothing, and calls none of the program's code.
"""

from __future__ import annotations

import collections
import gc
import itertools
import operator
import os
import sys
import time
import types
from typing import Any, Dict, Iterable, List, Mapping, Optional, Set, Tuple

from . import _blocks, _clock, _engine, _garbage, _graph, _lines, _owned, _paths

BUDGET = 2.0  # seconds of a pass
NODES = 2_000_000  # objects of a pass
_GRAPHS = 8  # that are described
_SITES = 12  # names that are described
_SAMPLE = 48  # of what a name holds
LIBRARIES = 0.5  # seconds of a pass for the names of libraries, and for arrays
_TELLING = 0.5  # seconds of a pass for what was found, which the search does not use up
_PATIENCE = 1.0  # seconds that a pass waits for the end of a backward pass
_LONGEST = 0.02  # seconds that a pass lets requests of other threads for the interpreter come
_LEVELS = 3  # of owners that are looked at, to see whether Python keeps a tensor at all
_MANY = 4096  # objects that one may refer to between two looks at the clock
_FEW = 8  # blocks without an owner, such as workspaces of libraries
_GROWN = 1 << 18  # bytes of such tensors in main memory, by which they grew
_REFERRERS = 24  # tensors whose owners outside the program's names are looked for

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LEAVES = frozenset(
    (str, int, float, complex, bool, bytes, type(None), types.CodeType, types.BuiltinFunctionType, range, slice)
    + (types.WrapperDescriptorType, types.MethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType)
)



class Bound(Exception):
    """A bound is reached."""


class Holders:
    """Finds holders, snapshot by snapshot, and what has grown since the one before."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.blocks: Dict[Any, Set[_blocks.Block]] = {}  # by place, of the snapshot before
        self.chains: Dict[str, Tuple[int, int]] = {}  # length and newest node, by path, of the snapshot before
        self.rest = 0  # bytes of tensors in main memory to which no name of the program led, of the snapshot before
        self.lines = _lines.Lines()
        self.main = _main_file()

    def held_by(self, snapshot: Mapping[str, Any], ended: bool = False) -> Dict[str, Any]:
        """Who keeps the blocks of a snapshot, as values of JSON. It does not raise.

        The collector must not have run since the snapshot. Where the program has ended, its names may have led to cycles
        until then. The result has holders (kind, path, file, line, blocks: addresses of those looked at), graphs (path,
        file, line, nodes, chain_length, node, grew, estimated, address, by_node), host (path, file, line, count, bytes: of
        tensors in main memory), blocks_sampled, objects, seconds, and bound where one was hit.
        """
        began = _clock.start()
        switch, collecting = sys.getswitchinterval(), gc.isenabled()
        gc.disable()
        sys.setswitchinterval(max(switch, 4 * BUDGET))
        try:
            _let_others(switch)
            now = _blocks.by_place(snapshot)
            out = self.look(_blocks.sample(now, self.blocks), began + BUDGET)
            self.blocks = now
            _garbage.qualify(out, ended)
        except Exception as e:
            out = {"error": f"{type(e).__name__}: {e}"}
        finally:
            sys.setswitchinterval(switch)
            if collecting:
                gc.enable()
        out["seconds"] = round(time.monotonic() - began, 3)
        return out

    def look(self, addresses: Iterable[int], deadline: float) -> Dict[str, Any]:
        """Find the holders of the blocks at some addresses, and the graphs that tensors keep."""
        wanted = set(addresses)
        idle = _engine.idle()
        with _quiet(self.torch):
            walk = Walk(deadline - _TELLING, self.main)
            tensors = _Tensors(self.torch, wanted, walk, idle)
            graphs = _graph.Census()
            try:
                try:
                    walk.seed()
                    tensors.list()
                    walk.own(tensors.sought())
                    tensors.list_rest()
                    left = walk.names(tensors.ids) - tensors.gradients()
                    tensors.in_arrays()
                    # A variable would keep the list: frames that were seen live on.
                    walk.libraries([t for ts in tensors.at.values() for t in ts if id(t) in left] or self.unnamed(tensors, walk), tensors)
                except Bound as e:
                    walk.bound = walk.bound or str(e)
                walk.deadline = deadline
                out, paths = self.owners(walk, tensors, wanted)
                graphs = _graph.census(tensors.with_graph, lambda t: walk.path(t) if walk.found(t) else None, deadline)
                out["graphs"], of_graphs = self.described(tensors, graphs, deadline)
                out["host"], of_host = tensors.kept()
                cycles = walk.cycles(tensors, out)
                bound = walk.bound or graphs.bound
                if bound:
                    out["bound"] = bound
            finally:  # frames that it has seen may lead back to the pass, which would live until the next collection
                if idle:
                    _engine.wait(_PATIENCE)  # at once, unless other threads ran meanwhile
                for part in (walk, tensors, graphs):
                    vars(part).clear()
        for entry, path in zip(out["holders"] + out["graphs"] + out["host"], paths + of_graphs + of_host):  # reading lets other threads run
            self.place(entry, path)
        self.lines.forget()
        out["holders"] += cycles
        return out

    def unnamed(self, tensors: _Tensors, walk: Walk) -> List[Any]:
        """Some tensors in main memory to which no name of the program leads, if they take more than at the look before."""
        rest = [(t, size) for t, size in tensors.host.values() if not walk.found(t)]
        total = sum(size for _, size in rest)
        grew, self.rest = total - self.rest, total
        return [t for t, _ in rest[:: 1 + len(rest) // _REFERRERS]] if grew > _GROWN else []

    def owners(self, walk: Walk, tensors: _Tensors, wanted: Set[int]) -> Tuple[Dict[str, Any], List[_paths.Path]]:
        """The result of a pass but for its graphs, and the paths of its holders."""
        groups: Dict[Any, _paths.Group] = {}
        left: List[int] = []
        for address in sorted(wanted):
            if walk.late():
                walk.bound = "time"
                break
            path = next((walk.path(t) for t in tensors.at.get(address, ()) if walk.found(t)), None) or tensors.gradient(address)
            if path is None:
                left.append(address)
                continue
            groups.setdefault(path.shape(), _paths.Group()).add(path, address)
        holders = [{"kind": "python", "path": g.text(), "blocks": g.addresses} for g in groups.values()]
        out: Dict[str, Any] = {"holders": holders, "blocks_sampled": sorted(wanted), "unowned": left, "objects": len(walk.objects)}
        return out, [g.paths[0] for g in groups.values()]

    def described(self, tensors: _Tensors, graphs: _graph.Census, deadline: float) -> Tuple[List[Dict[str, Any]], List[_paths.Path]]:
        """The largest graphs, and the paths to them."""
        out = []
        chains: Dict[str, Tuple[int, int]] = {}
        for group in graphs.groups[:_GRAPHS]:
            path = group.text()
            before, newest = self.chains.get(path, (0, 0))
            extended = group.extend(before, newest, deadline)
            one: Dict[str, Any] = {"kind": "autograd", "path": path, **group.figures()}
            chains[path] = group.length, group.newest
            if group.cut:
                one["estimated"] = True
            if before and (extended or not group.cut and not graphs.bound):
                one["grew"] = group.length - before
            one["blocks"] = sorted({tensors.address[id(t)] for t in group.tensors[:_SAMPLE] if id(t) in tensors.address})
            out.append(one)
        self.chains = chains
        return out, [g.paths[0] for g in graphs.groups[:_GRAPHS]]

    def place(self, entry: Dict[str, Any], path: _paths.Path) -> None:
        """Enter the line that puts things there, or those that may."""
        file, lines = self.lines.of(path)
        if file:
            entry["file"] = file
        if len(lines) == 1:
            entry["line"] = lines[0]
        elif lines:
            entry["lines"] = lines


class _Tensors:
    """The tensors that Python objects refer to: those at some addresses, and those with a graph."""

    def __init__(self, torch: Any, wanted: Set[int], walk: Walk, idle: bool) -> None:
        self.torch = torch
        self.idle = idle  # no backward pass runs, so that gradients may be looked at
        self.at: Dict[int, List[Any]] = {}
        self.address: Dict[int, int] = {}
        self.with_graph: List[Any] = []
        self.leaves: List[Any] = []
        self.host: Dict[int, Tuple[Any, int]] = {}  # tensors in main memory and their bytes, by address
        self.kinds = set(map(id, _subclasses(torch.Tensor)))
        self.walk = walk
        self.wanted = wanted
        self.ids: Dict[int, bool] = {}  # whether the walk must find them
        self.once: Set[int] = set()  # ids of those to which there is one reference, which may be C++'s
        self.looked = 0.0  # seconds that a look at all objects took
        self.of_gradients: Optional[Dict[int, Any]] = None

    def list(self) -> None:
        """Look for those that Python surely owns. Of the others, the ids are kept."""
        began = _clock.now()
        found = _owned.shared(self.kinds, self.once)
        self.looked = _clock.now() - began
        self.add_all(found)
        self.once.difference_update(map(id, found), self.gradients_of(self.leaves))

    def list_rest(self) -> None:
        """Look for the others: those that the walk came to, and if it missed some, among all objects, in half of the time that there is."""
        self.add_all(itertools.compress(self.walk.objects, map(self.once.__contains__, map(id, self.walk.objects))))
        self.once.difference_update(self.walk.seen)
        if not self.once:
            return
        limit = itertools.repeat(True, self.walk.nodes)
        began = _clock.now()
        until = began + (self.walk.deadline - began) / 2
        found = _owned.referred(self.kinds, set(map(id, _subclasses(types.ModuleType))), limit, until)
        self.looked = _clock.now() - began
        if not operator.length_hint(limit):
            self.walk.bound = f"{self.walk.nodes} objects"
        elif began + self.looked > until:
            self.walk.bound = "time"
        self.add_all(itertools.compress(found, map(self.once.__contains__, map(id, found))))

    def sought(self) -> Set[int]:
        """The ids of those that the walk is to come to."""
        return self.once.union(self.ids)

    def add_all(self, found: Iterable[Any]) -> None:
        for n, t in enumerate(found):
            if n & 255 == 255 and self.walk.late():
                raise Bound("time")
            self.add(t)
        host = [t for t, _ in self.host.values()]
        for ts, must in ((itertools.chain.from_iterable(self.at.values()), True), (self.with_graph, False), (self.leaves, False), (host, False)):
            for t in ts:
                self.ids.setdefault(id(t), must)

    def add(self, t: Any) -> None:
        try:
            if t.grad_fn is not None:
                self.with_graph.append(t)
            elif t.requires_grad:
                self.leaves.append(t)
            if t.is_cuda:
                address = start(t)
                self.address[id(t)] = address
                if address in self.wanted:
                    self.at.setdefault(address, []).append(t)
            elif t.is_cpu:
                storage = t.untyped_storage()
                self.host.setdefault(int(storage.data_ptr()), (t, int(storage.nbytes())))
        except Exception:  # a tensor without storage
            pass

    def kept(self) -> Tuple[List[Dict[str, Any]], List[_paths.Path]]:
        """The paths of the program's own names to most of the tensors in main memory, and what they keep."""
        by_owner: Dict[int, List[Tuple[Any, int]]] = {}
        for t, size in self.host.values():
            if self.walk.found(t):
                by_owner.setdefault(self.walk.parents[self.walk.seen[id(t)]], []).append((t, size))
        groups: Dict[Any, List[Any]] = {}  # by shape: paths, number and bytes
        alike: Dict[int, List[Any]] = {}  # the group of the owners to which one object refers, and how many were looked at
        for owner, members in sorted(by_owner.items(), key=lambda item: -sum(size for _, size in item[1])):
            if self.walk.late():
                break
            above = alike.setdefault(self.walk.parents[owner], [[], 0])
            g: List[Any] = above[0] if above[1] >= _SAMPLE else []
            few = not g and len(members) <= _SAMPLE  # members of one long container have paths of one shape
            for t, size in members:
                if not g or few or owner in self.walk.roots:
                    path = self.walk.path(t)
                    g = groups.setdefault(path.shape(), [_paths.Group(), 0, 0])
                    g[0].add(path)
                elif len(g[0].paths) < 2:
                    g[0].add(self.walk.path(t))
                g[1], g[2] = g[1] + 1, g[2] + size
            above[:] = g, (above[1] + 1 if above[0] is g or not above[0] else -len(by_owner))
        most = sorted(groups.values(), key=lambda g: -int(g[2]))[:_SITES]
        return [{"kind": "python", "path": g.text(), "count": n, "bytes": size} for g, n, size in most], [g.paths[0] for g, _, _ in most]

    def in_arrays(self) -> None:
        """Add the tensors in arrays of objects of NumPy, which the collector does not list.

        They are looked for where many blocks have no owner yet, and no graph keeps them.
        """
        if len(self.wanted - self.at.keys()) >= max(_FEW, len(self.wanted) // 4) and not self.with_graph:
            self.walk.go_on()
        for a in self.walk.arrays:
            for t in _paths.elements(a):
                if id(type(t)) in self.kinds and id(t) not in self.ids:
                    self.add(t)

    def gradients(self) -> Set[int]:
        """The ids of the gradients of leaves that were found, which C++ refers to."""
        return self.gradients_of(filter(self.walk.found, self.leaves))

    def gradients_of(self, leaves: Iterable[Any]) -> Set[int]:
        return {id(t.grad) for t in leaves} if self.idle else set()

    def gradient(self, address: int) -> Optional[_paths.Path]:
        """The path to a block that is the gradient of a leaf that was found."""
        if self.of_gradients is None:
            self.of_gradients = {}
            for t in self.leaves if self.idle else ():
                if self.walk.late():
                    break
                try:
                    g = t.grad
                    if g is not None and g.is_cuda and self.walk.found(t):
                        self.of_gradients.setdefault(start(g), t)
                except Exception:
                    pass
        leaf = self.of_gradients.get(address)
        return None if leaf is None else self.walk.path(leaf).attribute("grad")


def _main_file() -> str:
    """The program's file, whose name Python removes from the program's globals when it has run to its end."""
    names = _paths.names_of(sys.modules.get("__main__"))
    file = names.get("__file__") if names is not None else None
    return file if type(file) is str else ""


def _let_others(interval: float) -> None:
    """Let go of the threads that began to wait before the interval was raised, whose request would come in the pass."""
    end = time.monotonic() + min(2 * interval, _LONGEST)
    while time.monotonic() < end:
        pass


def _subclasses(cls: type) -> Set[type]:
    """A class and all that are derived from it."""
    out, waiting = set(), [cls]
    while waiting:
        c = waiting.pop()
        if c not in out:
            out.add(c)
            waiting += type.__subclasses__(c)
    return out


def start(t: Any) -> int:
    """The address at which a tensor's storage starts."""
    return int(t.data_ptr()) - int(t.storage_offset()) * int(t.element_size())


class Walk:
    """One pass from names to tensors."""

    def __init__(self, deadline: float, main: str = "") -> None:
        self.deadline = deadline
        self.main = main  # the program's file
        self.nodes = NODES
        self.bound = ""
        self.objects: List[Any] = []
        self.parents: List[int] = []  # -1 at a root
        self.seen: Dict[int, int] = {}
        self.roots: Dict[int, _paths.Root] = {}
        self.tiers: List[List[int]] = [[], [], [], []]  # the program's own, libraries' frames, libraries' modules by their tier
        self.locals: List[_paths.Locals] = []
        self.arrays: List[Any] = []  # of objects, which were come to
        self.ours: Set[int] = set()  # ids of lists of this pass that hold tensors
        self.rest: Iterable[int] = ()  # that was not followed

    def own(self, targets: Set[int]) -> None:
        """Find objects from the program's own names, in half of the time that there is."""
        self.spread_for((self.deadline - _clock.now()) / 2, self.tiers[0], targets)

    def names(self, targets: Mapping[int, bool]) -> Set[int]:
        """Go on to find objects from the program's own names, and return the ids of those that must be found and are not."""
        left = targets.keys() - self.seen.keys()
        self.spread(self.rest, left)
        if any(targets[i] for i in left):
            named = len(self.tiers[0])
            self.suspended()
            self.contexts()
            self.spread(self.tiers[0][named:], left)
        return {i for i in left if targets[i]}

    def go_on(self) -> None:
        """Follow what is left of the program's own names for some time, in search of arrays."""
        if _paths.array_class() is not None:
            self.spread_for(LIBRARIES, self.rest, {-1})  # which is the id of nothing

    def spread_for(self, seconds: float, begin: Iterable[int], left: Set[int]) -> None:
        """Follow references until nothing is left to find, or for so many seconds."""
        deadline, self.deadline = self.deadline, min(self.deadline, _clock.now() + seconds)
        try:
            self.spread(begin, left)
        except Bound:
            pass
        self.deadline = deadline

    def suspended(self) -> None:
        """Begin at the locals of coroutines and generators, too, that no name leads to.

        A task is often known to its event loop alone, and the generator of a for loop to nobody.
        """
        for o in _owned.instances(set(map(id, _paths.RUNNING)), self.deadline):
            frame = getattr(o, _paths.RUNNING[type(o)])
            if frame is not None and id(o) not in self.seen and id(frame) not in self.seen:
                self.frame_root(frame)

    def contexts(self) -> None:
        """Begin at the values of context variables, too: what has them is known to C alone."""
        kind: Any = getattr(sys.modules.get("_contextvars"), "Context", None)
        for c in _owned.instances({id(kind)}, self.deadline) if kind else ():
            for var, value in kind.items(c):
                path = self.path(var) if self.found(var) else None
                file = path.root.file if path else ""
                self.root({(path.text() if path else str(var.name)) + _lines.CURRENT: value}, _paths.Root("", file, 0, ""), 0)

    def libraries(self, left: List[Any], tensors: _Tensors) -> None:
        """Find tensors from the names of libraries, if something that Python keeps refers to them."""
        self.ours.add(id(left))
        held = self.referred(left[:_REFERRERS], tensors) if left else set()
        self.deadline = min(self.deadline, _clock.now() + LIBRARIES)
        for tier in self.tiers[1:]:
            self.spread(tier, held)

    def referred(self, objects: List[Any], tensors: _Tensors) -> Set[int]:
        """Those of some tensors to which another Python object refers, itself referred to."""
        wanted = set(map(id, objects))
        owners = self.owners(objects, tensors)
        out = {i for r in owners for i in map(id, _owned.referents(r)) if i in wanted}
        known: Set[int] = set()
        for _ in range(_LEVELS):  # what a node of a graph refers to is C++'s in the end
            if any(self.seen.get(id(r), -1) in self.roots for r in owners):
                return out
            known.update(map(id, owners))
            known.add(id(owners))
            owners = [r for r in self.owners(owners[:_REFERRERS], tensors) if id(r) not in known]
            if not owners:
                return set()
        return out

    def cycles(self, tensors: _Tensors, out: Dict[str, Any]) -> List[Dict[str, Any]]:
        """The holder of tensors that only reference cycles keep. Those that may be such leave the result."""
        lost: List[int] = [a for a, ts in tensors.at.items() if not any(map(self.found, ts))]
        some, unknown = [tensors.at[a][0] for a in lost[:_REFERRERS]], lost[_REFERRERS:]
        self.ours.add(id(some))
        try:
            found = _garbage.Cycles(some, lambda objects: self.owners(objects, tensors))
            garbage, shared = ([a for a, t in zip(lost, some) if id(t) in ids] for ids in (found.ids, found.shared))
            holders = [{"kind": "garbage", "path": found.path, "blocks": sorted(garbage), "shared": shared}] if garbage else []
        except Bound:
            garbage, unknown, holders = [], lost, []
        out["unowned"] = [a for a in out["unowned"] if a not in unknown + garbage]
        out["blocks_sampled"] = [a for a in out["blocks_sampled"] if a not in unknown]
        return holders

    def owners(self, objects: List[Any], tensors: _Tensors) -> List[Any]:
        """What refers to some objects, but for tensors and this pass itself."""
        out = []
        ours = {*self.ours, id(tensors.with_graph), id(tensors.leaves), *map(id, tensors.at.values())}
        if _clock.now() + tensors.looked > self.deadline:
            raise Bound("time")
        for r in _owned.referrers(objects, tensors.kinds) if objects else ():
            if r is objects or r is self.objects or type(r) is types.FrameType and r.f_code.co_filename.startswith(_HERE):
                continue
            if type(r) is tuple and len(r) == len(objects) and all(map(operator.is_, r, objects)):  # the call's arguments, since 3.13
                continue
            if id(r) in ours:
                continue
            out.append(r)
        return out

    def seed(self) -> None:
        """Begin at the globals of modules and the locals of frames, in the order in which a person would name them."""
        modules = dict(sys.modules)
        main = modules.pop("__main__", None)
        for name, module in [("__main__", main), *modules.items()]:
            if type(module) is not types.ModuleType and not isinstance(getattr(type(module), "__mro__", None), tuple):
                continue
            try:
                names = object.__getattribute__(module, "__dict__")
                file = dict.get(names, "__file__")
            except Exception:
                continue
            if type(names) is not dict or id(names) in self.seen or name.partition(".")[0] == "strandline":
                continue
            if name == "__main__":
                file = file or self.main
            tier = 0 if name == "__main__" else _paths.tier(file if type(file) is str else "")
            self.root(names, _paths.Root("" if name == "__main__" else name, file if type(file) is str else "", 0, ""), tier and tier + 1)
        for frames in _paths.stacks():
            for frame in frames:
                self.frame_root(frame)

    def frame_root(self, frame: Any) -> None:
        if self.late():
            raise Bound("time")
        code = frame.f_code
        tier = min(_paths.tier(code.co_filename), 1)
        self.seen.setdefault(id(frame), -1)
        if code.co_filename.startswith(_HERE):
            return
        if not code.co_flags & 1:  # its locals are the globals of a module, or the names of a class
            if id(frame.f_locals) not in self.seen and type(frame.f_locals) is dict:
                self.root(frame.f_locals, _paths.Root("", code.co_filename, frame.f_lineno, ""), tier)
            return
        name = getattr(code, "co_qualname", code.co_name).replace("<locals>.", "")
        self.root(_paths.locals_of(frame), _paths.Root("", code.co_filename, frame.f_lineno, name), tier)

    def root(self, names: Any, root: _paths.Root, tier: int) -> None:
        i = self.add(names, -1)
        self.roots[i] = root
        self.tiers[tier].append(i)

    def add(self, o: Any, parent: int) -> int:
        i = len(self.objects)
        self.seen[id(o)] = i
        self.objects.append(o)
        self.parents.append(parent)
        return i

    def spread(self, begin: Iterable[int], left: Set[int]) -> None:
        """Follow references, breadth first, until nothing is left to find."""
        queue = collections.deque(begin)
        seen, objects, parents = self.seen, self.objects, self.parents
        looks = 0
        array = _paths.array_class()
        self.rest = queue
        while queue and left:
            at = queue.popleft()
            o = objects[at]
            if array is not None and type(o) is array:
                self.arrays.append(o)
                refers = _paths.elements(o)
            else:
                refers = children(o)
            for some in _in_parts(refers):
                looks += 1 + len(some) // 16
                if len(objects) > self.nodes:
                    raise Bound(f"{self.nodes} objects")
                if looks > 255:
                    looks = 0
                    if self.late():
                        queue.appendleft(at)
                        raise Bound("time")
                for o in some:
                    key = id(o)
                    if key in seen or type(o) in _LEAVES:
                        continue
                    seen[key] = i = len(objects)
                    objects.append(o)
                    parents.append(at)
                    queue.append(i)
                    left.discard(key)

    def late(self) -> bool:
        return _clock.now() > self.deadline

    def found(self, o: Any) -> bool:
        return id(o) in self.seen

    def path(self, o: Any) -> _paths.Path:
        """The path to an object that was found."""
        i = self.seen[id(o)]
        chain = [i]
        while self.parents[i] >= 0:
            i = self.parents[i]
            chain.append(i)
        chain.reverse()
        return _paths.Path.through(self.roots[chain[0]], [self.objects[i] for i in chain])


def children(o: Any) -> List[Any]:
    """What an object refers to."""
    kind = type(o)
    if kind is types.FrameType:
        return [] if o.f_code.co_filename.startswith(_HERE) else [_paths.locals_of(o)]
    attribute = _paths.RUNNING.get(kind)
    if attribute is not None:
        frame = getattr(o, attribute)
        return [*([] if frame is None else [frame]), *gc.get_referents(o)]
    return _owned.referents(o)


def _in_parts(objects: List[Any]) -> Iterable[List[Any]]:
    """A list, in parts if it is long."""
    return (objects,) if len(objects) <= _MANY else (objects[i : i + _MANY] for i in range(0, len(objects), _MANY))


def _quiet(torch: Any) -> Any:
    """Within it, attributes of tensors are read without the program's __torch_function__."""
    c = torch._C
    return (getattr(c, "DisableTorchFunctionSubclass", None) or getattr(c, "DisableTorchFunction", None) or _Nothing)()


class _Nothing:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        pass
