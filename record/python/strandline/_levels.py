"""Notes the memory of this process at the end of each of its steps, for `strandline check`, and has lines found that grow.

Each process appends lines of JSON to a file of its own in the recording. Reading costs time in a large
process, so that in the long run at most a tenth of the time goes into it, and a file stays small: when it
has many lines, only each second step is noted from then on, then each fourth.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import sys
import time
from typing import Any, Dict, List, Optional

from . import _descriptors, _folder, _hook, _steps

_FOLDER = "levels"
_ASKED = "ask"  # a file, a byte for each time that lines are asked for
_LINES = 2048  # after which half as many steps are noted
_FREE = 1.0  # seconds of this thread's own time that are not weighed
_SHARE = 0.1  # of all time, beyond


class Levels:
    """The steps of one process."""

    def __init__(self, recording: _folder.Recording, steps: str) -> None:
        self.recording = recording
        self.steps = steps
        self.began = time.monotonic()
        self.growing: Any = None
        self.looking = False  # a period has ended
        self.forget()
        atexit.register(self.end)

    def forget(self) -> None:
        """Start over, as in a child that was forked."""
        self.pid = os.getpid()
        self.file: Optional[_descriptors.Held] = None
        self.n = 0
        self.last: Dict[str, Any] = {}  # that was noted
        self.before = 0  # how often lines had been asked for at the first step: what grew then need not be what leaks
        self.own = False
        self.every = 1
        self.lines = 0
        self.spent = 0.0
        if self.growing is not None:
            self.growing.end()
        self.growing = None

    def attach(self, torch: Any) -> None:
        """Count steps of PyTorch: of its optimizers, or of an annotation."""
        kind, _, name = self.steps.partition(":")
        if kind in ("auto", "optimizer"):
            _steps.of_optimizers(lambda n: self.step("optimizer"))
        elif kind == "annotation":
            _steps.of_annotation(torch, name, lambda n: self.step("annotation"))

    def attach_function(self, _: Any) -> None:
        """Count the calls of the function that was named."""
        _steps.of_function(self.steps, lambda n: self.step("function"))

    def step(self, by: str) -> None:
        """A step ends: note what the process holds. Never raises."""
        try:
            if os.getpid() != self.pid:
                self.forget()
            if by == "call" and not self.own:
                self.own, self.n = True, 0
            if self.own and by != "call" or by == "call" and self.steps not in ("auto", "call"):
                return
            self.n += 1
            if self.n == 1:
                self.before = self.asked()
                recorder: Any = sys.modules.get(__name__.replace("_levels", "_recorder"))
                if recorder is not None:
                    recorder.stepped_without()
            own = self.growing.step(self.n) if self.growing is not None else 0
            if self.n % self.every or self.spent > max(_FREE, _SHARE * (time.monotonic() - self.began)):
                return
            now = time.thread_time()
            self.note(by, own)
            self.trace()
            self.spent += time.thread_time() - now
        except Exception as e:
            self.tell("its steps are not noted", e)

    def end(self) -> None:
        """The process ends: note how many steps there were, if the last were not noted. Never raises."""
        with contextlib.suppress(Exception):
            if os.getpid() == self.pid and self.file is not None and self.file.there() and self.last["step"] < self.n:
                self.file.write((json.dumps({**self.last, "step": self.n, "time": round(time.time(), 6), "host": None, "heap": None}) + "\n").encode())

    def tell(self, what: str, e: Exception) -> None:
        """Note once what is not known of this process, and why. Never raises."""
        with contextlib.suppress(Exception):
            from . import _journal

            _journal.note(self.recording, what, e)

    def trace(self) -> None:
        """Trace allocations from here on if that was asked for."""
        asked = self.asked()
        if asked > self.before:
            recorder: Any = sys.modules.get(__name__.replace("_levels", "_recorder"))
            if recorder is not None and self.traced().asked < asked:
                recorder.before_tracing()
            self.traced().begin(self.n, asked)

    def asked(self) -> int:
        """How often lines were asked for."""
        try:
            return self.recording.journals().status(_ASKED).st_size
        except OSError:
            return 0

    def folder(self) -> _folder.Folder:
        """The folder of levels, which is to be closed. Raises OSError."""
        journals = self.recording.journals()
        journals.make(_FOLDER)
        return journals.folder(_FOLDER)

    def traced(self) -> Any:
        """What traces the allocations of this process."""
        if self.growing is None:
            from . import _growing

            self.growing = _growing.Growing(self.folder, f"{self.pid}.lines", self.tell, self.began)
        return self.growing

    def period(self, _: int, frame: Any) -> None:
        """Handle the signal that a period has ended, which is sent to processes that look as if they leaked. Never raises."""
        if self.looking:  # the next one came meanwhile
            return
        self.looking = True
        try:
            if os.getpid() != self.pid:
                self.forget()
            if self.n == 0:
                self.traced().period(self.asked(), heap() or host() or 0, frame)
        except Exception as e:
            self.tell("its allocations are not traced", e)
        self.looking = False

    def note(self, by: str, own: int) -> None:
        if self.file is None or not self.file.there():  # the program closed it
            with self.folder() as folder:
                self.file = folder.append(f"{self.pid}-{time.time_ns()}.jsonl")
        line: Dict[str, Any] = {"pid": self.pid, "by": by, "step": self.n, "time": round(time.time(), 6), "host": host(), "heap": heap()}
        for name in ("host", "heap"):
            if own and line[name] is not None:
                line[name] -= own
        if self.lines == 0:
            line.update(versions())
        on = devices()
        if on:
            line["devices"] = on
        self.file.write((json.dumps(line) + "\n").encode())
        self.last = line
        self.lines += 1
        if self.lines % _LINES == 0:
            self.every *= 2


def versions() -> Dict[str, str]:
    """The versions of Python and of the C library, as far as they are known."""
    out = {"python": "%d.%d.%d" % sys.version_info[:3]}
    try:
        out["libc"] = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, OSError, ValueError):
        pass  # another C library
    return out


def host() -> Optional[int]:
    """The bytes of memory not backed by a file: anonymous, shared or swapped out. None where that is unknown."""
    try:
        with open("/proc/self/smaps_rollup", "rb") as f:
            text = f.read()
        parts = (b"Anonymous:", b"Pss_Shmem:", b"Swap:")
    except OSError:
        try:
            with open("/proc/self/status", "rb") as f:
                text = f.read()
        except OSError:
            return None
        parts = (b"RssAnon:", b"RssShmem:", b"VmSwap:")
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith(parts)) << 10


_SMALL = 64  # bytes of a small object of Python, about
_heap: Any = None  # the function, False where there is none


def heap() -> Optional[int]:
    """The bytes that are in use of what malloc manages, and of Python's small objects. None where that is unknown.

    Unlike the memory that the kernel counts, it has no part in what allocators keep for later.
    """
    global _heap
    if _heap is None:
        _heap = _mallinfo() or False
    if not _heap:
        return None
    m = _heap()
    return int(m.uordblks) + int(m.hblkhd) + _SMALL * sys.getallocatedblocks()


def _mallinfo() -> Any:
    """The function mallinfo2 of glibc 2.33 and newer, or None."""
    try:
        import ctypes

        class Info(ctypes.Structure):
            _fields_ = [
                (name, ctypes.c_size_t)
                for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
            ]

        function = ctypes.CDLL(None).mallinfo2
        function.restype = Info
        return function
    except (ImportError, OSError, AttributeError):
        return None


def devices() -> List[Dict[str, int]]:
    """What PyTorch's allocator has of each device on which it reserved memory."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return []
    out = []
    for i in range(cuda.device_count()):
        s = cuda.memory_stats(i)
        if s.get("reserved_bytes.all.peak"):
            out.append({
                "device": i,
                "allocated_bytes": s.get("allocated_bytes.all.current"),
                "reserved_bytes": s.get("reserved_bytes.all.current"),
                "peak_reserved_bytes": s.get("reserved_bytes.all.peak"),
            })  # fmt: skip
    return out


_levels: Optional[Levels] = None


def install() -> None:
    """Note steps, in a process that `strandline check` started."""
    global _levels
    given = json.loads(os.environ["STRANDLINE_RECORD"])
    _levels = Levels(_folder.of(given["dir"], given["session"]), given["levels"])
    atexit.register(_at_exit, _levels.recording)
    _listen(_levels.period)
    module, colon, _ = _levels.steps.partition(":")
    if colon and module in sys.modules:
        _levels.attach_function(None)
    elif colon and module != "annotation":
        _hook.when_imported(module, _levels.attach_function)


def _at_exit(recording: _folder.Recording) -> None:
    """Note that the program ends by a MemoryError, which Python has printed by now. Never raises."""
    try:
        if issubclass(getattr(sys, "last_type", None) or object, MemoryError):
            from . import _journal

            _journal.shared(recording).append({"event": "memory_error"})
    except Exception:
        pass


def _listen(handler: Any) -> None:
    """Have the signal of periods handled, unless the program has a use for it already.

    It is one that does nothing without a handler: the handlers are gone when Python ends, and in a program that replaces it.
    """
    try:
        signal: Any = importlib.import_module("_signal")  # signal itself takes longer to import
        number = signal.SIGURG
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, handler)
            signal.siginterrupt(number, False)
    except (ImportError, AttributeError, ValueError, OSError):
        pass  # without this signal, or not in the main thread


def attach(torch: Any) -> None:
    """Called once torch is imported."""
    if _levels is not None:
        _levels.attach(torch)


def own_step() -> None:
    """See strandline.step."""
    if _levels is not None:
        _levels.step("call")
