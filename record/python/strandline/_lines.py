"""Finds the line that puts things where a path leads, in the source of the program."""

from __future__ import annotations

import ast
import os
import re
from typing import Any, Dict, List, Tuple

from . import _paths

CURRENT = ".get()"  # after the name of a context variable
_LOOP = "<loop>"
_LONGEST = 1 << 20  # bytes of a source
_ADDS = ("append", "appendleft", "add", "extend", "insert", "put", "put_nowait", "setdefault", "update", "push", "heappush", "register_forward_hook")


class Lines:
    """Lines of source, read once."""

    def __init__(self) -> None:
        self.trees: Dict[str, Any] = {}
        self.known: Dict[Any, Tuple[str, int, int]] = {}  # file, line and rank

    def of(self, path: _paths.Path) -> Tuple[str, int]:
        """The file and line that adds to the end of a path, or that of its root; "" and 0 if unknown."""
        key = path.shape()
        if key in self.known and self.known[key][2] & 2:  # it was running
            return self.known[key][:2]
        try:
            found = self.look(path)
        except Exception:
            found = "", 0, 0
        if key not in self.known or found[2] > self.known[key][2]:
            self.known[key] = found
        return self.known[key][:2]

    def look(self, path: _paths.Path) -> Tuple[str, int, int]:
        root = path.root
        for part in reversed(path.parts):
            if not part.name:
                continue
            file, scope = part.owner or (root.file, root.function)
            name = part.name[: -len(CURRENT)] if part.name.endswith(CURRENT) else part.name
            for f in dict.fromkeys((file, root.file)):
                if _paths.tier(f) < 2:
                    line, rank = self.search(f, name, part.kind == "attribute", scope, root.line if f == root.file else 0)
                    if line:
                        return f, line, rank
            if part.line:
                return file, part.line, 0
        return root.file, root.line, 0

    def search(self, file: str, name: str, attribute: bool, scope: str, running: int) -> Tuple[int, int]:
        """The line of a file that adds to a name, else that sets it, in a function or class if it is there; and how sure that is.

        Of several, one in a loop is meant, and the one that was just running.
        """
        tree = self.tree(file)
        best: Tuple[int, int] = (0, 0)
        inner = scope.rpartition(".")[2]
        for node, scopes in _walk(tree) if tree is not None else ():
            rank = _rank(node, name, attribute)
            if not rank and attribute and [s for s in scopes if s != _LOOP][-1:] == [inner]:  # in the body of its class
                rank = min(_rank(node, name, False), 1)
            if not rank:
                continue
            rank = 4 * (2 * rank + (inner in scopes if inner else 0))
            if "__init__" in [s for s in scopes if s != _LOOP][-1:]:
                rank -= 8
            rank += (_LOOP in scopes) + 2 * (node.lineno <= running <= (node.end_lineno or 0))
            if rank > best[0]:
                best = rank, node.lineno
        return best[1], best[0]

    def tree(self, file: str) -> Any:
        if file not in self.trees:
            self.trees[file] = None
            if file.endswith(".py") and os.path.getsize(file) <= _LONGEST:
                with open(file, "rb") as f:
                    source = f.read().decode("utf-8", "replace").lstrip("\ufeff")  # other codecs would be imported
                self.trees[file] = ast.parse(_ESCAPE.sub(_quiet, source))
        return self.trees[file]


_ESCAPE = re.compile(r"\\(N\{[^{}\n]*\}|[\s\S])")


def _quiet(escape: re.Match[str]) -> str:
    """An escape in a string, or text of its length for one that the parser warns of in the program's output, or imports a module for."""
    return escape[0] if escape[1] in "\r\n'\"\\abfnrtv01234567xuU" else "/" * len(escape[0])


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
    """3 for what adds to a name, 2 for what sets it from itself, 1 for what sets it."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDS:
        return 3 if _is(_container(node.func.value), name, attribute) else 0
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "set":  # a context variable
        return 1 if node.args and _is(node.func.value, name, attribute) else 0
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
