"""The blocks of a snapshot by the place that made them, and those that are looked into."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Set, Tuple

from . import _paths

_SITES = 12  # places that are looked into
_SAMPLE = 48  # blocks of a place

Block = Tuple[int, int]  # address and size


def by_place(snapshot: Mapping[str, Any]) -> Dict[Any, Set[Block]]:
    """The blocks in use, by the place in the program that made them, and by size."""
    out: Dict[Any, Set[Block]] = {}
    places: Dict[int, Any] = {}  # by list of frames, which blocks share
    for segment in snapshot.get("segments", ()):
        address = segment.get("address", 0)
        for block in segment.get("blocks", ()):
            at = block.get("address", address)
            address = at + block["size"]
            if block.get("state") != "active_allocated":
                continue
            frames = block.get("frames")
            if frames is None:  # before 2.1
                history = block.get("history") or [{}]
                frames = history[0].get("frames", ())
            key = id(frames)
            if key not in places:
                places[key] = _place(frames)
            out.setdefault(places[key], set()).add((at, block["size"]))
    return out


def _place(frames: Any) -> Any:
    for f in frames:
        if _paths.tier(f["filename"]) < 2 and f["filename"].endswith(".py"):
            return f["filename"], f["line"]
    return "", 0


def sample(now: Mapping[Any, Set[Block]], before: Mapping[Any, Set[Block]]) -> List[int]:
    """Addresses of blocks at the places that grew most in number, survivors first."""
    nothing: Set[Block] = set()
    grown = sorted(now, key=lambda p: (len(now[p]) - len(before.get(p, nothing)), len(now[p])), reverse=True)
    out: List[int] = []
    for place in grown[:_SITES]:
        blocks = sorted(now[place])
        survivors = [b for b in blocks if b in before.get(place, nothing)]
        if len(survivors) >= 4:
            blocks = survivors
        every = max(1, -(-len(blocks) // _SAMPLE))
        out += [b[0] for b in blocks[::every]]
    return out
