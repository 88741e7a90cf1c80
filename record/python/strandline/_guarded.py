"""Tells who else could replace a file that other processes are told to load.

The rule is that of the folder from which `strandline record` has interpreters load this module.
"""

from __future__ import annotations

import os
import stat
import sys
from typing import List, Optional, Type


def _lineage(path: str) -> List[str]:
    """A path without links and those above it, the highest first."""
    above = os.path.dirname(path)
    return [path] if above == path else [*_lineage(above), path]


def _by_owner_alone(name: str, status: os.stat_result) -> bool:
    """Whether only the owner's own group can write beside the owner."""
    from . import _folder

    if status.st_mode & 0o002 or not stat.S_ISDIR(status.st_mode):
        return False
    try:
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        return _folder._private_group(fd, status)
    finally:
        os.close(fd)


def threat(path: str) -> Optional[str]:
    """Who could replace a file, None where that is this user and root alone, or whoever could replace Python.

    A sticky folder such as /tmp does not count: what was removed from it can be made again by anyone.
    """
    if not hasattr(os, "geteuid"):
        return None
    path = os.path.realpath(path)
    if any(path.startswith(os.path.realpath(p) + os.sep) for p in (sys.prefix, sys.base_prefix)):
        return None
    closed = False
    for name in _lineage(path):
        status = os.stat(name)
        if status.st_uid not in (0, os.geteuid()):
            return f"{name} belongs to user {status.st_uid}"
        if status.st_mode & 0o022 and not closed and not _by_owner_alone(name, status):
            return f"other users can write to {name}"
        closed = closed or stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o011
    return None


def check(path: str, variable: str, failure: Type[Exception]) -> None:
    """Raise where others can replace a library that a variable of the environment is to name."""
    try:
        by = threat(path)
    except OSError as e:
        by = str(e)
    if by is not None:
        raise failure(f"{variable} cannot name {path}: {by}; write the module where only you can write, by `strandline record --module DIR`")
