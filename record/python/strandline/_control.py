"""The socket by which `strandline` talks to a process that is recorded.

It is in Linux's abstract namespace, so that nothing is left of it when the process ends, and answers
processes of the same user and root. A request is a line of JSON, {"do": "snapshot" | "status" |
"stats" | "reclaim"}; so is an answer. stats with "every" seconds goes on until the peer leaves.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import struct
import time
from typing import Any, Callable, Dict, List, Mapping

_MOST = 64  # clients at once
_LONGEST = 1 << 16  # bytes of a request


def address(pid: int) -> str:
    """The name of the socket of a process."""
    return f"\0strandline/{pid}"


class Control:
    """Waits for requests and for what the process itself wants done."""

    def __init__(self, answer: Callable[[Mapping[str, Any]], Dict[str, Any]]) -> None:
        self.answer = answer
        self.selector = selectors.DefaultSelector()
        self.woken, self.waker = socket.socketpair()
        self.woken.setblocking(False)
        self.waker.setblocking(False)
        self.selector.register(self.woken, selectors.EVENT_READ)
        self.listener: Any = None
        self.requests: Dict[socket.socket, bytearray] = {}
        self.streams: Dict[socket.socket, List[float]] = {}  # seconds between, next time
        with contextlib.suppress(OSError, AttributeError, ValueError):
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listener.bind(address(os.getpid()))
            listener.listen(8)
            listener.setblocking(False)
            self.selector.register(listener, selectors.EVENT_READ)
            self.listener = listener

    def wake(self) -> None:
        """End a wait. It can be called in any thread, also in a signal handler."""
        with contextlib.suppress(OSError):
            self.waker.send(b"\0")

    def wait(self, seconds: float) -> None:
        """Answer requests until woken, or until the time is over."""
        if self.streams:
            seconds = min(seconds, min(next_at for _, next_at in self.streams.values()) - time.monotonic())
        for key, _ in self.selector.select(max(seconds, 0.0)):
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
        peer, _ = self.listener.accept()
        uid = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))[1]
        if uid not in (0, os.getuid()) or len(self.requests) >= _MOST:
            peer.close()
            return
        peer.setblocking(False)
        self.requests[peer] = bytearray()
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
        peer.close()

    def close(self) -> None:
        for peer in list(self.requests):
            self.drop(peer)
        self.leave()

    def leave(self) -> None:
        """Close what a forked child has of its parent's sockets, which the parent goes on with."""
        for s in (*self.requests, self.listener, self.woken, self.waker):
            if s is not None:
                s.close()
        self.selector.close()
