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


def step() -> None:
    """Count a step of the program's own. Those of optimizers are no longer counted from then on."""
    from . import _levels, _recorder

    r = _recorder.current()
    if r is not None:
        r.own_step()
    _levels.own_step()


def snapshot(reason: str = "call") -> Optional[str]:
    """Write a snapshot now and return its path, or None where nothing is recorded or the disk refuses."""
    from . import _recorder

    r = _recorder.current()
    return r.now(reason).path if r is not None else None


def reclaim() -> Dict[str, Any]:
    """Collect garbage, empty PyTorch's cache, reset its peaks, and return what each gave back.

    The result is empty where no device is initialized. It works without a recording too.
    """
    import sys

    from . import _reclaim, _recorder

    r = _recorder.current()
    if r is not None:
        return r.reclaim("call")
    torch = sys.modules.get("torch")
    return _reclaim.reclaim(torch) if torch is not None and torch.cuda.is_initialized() else {}


def stop() -> None:
    """Stop recording this process, without a last snapshot."""
    from . import _recorder

    _recorder.stop()
