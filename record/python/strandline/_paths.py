"""Writes the way from a name to an object as a person would."""

from __future__ import annotations

import functools
import os
import re
import sys
import types
import weakref
from collections import deque
from typing import Any, Dict, Iterable, List, Optional, Tuple

RUNNING = {types.GeneratorType: "gi_frame", types.CoroutineType: "cr_frame", types.AsyncGeneratorType: "ag_frame"}
_STDLIB = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_SHORT = 40  # characters of a key
_PARTS = 14  # of a path that is written
_END = 256  # objects at each end of a path whose names are looked for
_LRU = type(functools.lru_cache(maxsize=None)(len))
_ELEMENTS = 1 << 20  # of an array of objects that is looked into
_LOOKED = 4096  # members of a container whose key or index is looked for
_OF_MODULES = re.compile(r"\._(?:modules|parameters|buffers)\['(\w+)'\]")  # as in net._modules['head']


def tier(file: str) -> int:
    """0: the program's own, 1: an installed package's, 2: Python's, PyTorch's, or nobody's."""
    if not file or file.startswith("<frozen"):
        return 2
    if f"{os.sep}site-packages{os.sep}" in file or f"{os.sep}dist-packages{os.sep}" in file:
        return 2 if f"packages{os.sep}torch{os.sep}" in file else 1
    return 2 if file.startswith(_STDLIB) else 0


class Locals(Dict[str, Any]):
    """A copy of the locals of a frame."""

    function = ""
    file = ""
    line = 0


def locals_of(frame: Any) -> Locals:
    """The locals of a frame, without leaving a reference to them in it."""
    names = frame.f_locals
    out = Locals(names)
    code = frame.f_code
    out.function = getattr(code, "co_qualname", code.co_name).replace("<locals>.", "")
    out.file, out.line = code.co_filename, frame.f_lineno or code.co_firstlineno
    # Before 3.13 a frame keeps the dict once it was asked for; nobody else has this one.
    if sys.version_info < (3, 13) and code.co_flags & 1 and type(names) is dict and sys.getrefcount(names) <= 3:
        names.clear()
    return out


def stacks() -> Iterable[List[Any]]:
    """The frames of each thread, outermost first."""
    for innermost in sys._current_frames().values():
        frame: Any = innermost
        frames = []
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
        yield frames[::-1]


class Root:
    """Where a path begins: a module, or with a function the locals of a frame."""

    def __init__(self, module: str, file: str, line: int, function: str) -> None:
        self.module, self.file, self.line, self.function = module, file, line, function


class Part:
    """A part of a path."""

    def __init__(self, text: str, kind: str = "", name: str = "", owner: Any = None, line: int = 0) -> None:
        self.text = text
        self.kind = kind  # name, attribute, key, index, local
        self.name = name
        self.owner: Optional[Tuple[str, str]] = owner  # file and class of the attribute's owner
        self.line = line  # of that, where a line that sets it is not found


class Path:
    """A path from a root."""

    def __init__(self, root: Root, parts: List[Part]) -> None:
        self.root, self.parts = root, parts

    @classmethod
    def through(cls, root: Root, objects: List[Any]) -> Path:
        """The path through objects of which each refers to the next; the first holds the names of the root."""
        if len(objects) <= 2 * _END:
            return cls(root, _parts(objects, True))
        front, back = _parts(objects[:_END], True), _parts(objects[-_END:], False)
        for n in range(min(2, len(back))):  # of one linked list
            if back[n].name and back[n].name == front[-1].name:
                return cls(root, front + back[n + 1 :])
        return cls(root, [*front, Part("…"), *back[1:]])

    def attribute(self, name: str) -> Path:
        return Path(self.root, [*self.parts, Part("." + name, "attribute", name)])

    def shape(self) -> Any:
        """What paths to members of one container have in common."""
        keys = ("key", "index")
        return (self.root.module, self.root.file, self.root.function, *((p.kind if p.kind in keys else p.text) for p in self.parts))

    def text(self, parts: Optional[List[str]] = None) -> str:
        """The path as it is written."""
        texts = parts if parts is not None else [p.text for p in self.parts]
        if len(texts) > _PARTS:
            texts = texts[: _PARTS // 2] + ["…"] + texts[-(_PARTS // 2) :]
        text = _OF_MODULES.sub(lambda m: f"[{m[1]}]" if m[1].isdigit() else f".{m[1]}", "".join(texts))
        if self.root.function:
            first = texts[0] if texts else ""
            return f"{text} in {self.root.function}()" if first else f"the locals of {self.root.function}()"
        return f"{self.root.module}.{text}" if self.root.module else text


class Group:
    """Paths of one shape."""

    def __init__(self) -> None:
        self.paths: List[Path] = []
        self.addresses: List[int] = []

    def add(self, path: Path, address: Optional[int] = None) -> None:
        self.paths.append(path)
        if address is not None:
            self.addresses.append(address)

    def text(self) -> str:
        """The path, with [...] where its members differ."""
        columns = list(zip(*([p.text for p in path.parts] for path in self.paths)))
        return self.paths[0].text([c[0] if len(set(c)) == 1 else "[...]" for c in columns])


def array_class() -> Any:
    """The class of NumPy's arrays, None where it is not loaded."""
    names = names_of(sys.modules.get("numpy"))
    return None if names is None else names.get("ndarray")


def elements(array: Any) -> List[Any]:
    """The objects in an array of objects, which the collector does not know of."""
    try:
        return list(array.flat) if array.dtype.hasobject and 0 < array.size <= _ELEMENTS and array.dtype == object else []
    except Exception:  # of another numpy
        return []


def _key(key: Any) -> str:
    """A key as it is written in brackets. Only values of Python's own types are written out."""
    if type(key) in (str, int, bool, float, bytes, type(None)):
        text = repr(key)
    elif type(key) is tuple and len(key) <= 4 and all(type(k) in (str, int, bool, float, bytes, type(None)) for k in key):
        text = ", ".join(map(repr, key))
    else:
        o = key() if issubclass(type(key), weakref.ref) and type(key).__module__ in ("builtins", "weakref") else key
        text = f"<{type(o).__name__}>"
    return f"[{text if len(text) <= _SHORT else text[:_SHORT] + '…'}]"


def _find(names: Dict[Any, Any], o: Any) -> Any:
    for k, v in dict.items(names):
        if v is o:
            return k
    return None


def names_of(o: Any) -> Optional[Dict[str, Any]]:
    """The attributes of an object, or None."""
    try:
        names = object.__getattribute__(o, "__dict__")
    except Exception:
        return None
    return names if isinstance(names, dict) else None


def owner_of(o: Any) -> Tuple[str, str]:
    """The file and name of an object's class."""
    cls = o if issubclass(type(o), type) else type(o)
    names = names_of(sys.modules.get(getattr(cls, "__module__", "") or ""))
    file = names.get("__file__") if names is not None else None
    return (file if isinstance(file, str) else "", cls.__name__)


def _parts(objects: List[Any], from_root: bool) -> List[Part]:
    """The parts of a path through objects of which each refers to the next."""
    parts: List[Part] = []
    i = 0
    while i + 1 < len(objects):
        used, part = _step(objects, i, first=from_root and i == 0)
        i += used
        if part is None:
            continue
        if part.kind == "attribute" and parts and parts[-1].name == part.name:  # of a linked list
            part.text = f".{part.name}…"
            parts.pop()
        parts.append(part)
    return parts


def _step(objects: List[Any], i: int, first: bool) -> Tuple[int, Optional[Part]]:
    """How many objects a part of the path covers, and the part."""
    o, child = objects[i], objects[i + 1]
    after = objects[i + 2] if i + 2 < len(objects) else None
    kind = type(o)
    if first or kind is Locals:
        name = _find(o, child)
        name = name if type(name) is str else "?"
        if type(o) is Locals and not first:
            return 1, Part(f": {name} in {o.function}()", "local", name, (o.file, o.function))
        return 1, Part(name, "name", name)
    if kind is types.TracebackType:
        return (1, None) if i and type(objects[i - 1]) is types.TracebackType else (1, Part(".__traceback__"))
    if kind is types.FrameType or kind is types.CellType:
        return 1, None
    if kind in RUNNING:
        if type(child) is types.FrameType:
            return 1, None
        frame = getattr(o, RUNNING[kind])
        names = Locals() if frame is None else locals_of(frame)
        name = _find(names, child)
        return 1, None if name is None else Part(f": {name} in {names.function}()", "local", name, (names.file, names.function))
    if kind is types.MethodType and o.__self__ is child:
        return 1, Part(".__self__")
    if kind is types.FunctionType:
        return _function(o, child, after)
    if kind is _LRU:
        wrapped = getattr(getattr(o, "__wrapped__", None), "__code__", None)
        part = Part(".cache (functools.lru_cache)")
        if wrapped is not None:
            part = Part(part.text, "local", wrapped.co_name, (wrapped.co_filename, wrapped.co_name), wrapped.co_firstlineno)
        return 1, part
    return _member(o, child, after)


def _function(o: Any, child: Any, after: Any) -> Tuple[int, Optional[Part]]:
    """From a function to its closure or its default arguments."""
    code = o.__code__
    if child is o.__closure__:
        name = next((n for n, c in zip(code.co_freevars, o.__closure__) if c is after), "?")
        return 2, Part(f".__closure__.{name}", "local", name, (code.co_filename, code.co_name))
    if child is o.__defaults__:
        names = code.co_varnames[: code.co_argcount][-len(o.__defaults__) :]
        name = next((n for n, v in zip(names, o.__defaults__) if v is after), "?")
        return 2, Part(f".__defaults__ ({name})", "local", name, (code.co_filename, code.co_name), code.co_firstlineno)
    if child is o.__kwdefaults__:
        name = _find(o.__kwdefaults__, after)
        return 2, Part(f".__kwdefaults__ ({name})", "local", str(name), (code.co_filename, code.co_name), code.co_firstlineno)
    return _member(o, child, after)


def _member(o: Any, child: Any, after: Any) -> Tuple[int, Optional[Part]]:
    """From any object to what it has. Its class is not asked of it: a lazy module would load itself to answer."""
    kind = type(o)
    if issubclass(kind, (dict, list, tuple, deque)) and len(o) > _LOOKED:
        return 1, Part("[...]", "key")
    if issubclass(kind, dict):
        key = _find(o, child)
        if key is not None or any(v is child for v in dict.values(o)):
            return 1, Part(_key(key), "key")
        if any(k is child for k in dict.keys(o)):
            return 1, Part("'s key", "key")
    elif issubclass(kind, (list, tuple)):
        fields = getattr(kind, "_fields", None) if issubclass(kind, tuple) else None
        get: Any = list.__getitem__ if issubclass(kind, list) else tuple.__getitem__
        for n in range(len(o)):
            if get(o, n) is child:
                if fields and n < len(fields):
                    return 1, Part("." + str(fields[n]), "attribute", str(fields[n]), owner_of(o))
                return 1, Part(f"[{n}]", "index")
    elif issubclass(kind, deque):
        for n, v in enumerate(deque.__iter__(o)):
            if v is child:
                return 1, Part(f"[{n}]", "index")
    elif issubclass(kind, (set, frozenset)):
        return 1, Part("[...]", "index")
    elif kind is array_class():
        for n, v in enumerate(elements(o)[:_LOOKED] if o.ndim == 1 else ()):
            if v is child:
                return 1, Part(f"[{n}]", "index")
        return 1, Part("[...]", "index")
    names = names_of(o)
    if names is not None:
        if child is names and after is not None:
            child, used = after, 2
        else:
            used = 1
        name = _find(names, child)
        if type(name) is str:
            return used, Part("." + name, "attribute", name, owner_of(o))
    if issubclass(kind, type):
        return _of_class(o, child, after)
    for cls in kind.__mro__:
        for name, d in list(cls.__dict__.items()):
            if type(d) is types.MemberDescriptorType:
                try:
                    if d.__get__(o) is child:
                        return 1, Part("." + name, "attribute", name, owner_of(o))
                except Exception:
                    pass
    if issubclass(kind, BaseException) and child is o.__cause__ or issubclass(kind, BaseException) and child is o.__context__:
        return 1, Part(".__context__")
    if type(child) is types.TracebackType:
        return 1, None  # it writes itself
    return 1, Part(f".<{type(child).__name__}>" if not issubclass(kind, types.MappingProxyType) else "")


def _of_class(o: Any, child: Any, after: Any) -> Tuple[int, Optional[Part]]:
    """From a class to an attribute: its dict is seen by the collector alone."""
    for n in (after, child):
        for name, v in list(type.__getattribute__(o, "__dict__").items()):
            if n is not None and v is n:
                return (2 if n is after else 1), Part("." + name, "attribute", name, owner_of(o))
    return 1, Part(f".<{type(child).__name__}>")

