"""Where the snapshots of a recording stand, and how many: names, one process at a time, bounds on number and bytes."""

from __future__ import annotations

import contextlib
import datetime
import errno
import os
import time
from typing import Any, Iterator, List, Mapping, Optional, Tuple

from . import _descriptors, _folder, _pickle

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

    def __init__(self, recording: _folder.Recording, name: str, max_files: int, max_bytes: int) -> None:
        self.recording = recording
        self.name = name + ".pickle"
        self.max_files = max(max_files, 2)
        self.max_bytes = max_bytes
        self.files: List[Tuple[float, str, bool]] = []  # when, its moment, whether it may be removed
        self.largest = 0  # bytes

    def write(self, snapshot: Mapping[str, Any], when: float, keep: bool, patience: float = _PATIENCE) -> Tuple[str, int]:
        """Write a snapshot and return its path, MOMENT/NAME.pickle in the recording, and size. Raises Full and OSError."""
        with self.turn(patience):
            self.make_room()
            moment, folder = self.place(when)
            with folder:
                try:
                    size = _pickle.write(snapshot, folder, self.name)
                except BaseException:
                    with contextlib.suppress(OSError):
                        self.recording.folder().rmdir(moment)
                    raise
        self.largest = max(self.largest, size)
        self.files.append((when, moment, not keep))
        self.thin(self.max_files)
        return os.path.join(moment, self.name), size

    def place(self, when: float) -> Tuple[str, _folder.Folder]:
        """A folder named by the moment, in which there is no such snapshot yet."""
        for n in range(100):
            at = datetime.datetime.fromtimestamp(when + n / 1000)
            moment = at.strftime("%Y%m%d-%H%M%S.") + f"{at.microsecond // 1000:03d}"
            try:
                self.recording.folder().make(moment)
                folder = self.recording.folder().folder(moment)
            except OSError as e:
                if isinstance(e, _folder.Foreign) or e.errno in (errno.ENOTDIR, errno.ELOOP):  # of somebody else
                    continue
                raise
            try:
                folder.status(self.name)
            except FileNotFoundError:
                return moment, folder
            folder.close()
        raise Full("there is no name left for it")

    @contextlib.contextmanager
    def turn(self, patience: float) -> Iterator[None]:
        """Wait for the other processes to finish writing, so that all ranks do not write at once."""
        lock: Optional[_descriptors.Held] = None
        try:
            if fcntl is not None:
                lock = self.recording.journals().append("lock")
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
            disk = self.recording.folder().disk()
            free = disk.f_bavail * disk.f_frsize
            if free - need < min(_LEAST_FREE, disk.f_blocks * disk.f_frsize // 20):
                return f"the disk has {free} bytes left"
        return None

    def used(self) -> int:
        """The bytes of all snapshots of the recording."""
        total = 0
        with contextlib.suppress(OSError):
            for moment in self.recording.folder().entries():
                if moment.name.startswith(".") or not moment.is_dir(follow_symlinks=False):
                    continue
                with contextlib.suppress(OSError), self.recording.folder().folder(moment.name) as folder:
                    total += sum(f.stat(follow_symlinks=False).st_size for f in folder.entries())
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
        _, moment, _ = self.files.pop(i)
        with contextlib.suppress(OSError), self.recording.folder().folder(moment) as folder:
            folder.unlink(self.name)
            self.recording.folder().rmdir(moment)  # unless another process has one there
        return True
