"""Records the memory history of PyTorch, for `strandline diagnose`.

A program that runs under `strandline record -- CMD` is recorded without calling any of this. Without it:

    import strandline
    strandline.start("recording", every="10steps")  # before or after the model is made
    ...
    strandline.step()        # where there is no optimizer whose steps could be counted
    strandline.snapshot()    # now, in addition to the schedule
    strandline.stop()

Once a recording has begun no function raises because of PyTorch, the device or the disk: what cannot be
recorded is noted in the recording.
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing would slow down every interpreter of a recording
if TYPE_CHECKING:
    from typing import Any, Dict, Optional

__all__ = ["reclaim", "snapshot", "start", "step", "stop"]


def start(out: Optional[str] = None, **options: Any) -> None:
    """Record this process, once PyTorch has initialized a device, into the folder `out`.

    Options are those of `strandline record`: every, steps, entries, stacks, above, max_files, max_bytes.
    A process that is recorded already goes on with what it was started with. Raises OSError if the folder
    cannot be made, ValueError or TypeError for options that do not exist.
    """
    from . import _recorder

    _recorder.start(out, options)


def _part(name: str) -> Any:
    """A module of this package, or None in a process that may not read it any more: one that has changed its user or root."""
    import importlib

    try:
        return importlib.import_module("." + name, __name__)
    except (ImportError, OSError):
        return None


def _current() -> Any:
    """The recorder of this process, if it is recorded."""
    recorder = _part("_recorder")
    return None if recorder is None else recorder.current()


def step() -> None:
    """Count a step of the program's own. Those of optimizers are no longer counted from then on."""
    r, levels = _current(), _part("_levels")
    if r is not None:
        r.own_step()
    if levels is not None:
        levels.own_step()


def snapshot(reason: str = "call") -> Optional[str]:
    """Write a snapshot now and return its path, or None where nothing is recorded or the disk refuses."""
    r = _current()
    path: Optional[str] = r.now(reason).path if r is not None else None
    return path


def reclaim() -> Dict[str, Any]:
    """Collect garbage, empty PyTorch's cache, reset its peaks, and return what each gave back.

    The result is empty where no device is initialized. It works without a recording too.
    """
    import sys

    r, reclaim = _current(), _part("_reclaim")
    torch = sys.modules.get("torch")
    out: Dict[str, Any] = {}
    if r is not None:
        out = r.reclaim("call")
    elif reclaim is not None and torch is not None and torch.cuda.is_initialized():
        out = reclaim.reclaim(torch)
    return out


def stop() -> None:
    """Stop recording this process, without a last snapshot."""
    recorder = _part("_recorder")
    if recorder is not None:
        recorder.stop()
