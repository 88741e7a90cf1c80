"""strandline.pausable under the name of torch_memory_saver, for programs that import that."""

from __future__ import annotations

import warnings
from typing import Any, Optional

from strandline import pausable
from strandline.pausable import Failure, MemorySaver, NotEnoughMemory, configure_subprocess

__all__ = ["Failure", "NotEnoughMemory", "TorchMemorySaver", "configure_subprocess", "torch_memory_saver"]


class TorchMemorySaver(MemorySaver):
    """The pausable memory of this process, with what programs take for granted of torch_memory_saver."""

    def __init__(self) -> None:
        self.__dict__ = pausable.torch_memory_saver.__dict__  # there is one, whatever it is called

    def _unknown(self, tag: str) -> None:
        # SGLang pauses "cuda_graph" whether or not it has such memory.
        warnings.warn(f"there is no tag {tag}, and nothing was done", stacklevel=4)

    @property
    def _impl(self) -> Optional[_Inside]:
        return None if self._lib is None else _Inside(self)


class _Inside:
    """What slime calls of the inside, so that DeepEP's buffers, which it shares with other processes, stay ordinary."""

    def __init__(self, saver: TorchMemorySaver) -> None:
        self._saver = saver
        self._binary_wrapper = self.cdll = self

    def tms_get_interesting_region(self) -> bool:
        return bool(self._saver._loaded().pausable_in_region())

    def tms_set_interesting_region(self, on: bool) -> None:
        self._saver._suspend(not on)


torch_memory_saver = TorchMemorySaver()


def __getattr__(name: str) -> Any:
    """People also call region, pause and resume of the module itself."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(torch_memory_saver, name)
