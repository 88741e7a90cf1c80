"""Notices the steps of a program: its optimizers', an annotation, or calls of a function."""

from __future__ import annotations

import functools
import importlib
import sys
import weakref
from typing import Any, Callable, List

Remove = Callable[[], None]


def of_optimizers(stepped: Callable[[int], None]) -> List[Remove]:
    """Call stepped(n) after step n of the optimizer that steps most. Raises AttributeError before PyTorch 2.0."""
    # torch.optim deletes its attribute of that name.
    register = importlib.import_module("torch.optim.optimizer").register_optimizer_step_post_hook
    steps: Any = weakref.WeakKeyDictionary()
    most = 0

    def hook(optimizer: Any, args: Any, kwargs: Any) -> None:
        nonlocal most
        try:
            steps[optimizer] = n = steps.get(optimizer, 0) + 1
            if n > most:
                most = n
                stepped(n)
        except Exception:
            pass

    return [register(hook).remove]


def of_annotation(torch: Any, name: str, stepped: Callable[[int], None]) -> List[Remove]:
    """Call stepped(n) where torch.profiler.record_function(name) ends for the n-th time.

    A name that continues with # is the same.
    """
    cls = torch.autograd.profiler.record_function
    n = 0

    def after(annotation: Any) -> None:
        nonlocal n
        found = str(getattr(annotation, "name", ""))
        if found == name or found.startswith(name + "#"):
            n += 1
            stepped(n)

    return [_after(cls, "__exit__", after)]


def of_function(target: str, stepped: Callable[[int], None]) -> List[Remove]:
    """Call stepped(n) after the n-th call of MODULE:FUNCTION, once the program has imported the module.

    Raises ImportError or AttributeError where there is no such function.
    """
    module, _, path = target.partition(":")
    owner: Any = sys.modules.get(module) or importlib.import_module(module)
    *classes, function = path.split(".")
    for name in classes:
        owner = getattr(owner, name)
    n = 0

    def after(_: Any) -> None:
        nonlocal n
        n += 1
        stepped(n)

    return [_after(owner, function, after)]


def _after(owner: Any, name: str, then: Callable[[Any], None]) -> Remove:
    """Have then(first argument) called after owner.name, until the result is called."""
    inherited = name not in vars(owner)
    original = getattr(owner, name) if inherited else vars(owner)[name]
    static = isinstance(original, staticmethod)
    function = original.__func__ if static else original

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        finally:
            try:
                then(args[0] if args else None)
            except Exception:
                pass

    def remove() -> None:
        if vars(owner).get(name) is installed:
            if inherited:
                delattr(owner, name)
            else:
                setattr(owner, name, original)

    installed = staticmethod(wrapper) if static else wrapper
    setattr(owner, name, installed)
    return remove
