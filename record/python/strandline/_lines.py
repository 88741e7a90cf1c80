"""Finds the line that puts things where a path leads, in the source of the program."""

from __future__ import annotations

import ast
import itertools
import operator
import os
import re
import types
from typing import Any, Dict, List, Optional, Tuple

from . import _clock, _owned, _paths

CURRENT = ".get()"  # after the name of a context variable
_LOOP = "<loop>"
_LONGEST = 1 << 20  # bytes of a source
_SEARCH = 0.25  # seconds for the code of functions
_ADDS = ("append", "appendleft", "add", "extend", "insert", "put", "put_nowait", "setdefault", "update", "push", "heappush", "register_forward_hook")


_Counter = Tuple[Tuple[int, int], Tuple[int, int], bool, bool]  # line and column of both ends, whether it has moved, and whether one of its code has


class Lines:
    """Lines of source, read once."""

    def __init__(self) -> None:
        self.sets: Dict[str, List[Tuple[Any, Tuple[str, ...]]]] = {}  # by file, the nodes that may set something, as _walk has them
        self.codes: Optional[List[types.CodeType]] = None  # of functions, and of what runs; None if not looked for
        self.counted: Dict[str, Dict[int, List[_Counter]]] = {}  # by file and line
        self.known: Dict[Any, Tuple[str, List[int], int]] = {}  # file, lines and rank

    def of(self, path: _paths.Path) -> Tuple[str, List[int]]:
        """The file and line that adds to the end of a path, or that of its root; "" and none if unknown.

        There are several lines if each of them may be it.
        """
        key = path.shape()
        if key in self.known and self.known[key][2] & 2:  # it has run
            return self.known[key][:2]
        try:
            found = self.look(path)
        except Exception:
            found = "", [], 0
        if key not in self.known or found[2] >= self.known[key][2] and found[1]:
            self.known[key] = found
        return self.known[key][:2]

    def look(self, path: _paths.Path) -> Tuple[str, List[int], int]:
        root = path.root
        for part in reversed(path.parts):
            if not part.name:
                continue
            file, scope = part.owner or (root.file, root.function)
            name = part.name[: -len(CURRENT)] if part.name.endswith(CURRENT) else part.name
            for f in dict.fromkeys((file, root.file)):
                if _paths.tier(f) < 2:
                    lines, rank = self.search(f, name, part.kind == "attribute", scope, root.line if f == root.file else 0, bool(part.line))
                    if lines:
                        return f, lines, rank
            if part.line:
                return file, [part.line], 0
        return root.file, [root.line] if root.line else [], 0

    def search(self, file: str, name: str, attribute: bool, scope: str, running: int, within: bool) -> Tuple[List[int], int]:
        """The line of a file that adds to a name, else that sets it, in a function or class if it is there, or within it alone; and how sure that is.

        Of several, those are meant that have run, and of these one in a loop. The rank of such has the bit 2.
        """
        best: List[Any] = []  # nodes, and whether they are in a loop
        top = 0
        inner = scope.rpartition(".")[2]
        for node, scopes in self.setting(file):
            rank = _rank(node, name, attribute)
            if not rank and attribute and [s for s in scopes if s != _LOOP][-1:] == [inner]:  # in the body of its class
                rank = min(_rank(node, name, False), 1)
            if not rank or within and inner not in scopes:
                continue
            rank = 4 * (2 * rank + (inner in scopes if inner else 0))
            if "__init__" in [s for s in scopes if s != _LOOP][-1:]:
                rank -= 8
            if rank > top:
                best, top = [], rank
            if rank == top:
                best.append((node, _LOOP in scopes))
        runs = [node.lineno <= running <= (node.end_lineno or 0) for node, _ in best]
        if len(best) > 1:
            ran = [self.ran(file, node) for node, _ in best]
            runs = [bool(a or b) for a, b in zip(runs, ran)]
            if not any(runs):  # some may have
                best = [one for one, r in zip(best, ran) if r is None] or best
        if any(runs):
            best = [one for one, r in zip(best, runs) if r]
            best, top = [one for one in best if one[1]] or best, top + 2
        return sorted({node.lineno for node, _ in best}), top

    def ran(self, file: str, node: Any) -> Optional[bool]:
        """Whether Python has run a statement or an expression; None if unknown."""
        counters = self.counters(file)
        first, last = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
        within = [c for line in range(node.lineno, node.end_lineno + 1) for c in counters.get(line, ()) if first <= c[0] and c[1] <= last]
        if any(moved for _, _, moved, _ in within):
            return True
        return False if any(in_use for _, _, _, in_use in within) else None

    def counters(self, file: str) -> Dict[int, List[_Counter]]:
        """The counters in the code of a file, by line."""
        if file not in self.counted:
            self.counted[file] = {}
            for code in self.code(file):
                for c in _counters(code):
                    self.counted[file].setdefault(c[0][0], []).append(c)
        return self.counted[file]

    def code(self, file: str) -> List[types.CodeType]:
        """The code of the functions of a file, and of what runs."""
        if self.codes is None:
            self.codes = [*map(operator.attrgetter("__code__"), _owned.instances({id(types.FunctionType)}, _clock.now() + _SEARCH))]
            self.codes += [frame.f_code for frames in _paths.stacks() for frame in frames]
        waiting: List[Any] = [*itertools.compress(self.codes, map(file.__eq__, map(operator.attrgetter("co_filename"), self.codes)))]
        out = {}
        while waiting:
            c = waiting.pop()
            if type(c) is types.CodeType and id(c) not in out:
                out[id(c)] = c
                waiting += c.co_consts
        return [*out.values()]

    def forget(self) -> None:
        """Let code be looked at anew."""
        self.codes, self.counted = None, {}

    def setting(self, file: str) -> List[Tuple[Any, Tuple[str, ...]]]:
        """The nodes of a source that may set something or add to it."""
        if file not in self.sets:
            self.sets[file] = []
            if file.endswith(".py") and os.path.getsize(file) <= _LONGEST:
                self.sets[file] = [*filter(lambda one: isinstance(one[0], _SETTING), _walk(_tree(file)))]
        return self.sets[file]


_SETTING = (ast.Call, ast.Assign, ast.AnnAssign, ast.AugAssign)


def _tree(file: str) -> Any:
    with open(file, "rb") as f:
        source = f.read().decode("utf-8", "replace").lstrip("\ufeff")  # other codecs would be imported
    return ast.parse(_ESCAPE.sub(_quiet, source))


_ESCAPE = re.compile(r"\\(N\{[^{}\n]*\}|[\s\S])")


def _quiet(escape: re.Match[str]) -> str:
    """An escape in a string, or text of its length for one that the parser warns of in the program's output, or imports a module for."""
    return escape[0] if escape[1] in "\r\n'\"\\abfnrtv01234567xuU" else "/" * len(escape[0])


def _counters(code: Any) -> List[_Counter]:
    """The counters of code. Those of a copy have not moved.

    Since 3.11 many instructions have one, which changes when they run: in 3.11 after some calls, and never where
    something else compiles them.
    """
    if not hasattr(code, "_co_code_adaptive"):
        return []
    counts = [*map(operator.not_, code.co_code[::2])]
    now, new = (memoryview(c._co_code_adaptive).cast("H") for c in (code, code.replace()))
    moved = [*itertools.compress(map(operator.ne, now, new), counts)]
    in_use = any(moved)
    places = zip(itertools.compress(code.co_positions(), counts), moved)
    return [((line, column), (end_line, end), m, in_use) for (line, end_line, column, end), m in places if None not in (line, end_line, column, end)]


def _walk(tree: Any) -> Any:
    """All nodes, each with the names of the functions and classes around it, and the loops."""
    waiting: List[Tuple[Any, Tuple[str, ...]]] = [(tree, ())]
    while waiting:
        node, scopes = waiting.pop()
        yield node, scopes
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            scopes = (*scopes, node.name)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            scopes = (*scopes, _LOOP)
        waiting += [(n, scopes) for n in reversed(list(ast.iter_child_nodes(node)))]


def _is(e: Any, name: str, attribute: bool) -> bool:
    if attribute:
        return isinstance(e, ast.Attribute) and e.attr == name
    return isinstance(e, ast.Name) and e.id == name


def _container(e: Any) -> Any:
    """What an expression is of: c of c[k], c.get(k)[i] and c.setdefault(k, [])."""
    while True:
        if isinstance(e, ast.Subscript):
            e = e.value
        elif isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and e.func.attr in ("get", "setdefault"):
            e = e.func.value
        else:
            return e


def _rank(node: Any, name: str, attribute: bool) -> int:
    """3 for what adds to a name or sets it from itself, 2 for what sets its value, 1 for what sets it."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDS:
        return 3 if _is(_container(node.func.value), name, attribute) else 0
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "set":  # a context variable
        return 2 if node.args and _is(node.func.value, name, attribute) else 0
    if isinstance(node, ast.AugAssign):
        return 3 if _is(node.target, name, attribute) else 0
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    for t in targets:
        for e in t.elts if isinstance(t, (ast.Tuple, ast.List)) else [t]:
            if isinstance(e, ast.Subscript):
                if _is(_container(e), name, attribute):
                    return 3
            elif _is(e, name, attribute):
                uses = node.value is not None and any(_is(n, name, attribute) for n in ast.walk(node.value))
                return 3 if uses else 1
    return 0
