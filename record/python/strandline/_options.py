"""What to record, as `strandline record` or `strandline.start` has it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields
from typing import Any, Mapping, Optional, Tuple, Union

from . import _folder

VARIABLE = "STRANDLINE_RECORD"

_SIZES = ("above", "max_bytes", "reclaim_above")
_UNITS = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}


@dataclass
class Options:
    dir: str = ""
    session: str = ""  # of `strandline record`
    every_seconds: float = 0.0  # between two, after first ones in which the time between doubles; 0: most_seconds
    every_steps: int = 0  # 0: not by steps
    first_seconds: float = 0.5
    most_seconds: float = 600.0
    entries: int = 100_000  # of the ring, for each device
    stacks: str = "python"
    context: str = "alloc"
    above: int = 0  # bytes reserved at which a snapshot is taken, 0: none
    max_files: int = 24  # of this process
    max_bytes: int = 20 << 30  # of the whole recording
    steps: str = ""  # "annotation:NAME" or "MODULE:FUNCTION", else optimizers
    levels: str = ""  # of `strandline check`: snapshots are taken at steps that lie further apart each time
    reclaim_steps: int = 0  # 0: not by steps
    reclaim_seconds: float = 0.0  # 0: not by the clock
    reclaim_after: str = ""  # an annotation at whose ends memory is reclaimed
    reclaim_above: int = 0  # bytes reserved at which memory is reclaimed, 0: none

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Optional[Options]:
        """The options that `strandline record` set, or None where it did not start this process."""
        try:
            given = json.loads(environ.get(VARIABLE, ""))
        except ValueError:
            return None
        names = {f.name for f in fields(cls)}
        return cls(**{k: v for k, v in given.items() if k in names})

    def recording(self) -> _folder.Recording:
        """The folder to write to."""
        return _folder.of(self.dir, self.session)

    @classmethod
    def from_call(cls, out: str, given: Mapping[str, Any]) -> Options:
        """The options of a call of `start`. Raises ValueError or TypeError for one that does not exist."""
        o = cls(dir=out)
        rest = dict(given)
        every = rest.pop("every", None)
        if every is not None:
            o.every_seconds, o.every_steps = parse_every(str(every))
        for name, value in rest.items():
            if name not in {f.name for f in fields(cls)}:
                raise TypeError(f"start() has no option {name!r}")
            setattr(o, name, parse_bytes(value) if name in _SIZES else value)
        return o


def parse_every(text: str) -> Tuple[float, int]:
    """Seconds and steps of "2s", "5m", "1h" or "10steps"; one of them is 0."""
    m = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(steps?|ms|s|m|h)?\s*", text)
    if not m or float(m[1]) <= 0:
        raise ValueError(f"every {text!r}: want a time or a number of steps, such as 30s or 10steps")
    if m[2] in ("step", "steps"):
        return 0.0, max(1, int(float(m[1])))
    return float(m[1]) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[m[2] or "s"], 0


def parse_bytes(value: Union[int, str]) -> int:
    """Bytes of a number or of text such as "40GiB"."""
    if isinstance(value, int):
        return value
    m = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]I?B?|B)?\s*", value.upper())
    if not m:
        raise ValueError(f"size {value!r}: want bytes, or a size such as 40GiB")
    unit = m[2] or ""
    if unit and unit != "B":
        unit = unit[0] + "IB"
    return int(float(m[1]) * _UNITS[unit])
