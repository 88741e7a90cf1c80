"""The folder of a recording, as a process that is recorded writes to it.

It is opened once. From then on it is reached by its descriptor, whatever its path leads to later: the process may
change its root, and another user may put something else in the way. No link is followed below it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import Any, Dict, Iterator, List, Optional

from . import _descriptors

JOURNALS = ".strandline"  # where processes note what they do

_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # of a pipe that waits for a reader
_BY_DESCRIPTOR = os.open in os.supports_dir_fd  # not on Windows


class Foreign(OSError):
    """Something in the way is another user's, or not what it should be."""


def _trusted(user: int) -> bool:
    """Whether a folder of that user can be written to: it is of this one, of root or, for root, of the one who called sudo."""
    own = os.geteuid()
    return user in (0, own) or own == 0 and str(user) == os.environ.get("SUDO_UID")


def _accounts(path: str) -> List[List[str]]:
    """The lines of a file of users or groups. There are none without the file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return [line.strip().split(":") for line in f]
    except FileNotFoundError:
        return []


def _private_group(fd: int, status: os.stat_result) -> bool:
    """Whether the group of a folder is that of its owner alone, by the rule of Go's internal/safefile."""
    if status.st_gid != status.st_uid or not hasattr(os, "getxattr"):
        return False
    try:
        os.getxattr(fd, "system.posix_acl_access")
        return False  # a list of further users
    except OSError as e:
        if e.errno not in (errno.ENODATA, errno.ENOTSUP):
            return False
    own = str(status.st_uid)
    users = [u for u in _accounts("/etc/passwd") if len(u) >= 4]  # name, password, ID, group
    names = {u[0] for u in users if u[2] == own} | {""}
    members = {m for g in _accounts("/etc/group") if len(g) >= 4 and g[2] == own for m in g[3].split(",")}
    return members <= names and not any(u[3] == own and u[2] != own for u in users)


class Folder:
    """A folder that is open. Names are looked up in it. All methods raise OSError."""

    def __init__(self, path: str, parent: Optional[Folder] = None) -> None:
        self.path = path
        self.held: Optional[_descriptors.Held] = None
        if not _BY_DESCRIPTOR:
            return
        flags = os.O_RDONLY | os.O_DIRECTORY | _CLOEXEC
        if parent is None:
            fd = os.open(path, flags)
        else:
            fd = os.open(os.path.basename(path), flags | _NOFOLLOW, **parent.at())
        self.held = _descriptors.Held(fd)
        status = os.fstat(fd)
        why = None
        if not _trusted(status.st_uid):
            why = f"the folder {path} belongs to user {status.st_uid}"
        elif status.st_mode & 0o002 or status.st_mode & 0o020 and not _private_group(fd, status):
            why = f"other users can write to the folder {path}: give a new folder in it"
        if why is not None:
            self.close()
            raise Foreign(why)

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def there(self) -> bool:
        """Whether the folder is still open: a program may close all descriptors."""
        return self.held is None or self.held.there()

    def close(self) -> None:
        if self.held is not None:
            self.held.close()

    def at(self) -> Dict[str, Any]:
        """The argument by which a name is looked up in the folder."""
        return {} if self.held is None else {"dir_fd": self.held.fd}

    def name(self, name: str) -> str:
        return os.path.join(self.path, name) if self.held is None else name

    def make(self, name: str) -> None:
        """Make a folder, unless it exists."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(self.name(name), 0o700, **self.at())
            with contextlib.suppress(OSError):
                os.chmod(self.name(name), 0o700, **self.at())  # whatever the program's umask is

    def folder(self, name: str) -> Folder:
        """Open a folder in this one."""
        return Folder(os.path.join(self.path, name), self)

    def create(self, name: str) -> _descriptors.Held:
        """Create a file."""
        return self._open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0))

    def append(self, name: str) -> _descriptors.Held:
        """Open a file to add to it, or create it."""
        held = self._open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0))
        status = os.fstat(held.fd)
        if not stat.S_ISREG(status.st_mode) or _BY_DESCRIPTOR and not _trusted(status.st_uid):
            held.close()
            raise Foreign(f"{os.path.join(self.path, name)} is not a file of this user")
        return held

    def _open(self, name: str, flags: int) -> _descriptors.Held:
        fd = os.open(self.name(name), flags | _NOFOLLOW | _CLOEXEC, 0o600, **self.at())
        if hasattr(os, "fchmod") and flags & os.O_EXCL:
            with contextlib.suppress(OSError):
                os.fchmod(fd, 0o600)
        return _descriptors.Held(fd)

    def read(self, name: str, limit: int) -> bytes:
        """Read the first bytes of a file."""
        fd = os.open(self.name(name), os.O_RDONLY | _NOFOLLOW | _CLOEXEC, **self.at())
        with open(fd, "rb") as f:
            return f.read(limit)

    def replace(self, name: str, data: bytes) -> None:
        """Write a file that has its name once it is whole; until then the name ends in "~"."""
        part = name + "~"
        with contextlib.suppress(FileNotFoundError):
            self.unlink(part)
        held = self.create(part)
        try:
            held.write(data)
        finally:
            held.close()
        self.rename(part, name)

    def rename(self, old: str, new: str) -> None:
        os.replace(self.name(old), self.name(new), **({} if self.held is None else {"src_dir_fd": self.held.fd, "dst_dir_fd": self.held.fd}))

    def unlink(self, name: str) -> None:
        os.unlink(self.name(name), **self.at())

    def rmdir(self, name: str) -> None:
        os.rmdir(self.name(name), **self.at())

    def status(self, name: str) -> os.stat_result:
        return os.stat(self.name(name), follow_symlinks=False, **self.at())

    def entries(self) -> Iterator[os.DirEntry[str]]:
        place: Any = self.path if self.held is None else self.held.fd
        with os.scandir(place) as found:
            yield from found

    def disk(self) -> Any:
        return os.statvfs(self.path if self.held is None else self.held.fd)


class Recording:
    """The folder of a recording and that of its journals, which are opened when they are first used."""

    def __init__(self, path: str, session: str) -> None:
        self.path = path
        self.session = session  # of `strandline record`, else empty
        self.opened: List[Folder] = []

    def folder(self) -> Folder:
        """The folder of the recording. Raises OSError."""
        return self.open()[0]

    def journals(self) -> Folder:
        """The folder of its journals. Raises OSError."""
        return self.open()[1]

    def open(self) -> List[Folder]:
        if not self.opened or not all(f.there() for f in self.opened):
            folder = Folder(self.path)
            try:
                journals = folder.folder(JOURNALS)
                try:
                    if self.session and journals.read("session", 256).decode("ascii", "replace") != self.session:
                        raise Foreign(f"{self.path} is the folder of another recording")
                except BaseException:
                    journals.close()
                    raise
            except BaseException:
                folder.close()
                raise
            for f in self.opened:
                f.close()
            self.opened = [folder, journals]
        return self.opened


_recordings: Dict[str, Recording] = {}


def of(path: str, session: str) -> Recording:
    """The recording of a folder, the same one for all that write to it in this process."""
    if path not in _recordings or _recordings[path].session != session:
        _recordings[path] = Recording(path, session)
    return _recordings[path]
