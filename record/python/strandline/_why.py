"""States why something could not be written: what the process has changed of itself, where that is the reason."""

from __future__ import annotations

import errno
import os

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_USER = os.geteuid() if hasattr(os, "geteuid") else 0  # when the recorder came in


def of(e: BaseException) -> str:
    """The reason in words."""
    number = e.errno if isinstance(e, OSError) else None
    if number in (errno.EACCES, errno.EPERM) and hasattr(os, "geteuid") and os.geteuid() not in (0, _USER):
        return f"it runs as user {os.geteuid()}, who may not write to the folder of the recording"
    if number == errno.EFBIG and resource is not None:
        return f"RLIMIT_FSIZE lets it write at most {resource.getrlimit(resource.RLIMIT_FSIZE)[0]} bytes to a file"
    if number == errno.EMFILE and resource is not None:
        return f"RLIMIT_NOFILE lets it open at most {resource.getrlimit(resource.RLIMIT_NOFILE)[0]} files, and no more are left"
    return f"{type(e).__name__}: {e}"
