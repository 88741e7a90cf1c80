"""Starts strandline's recorder in an interpreter, and makes way for the program's own sitecustomize.

`strandline record` puts this folder first in PYTHONPATH. Nothing of it stays in sys.path, and where the
program has no sitecustomize of its own the import fails as it would without this file. It is read by
every interpreter that the program starts, so it must be valid in all versions of Python.
"""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))


def _ours(folder):
    """Whether only this user and root can change what lies in a folder."""
    status = os.stat(folder)
    return not hasattr(os, "geteuid") or status.st_uid in (0, os.geteuid()) and not status.st_mode & 0o022


try:
    if sys.version_info >= (3, 8) and os.environ.get("STRANDLINE_RECORD") and _ours(_here) and _ours(os.path.join(_here, "strandline")):
        from strandline import _hook

        _hook.install()
except Exception:  # the program runs without being recorded
    pass
sys.path[:] = [p for p in sys.path if p != _here]
sys.path_importer_cache.pop(_here, None)
sys.modules.pop("sitecustomize", None)
__import__("sitecustomize")  # the next one in sys.path
