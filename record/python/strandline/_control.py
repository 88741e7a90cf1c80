"""The socket by which `strandline` talks to a process that is recorded.

It is in Linux's abstract namespace, so that nothing is left of it when the process ends, and answers
processes of the same user and root. Anybody can take its name; it then has another one, which begins alike.
A request is a line of JSON, {"do": "snapshot" | "status" | "stats" | "reclaim"}; so is an answer. stats with "every" seconds goes on until the peer leaves.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import selectors
import socket
import struct
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from . import _descriptors

_MOST = 64  # clients at once
_LONGEST = 1 << 16  # bytes of a request
_PAUSE = 0.1  # seconds until a client is accepted again, where the process has no descriptor for it
_BLIND = 0.25  # seconds of a wait that nothing can end
# Seconds of a wait for descriptors: where the program closes them and the numbers are at once those of its own
# files, the kernel waits on, and nothing wakes it.
_LOOK = 2.0


def address(pid: int) -> str:
    """The name of the socket of a process."""
    return f"\0strandline/{pid}"


class Control:
    """Waits for requests and for what the process itself wants done.

    A program may close all file descriptors, as one does that becomes a daemon, and their numbers are then those
    of its own files. So each is looked at before it is used. Once one is lost, requests are answered no more.
    """

    def __init__(self, answer: Callable[[Mapping[str, Any]], Dict[str, Any]], lost: Callable[[], None]) -> None:
        self.answer = answer
        self.lost = lost  # is called once requests are answered no more
        self.selector = getattr(selectors, "PollSelector", selectors.SelectSelector)()  # which have no descriptor
        self.identities: Dict[socket.socket, Optional[Tuple[int, int]]] = {}  # of the sockets in use; none once one is lost
        self.woken, self.waker = socket.socketpair()
        self.woken.setblocking(False)
        self.waker.setblocking(False)
        self.selector.register(self.woken, selectors.EVENT_READ)
        self.listener: Any = None
        self.taken_by: Optional[str] = None  # who has the name of the socket
        self.requests: Dict[socket.socket, bytearray] = {}
        self.streams: Dict[socket.socket, List[float]] = {}  # seconds between, next time
        with contextlib.suppress(OSError, AttributeError, ValueError):
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.taken_by = bind(listener, address(os.getpid()))
            listener.listen(8)
            listener.setblocking(False)
            self.selector.register(listener, selectors.EVENT_READ)
            self.listener = listener
        for s in (self.woken, self.waker, self.listener):
            self.add(s)

    def add(self, s: Any) -> None:
        """Remember what a socket's descriptor stands for."""
        if s is not None:
            self.identities[s] = identity(s)

    def intact(self) -> bool:
        """Report whether all sockets are there still; if not, let go of them."""
        if all(identity(s) == known for s, known in list(self.identities.items())):
            return bool(self.identities)
        self.leave()
        self.lost()
        return False

    def wake(self) -> None:
        """End a wait. It can be called in any thread, also in a signal handler."""
        known = self.identities.get(self.waker)
        with contextlib.suppress(OSError):
            if known is not None and identity(self.waker) == known:
                self.waker.send(b"\0")

    def wait(self, seconds: float) -> None:
        """Answer requests until woken, or until the time is over."""
        if self.streams:
            seconds = min(seconds, min(next_at for _, next_at in self.streams.values()) - time.monotonic())
        if not self.intact():
            time.sleep(min(max(seconds, 0.0), _BLIND))
            return
        ready = self.selector.select(min(max(seconds, 0.0), _LOOK))
        if not self.intact():
            return
        for key, _ in ready:
            with contextlib.suppress(OSError):
                if key.fileobj is self.woken:
                    while self.woken.recv(4096):
                        pass
                elif key.fileobj is self.listener:
                    self.accept()
                else:
                    self.read(key.fileobj)
        self.stream()

    def accept(self) -> None:
        try:
            peer, _ = self.listener.accept()
        except OSError as e:
            if e.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS):
                time.sleep(_PAUSE)
            return
        if credentials(peer)[1] not in (0, os.geteuid()):
            peer.close()
            return
        if len(self.requests) >= _MOST:  # of which one that asks for nothing gives way, or else the first
            self.drop(next((p for p in self.requests if p not in self.streams), next(iter(self.requests))))
        peer.setblocking(False)
        self.requests[peer] = bytearray()
        self.add(peer)
        self.selector.register(peer, selectors.EVENT_READ)

    def read(self, peer: Any) -> None:
        """Read what a peer sent, and answer its whole lines."""
        try:
            data = peer.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        request = self.requests[peer]
        request += data
        if not data or len(request) > _LONGEST:
            self.drop(peer)
            return
        while peer in self.requests and b"\n" in request:
            line, _, rest = bytes(request).partition(b"\n")
            request[:] = rest
            self.handle(peer, line)

    def handle(self, peer: Any, line: bytes) -> None:
        try:
            request = json.loads(line)
            reply = self.answer(request)
            if request.get("do") == "stats" and request.get("every"):
                every = max(float(request["every"]), 0.01)
                self.streams[peer] = [every, time.monotonic() + every]
        except Exception as e:
            reply = {"error": f"{type(e).__name__}: {e}"}
        self.send(peer, reply)

    def stream(self) -> None:
        """Send statistics to those that wait for them."""
        now = time.monotonic()
        due = [peer for peer, (_, next_at) in self.streams.items() if next_at <= now]
        if not due:
            return
        reply = self.answer({"do": "stats"})
        for peer in due:
            every, next_at = self.streams[peer]
            self.streams[peer][1] = max(next_at + every, now)
            self.send(peer, reply)

    def send(self, peer: Any, reply: Mapping[str, Any]) -> None:
        """Send a line; a peer that does not read loses the connection."""
        data = (json.dumps(reply, default=str) + "\n").encode()
        try:
            if peer.send(data) == len(data):
                return
        except OSError:
            pass
        self.drop(peer)

    def drop(self, peer: Any) -> None:
        self.requests.pop(peer, None)
        self.streams.pop(peer, None)
        with contextlib.suppress(KeyError, ValueError):
            self.selector.unregister(peer)
        let_go(peer, self.identities.pop(peer, None))

    def leave(self) -> None:
        """Close the sockets that are there, also in a forked child, whose parent goes on with its own."""
        identities, self.identities = self.identities, {}
        self.requests, self.streams = {}, {}
        for s, known in identities.items():
            let_go(s, known)
        self.selector.close()


def bind(s: Any, name: str) -> Optional[str]:
    """Bind a name or, where another process has it, one that begins with it. Returns who has it."""
    try:
        s.bind(name)
        return None
    except OSError as e:
        if e.errno != errno.EADDRINUSE:
            raise
    s.bind(f"{name}/{os.urandom(8).hex()}")
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.setblocking(False)
        other.connect(name)
        return "process {} of user {}".format(*credentials(other))
    return "another process"


def credentials(s: Any) -> Tuple[int, int]:
    """The process and the user at the other end of a connection."""
    pid, uid, _ = struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return pid, uid


def identity(s: Any) -> Optional[Tuple[int, int]]:
    """What a socket's descriptor stands for, or None."""
    return _descriptors.identity(s.fileno())


def let_go(s: Any, known: Optional[Tuple[int, int]]) -> None:
    """Close a socket, unless its descriptor is not its own any more."""
    if known is not None and identity(s) == known:
        s.close()
    else:
        s.detach()
