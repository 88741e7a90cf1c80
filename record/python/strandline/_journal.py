"""What a process notes of its recording: a line of JSON for each event, appended in one piece.

The lines of all processes are gathered into strandline.json when the recording ends.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Mapping

from . import _about, _descriptors, _secret

FOLDER = ".strandline"


def append(folder: str, name: str, event: Mapping[str, Any]) -> None:
    """Append an event to a file of the recording in `folder`. Raises OSError."""
    line = (json.dumps({"time": round(time.time(), 6), "pid": os.getpid(), **event}, default=str) + "\n").encode()
    path = os.path.join(folder, FOLDER, name)
    file = _descriptors.File(path, os.O_WRONLY | os.O_APPEND)
    try:
        file.write(line)
    finally:
        file.close()


def note(folder: str, why: str) -> None:
    """Note why this process is not recorded, or not wholly. Never raises."""
    try:
        append(folder, "notes.jsonl", {"event": "note", "why": why, "command": _about.command()})
    except Exception:
        pass


def loaded(folder: str) -> None:
    """Note that this process has imported torch under the recorder. Never raises."""
    try:
        append(folder, "notes.jsonl", {"event": "loaded"})
    except Exception:
        pass


def manifest(folder: str) -> None:
    """Begin a recording that no `strandline record` began. Raises OSError."""
    os.makedirs(os.path.join(folder, FOLDER), exist_ok=True)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    doc = {"schema": "strandline.record/1", "command": _secret.args(sys.argv), "directory": os.getcwd(), "started": now, "processes": [], "notes": []}
    try:
        with open(os.path.join(folder, "strandline.json"), "x", encoding="utf-8") as f:
            json.dump(doc, f, indent=2)
    except FileExistsError:  # another process of the same recording
        pass
