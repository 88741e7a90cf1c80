"""Writes a snapshot as torch.cuda.memory._dump_snapshot does, in pieces between which other threads run."""

from __future__ import annotations

import contextlib
import io
import pickle
from typing import Any, Iterable, Iterator, Mapping

from . import _folder

# Protocol 3 has no frames, so that the pickles of parts can stand inside one pickle;
# pytorch.org/memory_viz reads it, and nothing newer than 4.
_PROTOCOL = 3
_START = b"\x80\x03"  # PROTO 3
_BATCH = 1000  # as pickle itself; a viewer passes a batch as arguments of a call


def pieces(snapshot: Mapping[str, Any]) -> Iterator[bytes]:
    """The bytes of the pickle. The snapshot must not change meanwhile."""
    part = io.BytesIO()
    pickler = pickle.Pickler(part, _PROTOCOL)  # its memo holds over all parts
    out = bytearray()

    def add(value: Any) -> None:
        """Append the pickle of a value without its head and its STOP."""
        part.seek(0)
        part.truncate()
        pickler.dump(value)
        out.extend(part.getbuffer()[len(_START) : -1])

    def taken() -> bytes:
        data = bytes(out)
        out.clear()
        return data

    def each(items: Iterable[Any]) -> Iterator[bytes]:
        """A list, in batches."""
        out.extend(b"]")
        waiting = 0
        for item in items:
            if waiting == 0:
                out.extend(b"(")
            add(item)
            waiting += 1
            if waiting == _BATCH:
                out.extend(b"e")
                waiting = 0
                yield taken()
        if waiting:
            out.extend(b"e")

    out.extend(_START + b"}(")
    for key, value in snapshot.items():
        add(key)
        if key == "device_traces":
            out.extend(b"](")
            for trace in value:
                yield from each(trace)
            out.extend(b"e")
        elif isinstance(value, list):
            yield from each(value)
        else:
            add(value)
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
