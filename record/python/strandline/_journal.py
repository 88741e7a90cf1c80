"""What a process notes of its recording: a line of JSON for each event, appended in one piece.

The lines of all processes are gathered into strandline.json when the recording ends.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import time
from typing import Any, Dict, Mapping, Optional, Set, Tuple

from . import _about, _descriptors, _folder, _secret, _why

_NOTES = "notes.jsonl"
_MAX_NOTES = 200  # of a process
_PAUSES = (0.01, 0.1)  # seconds between attempts to append


class Journal:
    """A file of events. It stays open, so that a process notes that it has lost the right to write elsewhere."""

    def __init__(self, recording: _folder.Recording, name: str) -> None:
        self.recording = recording
        self.name = name
        self.held: Optional[_descriptors.Held] = None
        self.noted: Set[Tuple[int, str]] = set()  # what processes noted

    def open(self) -> _descriptors.Held:
        """The file; the program may have closed it. Raises OSError."""
        if self.held is None or not self.held.there():
            self.held = self.recording.journals().append(self.name)
        return self.held

    def append(self, event: Mapping[str, Any]) -> None:
        """Append an event. Raises OSError."""
        line = json.dumps({"time": round(time.time(), 6), "pid": os.getpid(), **event}, default=str) + "\n"
        for pause in _PAUSES:  # the program may still be closing descriptors, or another thread have opened the folder again
            try:
                return self.open().write(line.encode())
            except OSError as e:
                if e.errno not in (errno.EBADF, errno.ENOTDIR):
                    raise
            time.sleep(pause)
        self.open().write(line.encode())

    def note(self, what: str, e: Optional[BaseException] = None, **more: Any) -> None:
        """Note once what is not recorded, and why. Never raises."""
        with contextlib.suppress(Exception):
            why = what if e is None else f"{what}: {_why.of(e)}"
            key = os.getpid(), why
            if key not in self.noted and len(self.noted) < _MAX_NOTES:
                self.noted.add(key)
                self.append({"event": "note", "why": why, **more})

    def close(self) -> None:
        """Close the file, unless the program did."""
        if self.held is not None:
            self.held.close()
            self.held = None


_shared: Dict[_folder.Recording, Journal] = {}  # of all processes of a recording


def shared(recording: _folder.Recording) -> Journal:
    """The journal that processes share which are not recorded, or not wholly."""
    if recording not in _shared:
        _shared[recording] = Journal(recording, _NOTES)
    return _shared[recording]


def note(recording: _folder.Recording, what: str, e: Optional[BaseException] = None) -> None:
    """Note once why this process is not recorded, or not wholly. Never raises."""
    shared(recording).note(what, e, command=_about.command())


def loaded(recording: _folder.Recording) -> None:
    """Note that this process has imported torch under the recorder. Never raises."""
    with contextlib.suppress(Exception):
        shared(recording).append({"event": "loaded"})


def manifest(path: str) -> None:
    """Begin a recording that no `strandline record` began. Raises OSError."""
    os.makedirs(path, mode=0o700, exist_ok=True)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    given = [arg[:4096] for arg in sys.argv[:256]]  # a longer text is read in seconds, before the program begins
    doc = {"schema": "strandline.record/1", "command": _secret.args(given), "directory": os.getcwd(), "started": now, "processes": [], "notes": []}
    with _folder.Folder(path) as folder:
        try:
            held = folder.create("strandline.json")
        except FileExistsError:  # of another process of the same recording
            if _has_ended(folder):
                raise FileExistsError(f"{path} holds a recording that has ended; give another folder") from None
        else:
            held.write(json.dumps(doc, indent=2).encode())
            held.close()
        folder.make(_folder.JOURNALS)
        folder.folder(_folder.JOURNALS).close()  # that it can be opened


def _has_ended(folder: _folder.Folder) -> bool:
    """Whether the recording of a folder has ended: others read its journals no more."""
    try:
        return "ended" in json.loads(folder.read("strandline.json", 256 << 20))
    except ValueError:  # it is being written
        return False
