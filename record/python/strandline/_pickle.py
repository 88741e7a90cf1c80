"""Writes a snapshot as torch.cuda.memory._dump_snapshot does, in pieces between which other threads run."""

from __future__ import annotations

import contextlib
import io
import pickle
from typing import Any, Iterator, List, Mapping

from . import _folder

# Protocol 3 has no frames, so that the pickles of parts can stand inside one pickle;
# pytorch.org/memory_viz reads it, and nothing newer than 4.
_PROTOCOL = 3
_START = b"\x80\x03"  # PROTO 3
_BATCH = 1000  # as pickle itself; a viewer passes a batch as arguments of a call
_PUTS = {ord("q"): 2, ord("r"): 5}  # bytes of an instruction that numbers a value


def pieces(snapshot: Mapping[str, Any]) -> Iterator[bytes]:
    """The bytes of the pickle. The snapshot must not change meanwhile."""
    part = io.BytesIO()
    pickler = pickle.Pickler(part, _PROTOCOL)  # its memo holds over all parts
    out = bytearray()

    def pickled(value: Any) -> memoryview:
        """The pickle of a value without its head and its STOP."""
        part.seek(0)
        part.truncate()
        pickler.dump(value)
        return part.getbuffer()[len(_START) : -1]

    def taken() -> bytes:
        data = bytes(out)
        out.clear()
        return data

    def each(items: List[Any]) -> Iterator[bytes]:
        """A list, in batches."""
        out.extend(b"]")
        for i in range(0, len(items), _BATCH):
            with pickled(items[i : i + _BATCH]) as batch:  # a list, with its number, which no other part refers to
                out.extend(batch[1 + _PUTS[batch[1]] :])
            yield taken()

    out.extend(_START + b"}(")
    for key, value in snapshot.items():
        out.extend(pickled(key))
        if key == "device_traces":
            out.extend(b"](")
            for trace in value:
                yield from each(trace)
            out.extend(b"e")
        elif isinstance(value, list):
            yield from each(value)
        else:
            out.extend(pickled(value))
        yield taken()
    yield b"u."


def write(snapshot: Mapping[str, Any], folder: _folder.Folder, name: str) -> int:
    """Write a snapshot to a new file in a folder and return its size. The file has its name once it is whole."""
    unfinished = name + ".tmp"
    size = 0
    file = folder.create(unfinished)
    try:
        try:
            for piece in pieces(snapshot):
                file.write(piece)
                size += len(piece)
        finally:
            file.close()
        folder.rename(unfinished, name)
    except BaseException:
        with contextlib.suppress(OSError):
            folder.unlink(unfinished)
        raise
    return size
