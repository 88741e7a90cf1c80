"""Descriptors of the recorder. A program may close all descriptors, as one does that becomes a daemon, and their
numbers are then those of its own files. So each is looked at before it is used."""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False  # importing typing would slow down every interpreter of a recording
if TYPE_CHECKING:
    from typing import Optional, Tuple, Union


def identity(fd: int) -> Optional[Tuple[int, int]]:
    """What a descriptor stands for, or None if it is not open."""
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino


class Held:
    """A descriptor that the recorder opened by itself."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.identity = identity(fd)

    def there(self) -> bool:
        """Whether the descriptor is still the recorder's own."""
        return self.identity is not None and identity(self.fd) == self.identity

    def write(self, data: Union[bytes, memoryview]) -> None:
        """Write all of the data. Raises OSError."""
        if not self.there():
            raise OSError(errno.EBADF, "the program closed the recorder's file")
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.fd, rest) :]

    def close(self) -> None:
        if self.there():
            os.close(self.fd)
