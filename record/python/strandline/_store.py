"""Where the snapshots of a recording stand, and how many: names, one process at a time, bounds on number and bytes."""

from __future__ import annotations

import contextlib
import datetime
import os
import time
from typing import Any, Iterator, List, Mapping, Optional, Tuple

from . import _descriptors, _journal, _pickle

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_PATIENCE = 60.0  # seconds that a process waits for others to finish writing
_LEAST_FREE = 1 << 30  # bytes left on a disk, or a twentieth of a small one


class Full(Exception):
    """A bound does not allow another snapshot."""


class Store:
    """The snapshots of one process, in the folder of a recording that it shares with others."""

    def __init__(self, folder: str, name: str, max_files: int, max_bytes: int) -> None:
        self.folder = folder
        self.name = name
        self.max_files = max(max_files, 2)
        self.max_bytes = max_bytes
        self.files: List[Tuple[float, str, bool]] = []  # when, path, whether it may be removed
        self.largest = 0  # bytes

    def write(self, snapshot: Mapping[str, Any], when: float, keep: bool, patience: float = _PATIENCE) -> Tuple[str, int]:
        """Write a snapshot and return its path and size. Raises Full and OSError."""
        with self.turn(patience):
            self.make_room()
            path = self.path(when)
            try:
                size = _pickle.write(snapshot, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.rmdir(os.path.dirname(path))
                raise
        self.largest = max(self.largest, size)
        self.files.append((when, path, not keep))
        self.thin(self.max_files)
        return path, size

    def path(self, when: float) -> str:
        """A new path DIR/MOMENT/NAME.pickle, in a folder that exists."""
        for n in range(100):
            at = datetime.datetime.fromtimestamp(when + n / 1000)
            folder = os.path.join(self.folder, at.strftime("%Y%m%d-%H%M%S.") + f"{at.microsecond // 1000:03d}")
            path = os.path.join(folder, self.name + ".pickle")
            if not os.path.exists(path):
                os.makedirs(folder, exist_ok=True)
                return path
        raise Full("there is no name left for it")

    @contextlib.contextmanager
    def turn(self, patience: float) -> Iterator[None]:
        """Wait for the other processes to finish writing, so that all ranks do not write at once."""
        lock = None
        try:
            if fcntl is not None:
                lock = _descriptors.File(os.path.join(self.folder, _journal.FOLDER, "lock"), os.O_RDWR)
                end = time.monotonic() + patience
                while time.monotonic() < end and lock.there():
                    try:
                        fcntl.flock(lock.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    except BlockingIOError:
                        time.sleep(0.02)
        except OSError:  # a file system without locks
            pass
        try:
            yield
        finally:
            if lock is not None and lock.there():
                with contextlib.suppress(OSError):  # closing does not unlock it while a child that was forked meanwhile has it too
                    fcntl.flock(lock.fd, fcntl.LOCK_UN)
                lock.close()

    def make_room(self) -> None:
        """Remove snapshots of this process until another fits the quota and the disk."""
        while True:
            why = self.full()
            if why is None:
                return
            if not self.remove_one():
                raise Full(why)

    def full(self) -> Optional[str]:
        need = self.largest + self.largest // 4
        if self.used() + need > self.max_bytes:
            return f"the recording holds {self.used()} of at most {self.max_bytes} bytes"
        if hasattr(os, "statvfs"):
            disk = os.statvfs(self.folder)
            free = disk.f_bavail * disk.f_frsize
            if free - need < min(_LEAST_FREE, disk.f_blocks * disk.f_frsize // 20):
                return f"the disk has {free} bytes left"
        return None

    def used(self) -> int:
        """The bytes of all snapshots of the recording."""
        total = 0
        with contextlib.suppress(OSError):
            for moment in os.scandir(self.folder):
                if moment.name.startswith(".") or not moment.is_dir():
                    continue
                with contextlib.suppress(OSError):
                    total += sum(f.stat().st_size for f in os.scandir(moment.path))
        return total

    def thin(self, most: int) -> None:
        while len(self.files) > most and self.remove_one():
            pass

    def remove_one(self) -> bool:
        """Remove the snapshot whose neighbors are closest in time; the first and the last stay."""
        inner = [i for i in range(1, len(self.files) - 1) if self.files[i][2]]
        if not inner:
            return False
        i = min(inner, key=lambda i: self.files[i + 1][0] - self.files[i - 1][0])
        _, path, _ = self.files.pop(i)
        with contextlib.suppress(OSError):
            os.unlink(path)
            os.rmdir(os.path.dirname(path))  # unless another process has one there
        return True
