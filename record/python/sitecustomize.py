"""Starts strandline's recorder in an interpreter, and makes way for the program's own sitecustomize.

`strandline record` puts this folder first in PYTHONPATH. Nothing of it stays in sys.path, and where the
program has no sitecustomize of its own the import fails as it would without this file. It is read by
every interpreter that the program starts, so it must be valid in all versions of Python.
"""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
try:
    if sys.version_info >= (3, 8) and os.environ.get("STRANDLINE_RECORD"):
        from strandline import _hook

        _hook.install()
except Exception:  # the program runs without being recorded
    pass
sys.path[:] = [p for p in sys.path if p != _here]
sys.path_importer_cache.pop(_here, None)
sys.modules.pop("sitecustomize", None)
__import__("sitecustomize")  # the next one in sys.path
