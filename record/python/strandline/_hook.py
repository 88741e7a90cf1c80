"""Notices that a module is imported, torch above all. Until then nothing else of strandline is loaded."""

from __future__ import annotations

import atexit
import os
import sys

TYPE_CHECKING = False  # importing typing takes longer than all of this
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Optional, Sequence

    Loaded = Callable[[Any], None]


class _Loader:
    """Runs a module's own loader, and then what waits for it. It is gone before the module's code runs."""

    def __init__(self, loader: Any, loaded: Loaded) -> None:
        self.loader = loader
        self.loaded = loaded

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)

    def create_module(self, spec: Any) -> Any:
        return self.loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        self.loaded(module)


class _Finder:
    """Finds modules as the finders after it would. It stands in sys.meta_path while one is waited for."""

    def __init__(self) -> None:
        self.waiting: Dict[str, Loaded] = {}

    def find_spec(self, name: str, path: Optional[Sequence[str]] = None, target: Any = None) -> Any:
        if name not in self.waiting:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, lambda module: self.loaded(name, module))
                return spec
        return None

    def loaded(self, name: str, module: Any) -> None:
        then = self.waiting.pop(name, None)
        if not self.waiting and self in sys.meta_path:
            sys.meta_path.remove(self)
        try:
            if then is not None:
                then(module)
        except Exception:
            pass


_finder = _Finder()


def when_imported(name: str, then: Loaded) -> None:
    """Call then(module) once a module is imported; what it raises is dropped."""
    _finder.waiting[name] = then
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def _attach(torch: Any) -> None:
    from . import _journal, _options

    o = _options.Options.from_environment(os.environ)
    if o is not None:
        _journal.loaded(o.recording())
    if '"no_snapshots"' not in os.environ.get("STRANDLINE_RECORD", ""):
        from . import _recorder

        _recorder.attach(torch)
    levels = sys.modules.get("strandline._levels")
    if levels is not None:
        levels.attach(torch)


def _at_exit() -> None:
    """Note that torch came in unseen, so that the report does not take silence for success."""
    if "torch" not in _finder.waiting or not hasattr(sys.modules.get("torch"), "cuda"):
        return
    try:
        from . import _journal, _options

        o = _options.Options.from_environment(os.environ)
        if o is not None:
            why = "torch was imported unseen: the program replaced sys.meta_path, or imports in a way of its own"
            _journal.note(o.recording(), why)
    except Exception:
        pass


def install() -> None:
    """Wait for torch, in a process that `strandline record` started."""
    when_imported("torch", _attach)
    atexit.register(_at_exit)
    if '"levels"' in os.environ["STRANDLINE_RECORD"]:  # of `strandline check`
        from . import _levels

        _levels.install()
