"""Records this process: switches PyTorch's history on, and writes snapshots of it.

PyTorch must be imported before anything happens. Where a device is initialized, that begins a recording: a callable
stands in PyTorch's own list of calls for that moment. A process that goes on without a device is recorded too: its
snapshots are empty, and what keeps its tensors is noted with them. Nothing here raises into the program.
"""

from __future__ import annotations

import _thread
import atexit
import collections
import gc
import os
import sys
import threading
import time
from typing import Any, Callable, Deque, Dict, List, Mapping, Optional

from . import _about, _control, _engine, _hook, _journal, _levels, _options, _reclaim, _snapshot, _steps, _store, _why

_STEP_WAIT = 5.0  # seconds that a snapshot of the schedule waits for the end of a step
_FREE = 4.0  # seconds of the processor that snapshots at steps may take, or half of the time that the steps did
_SHARE = 0.02  # of the time since the first step, which all may take with another one of the clock; half of a check's
_LOOK = 0.5  # seconds between two looks at what is reserved
_OOM_BURST = 3  # snapshots at out-of-memory, then one in _OOM_PAUSE seconds
_OOM_PAUSE = 60.0
_BACKWARD = 1.0  # seconds that a snapshot waits for the end of a backward pass
_PATIENCE = 10.0  # seconds that a snapshot waits for other processes where the program waits for it

_WITHOUT_DEVICE = 1.0  # seconds after which a process without a device is recorded
_BEFORE_DEVICE = 20.0  # the same on a machine with devices, which the process may initialize later

_given: Optional[_options.Options] = None
_torch: Any = None
_recorder: Optional[Recorder] = None
_beginning = threading.RLock()


def attach(torch: Any) -> None:
    """Called once torch is imported, in a process that `strandline record` started."""
    global _given
    if _given is None:
        _given = _options.Options.from_environment(os.environ)
    _wait_for_device(torch)


def _wait_for_device(torch: Any) -> None:
    """Begin when a device is initialized, or now if one is."""
    global _torch
    if _torch is not None or _given is None:
        return
    _torch = torch
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forked)
    if torch.cuda.is_initialized():
        _begin(True)
        return
    torch.cuda._lazy_call(_begin_on_device)
    _begin_later()


def _forked() -> None:
    """A child has neither the parent's threads nor, if the parent had one, its device."""
    global _recorder, _beginning
    _beginning = threading.RLock()
    r, _recorder = _recorder, None
    if r is not None:
        r.control.leave()
        r.journal.close()
    if r is None or not r.on_device:
        _begin_later()


def _begin_on_device() -> None:
    _begin(True)


def _begin_later() -> None:
    """Have a thread begin, unless a device is initialized by then."""
    _thread.start_new_thread(_begin_without, (_WITHOUT_DEVICE if _about.no_device(_torch) else _BEFORE_DEVICE,))


def _begin_without(seconds: float) -> None:
    """Begin if no device is initialized in so many seconds. A process that loads data for another is left alone."""
    try:
        time.sleep(seconds)
        if not _torch.cuda.is_initialized() and not _about.loads_data():
            _begin(False)
    except Exception:  # Python ends
        pass


def _begin(on_device: bool) -> None:
    global _recorder
    with _beginning:
        if _given is None:
            return
        try:
            if _recorder is None:
                r = Recorder(_torch, _given)
                r.begin(on_device)
                _recorder = r
            elif on_device and not _recorder.on_device:
                _recorder.begin_on_device()
        except Exception as e:
            _journal.note(_given.recording(), "recording could not begin", e)


def start(out: Optional[str], given: Mapping[str, Any]) -> None:
    """See strandline.start."""
    global _given
    if _given is None:
        o = _options.Options.from_call(os.path.abspath(out or time.strftime("strandline-%Y%m%d-%H%M%S")), given)
        _journal.manifest(o.dir)
        _given = o
    torch = sys.modules.get("torch")
    if torch is not None:
        _wait_for_device(torch)
        if _recorder is None and torch.cuda.is_initialized():  # again, after stop
            _begin(True)
    else:
        _hook.when_imported("torch", attach)


def current() -> Optional[Recorder]:
    """The recorder of this process, once it has begun."""
    return _recorder


def stepped_without() -> None:
    """A step has ended without a device: the process will not initialize one. Steps may be over before the thread begins."""
    if _torch is not None and _recorder is None and not _torch.cuda.is_initialized() and not _about.loads_data():
        _begin(False)


def before_tracing() -> None:
    """Look who keeps tensors before Python traces allocations, as there is no look meanwhile."""
    if _recorder is not None and not _tracing():
        _recorder.take("step")


def stop() -> None:
    """See strandline.stop."""
    global _given, _recorder
    r, _given, _recorder = _recorder, None, None
    if r is not None:
        r.end(None)


class Taken:
    """A snapshot that is to be written."""

    def __init__(self, reason: str, step: Optional[int], snapshot: Mapping[str, Any], seconds: float) -> None:
        self.reason = reason
        self.step = step
        self.snapshot = snapshot
        self.when = time.time()
        self.seconds = seconds  # that the program may have waited
        self.held_by: Any = None
        self.devices: List[Dict[str, int]] = []
        # Bytes of main memory: in use, unless that means to import what the program has not.
        self.host = ("ctypes" in sys.modules and _levels.heap()) or _levels.host()
        self.path: Optional[str] = None
        self.failed: Optional[str] = None
        self.done = threading.Event()


class Recorder:
    """The recording of one process."""

    def __init__(self, torch: Any, options: _options.Options) -> None:
        self.torch = torch
        self.options = options
        self.pid = os.getpid()
        self.role = _about.role()
        self.rank = _about.rank(torch)
        rank = "" if self.rank is None else f"_rank{self.rank}"
        self.recording = options.recording()
        self.store = _store.Store(self.recording, f"{self.role}{rank}_pid{self.pid}", options.max_files, options.max_bytes)
        self.journal = _journal.Journal(self.recording, f"pid{self.pid}-{time.time_ns()}.jsonl")
        self.lock = threading.RLock()  # one snapshot is taken at a time; a signal handler may want one too
        self.queue: Deque[Taken] = collections.deque()
        self.writing = threading.Lock()
        self.holders = _holders(torch)
        self.steps = 0
        self.own_steps = False
        self.next_step = 5 if options.levels else sys.maxsize if options.every_seconds or options.every_steps else 2
        self.stepping = float("inf")  # time.monotonic() of the first step
        self.at_steps = 0  # snapshots that the schedule took at steps
        self.paused = 0.0  # seconds of the processor that these took
        self.last_step = float("-inf")  # time.monotonic()
        self.due: Optional[str] = None  # the reason of a snapshot that waits for the end of a step
        self.due_until = 0.0
        self.dumps = 0
        self.ooms = 0
        self.last_oom = 0.0
        self.above = False
        self.reclaims = 0
        self.reclaimed_at: List[int] = []  # what was reserved after that, by device
        self.on_device = False
        self.stopped = False
        self.ended = False  # the last snapshot is taken
        # Between two snapshots of the schedule; the time doubles, so that short programs have a series too.
        self.longest = options.every_seconds or (0.0 if options.every_steps else options.most_seconds)
        self.between, self.next_at = 0.0, float("inf")
        self.reclaim_at = time.monotonic() + options.reclaim_seconds if options.reclaim_seconds else float("inf")
        self.removes: List[Callable[[], None]] = []
        self.control = _control.Control(self.answer, self.unheard)
        self.thread = threading.Thread(target=self.run, name="strandline", daemon=True)

    # How it begins and ends.

    def begin(self, on_device: bool) -> None:
        """Switch the history on, and start the thread that writes."""
        self.journal.open()
        self.schedule()
        arguments = self.begin_on_device() if on_device else {}
        atexit.register(self.at_exit)
        util = sys.modules.get("multiprocessing.util")
        if util is not None:  # whose children do not run atexit before CPython 3.13
            util.Finalize(None, self.at_exit, exitpriority=100)
        if self.control.taken_by is not None:
            self.journal.note(f"{self.control.taken_by} has taken the name of the recorder's socket, which is found by another one")
        self.note({"event": "recording", "arguments": arguments, "role": self.role, "rank": self.rank, "command": _about.command()})
        try:
            self.count_steps()
        except Exception as e:
            self.journal.note("steps are not counted", e)
        try:
            if self.options.reclaim_after:
                self.removes += _steps.of_annotation(self.torch, self.options.reclaim_after, lambda _: self.reclaim_now("after"))
        except Exception as e:
            self.journal.note(f"nothing is reclaimed after {self.options.reclaim_after}", e)
        self.thread.start()

    def begin_on_device(self) -> Dict[str, Any]:
        """Switch the history of devices on, and return by which arguments."""
        arguments = _snapshot.record_history(self.torch, self.options)
        self.schedule()
        attach = getattr(self.torch._C, "_cuda_attach_out_of_memory_observer", None)
        if attach is not None:
            attach(self.out_of_memory)
        self.on_device = True
        return arguments

    def schedule(self) -> None:
        """Begin with the first times of the schedule: before a device is initialized, programs import and load."""
        if self.longest:
            self.between = min(self.options.first_seconds, self.longest)
            self.next_at = time.monotonic() + self.between

    def note(self, event: Mapping[str, Any]) -> None:
        """Append to this process's journal; the program does not see a disk that refuses."""
        try:
            self.journal.append(event)
        except OSError:
            pass

    def unheard(self) -> None:
        """The program has closed the sockets of the recorder."""
        self.journal.note("requests, such as those of strandline snapshot, are not answered: the program closed the recorder's sockets")

    def count_steps(self) -> None:
        """Notice the steps of the program."""
        kind, _, name = self.options.steps.partition(":")
        if not kind:
            self.removes += _steps.of_optimizers(self.stepped_unless_own)
        elif kind == "annotation":
            self.removes += _steps.of_annotation(self.torch, name, self.stepped_unless_own)
        elif kind in sys.modules:
            self.removes += _steps.of_function(self.options.steps, self.stepped_unless_own)
        else:
            _hook.when_imported(kind, lambda _: self.count_steps())

    def at_exit(self) -> None:
        """Write the last snapshot."""
        if os.getpid() == self.pid:
            self.end("exit")

    def end(self, reason: Optional[str]) -> None:
        """Stop; with a reason, after a last snapshot."""
        if self.stopped:
            return
        try:
            if reason is not None:
                self.take(reason)
            self.stopped = True
            self.control.wake()
            self.thread.join(timeout=120)
            for remove in self.removes:
                remove()
            if reason is None and self.on_device:
                old = "trace_alloc_max_entries" in _snapshot.parameters(self.torch)
                self.torch.cuda.memory._record_memory_history(False if old else None)
            self.note({"event": "end", "steps": self.steps})
        except Exception as e:
            self.journal.note("the end of the recording failed", e)

    # When snapshots are taken.

    def run(self) -> None:
        """The thread: watches the clock, answers requests, and writes what was taken."""
        try:
            known: Optional[bool] = None
            while not self.stopped:
                if known != self.on_device:
                    known = self.on_device
                    self.note({"event": "process", **_about.process(self.torch, known)})
                self.control.wait(self.timeout())
                self.look_at_clock()
                self.look_at_lines()
                self.write_waiting()
            self.write_waiting()
        except Exception as e:
            self.journal.note("the recorder failed", e)
        finally:
            self.control.leave()

    def timeout(self) -> float:
        """The seconds until there is something to do."""
        o = self.options
        look = _LOOK if o.above or o.reclaim_above else 60.0
        until = min(self.next_at, self.reclaim_at, self.due_until if self.due else float("inf"))
        return min(until - time.monotonic(), look)

    def look_at_clock(self) -> None:
        """Take the snapshots of the schedule."""
        now = time.monotonic()
        if self.due is not None and now >= self.due_until:
            self.due = None
            self.take("schedule")
        if now >= self.next_at:
            if self.at_step_or_now("schedule"):
                self.between = min(self.between * 2, self.longest)
            ended = time.monotonic()  # the program has at least as long to itself as that took
            self.next_at = max(self.next_at + self.between, ended + (ended - now))
        if now >= self.reclaim_at:
            self.reclaim_now("time")
            self.reclaim_at = time.monotonic() + self.options.reclaim_seconds

    def at_step_or_now(self, reason: str) -> bool:
        """Take a snapshot, where steps are seen at the end of one, as all show the same moment then; False without time."""
        if not _tracing() and time.monotonic() - self.last_step > _STEP_WAIT:
            self.take(reason)
        elif not _tracing() and self.due is None:
            # All that were taken at steps and one more may take a share of the time.
            taking = 0 if self.options.every_seconds else self.paused * (1 + 1 / max(self.at_steps, 1))
            if taking > (0.5 if self.options.levels else _SHARE) * (self.last_step - self.stepping):
                return False
            self.due, self.due_until = reason, time.monotonic() + _STEP_WAIT
        return True

    def look_at_lines(self) -> None:
        """Do what is to be done when reserved memory crosses a line upwards."""
        o = self.options
        if not o.above and not o.reclaim_above:
            return
        if o.above:
            above = max(self.reserved(), default=0) >= o.above
            if above and not self.above:
                self.take("above")
            self.above = above
        if time.monotonic() - self.last_step > _STEP_WAIT:
            self.reclaim_above()

    def reserved(self) -> List[int]:
        """The bytes reserved on each device."""
        if not self.on_device:
            return []
        return [int(self.torch.cuda.memory_reserved(i)) for i in range(self.torch.cuda.device_count())]

    def reclaim_above(self) -> None:
        """Reclaim above the line of the options, unless nothing has changed since that was done."""
        line = self.options.reclaim_above
        if not line:
            return
        reserved = self.reserved()
        if max(reserved, default=0) >= line and reserved != self.reclaimed_at:
            self.reclaim_now("above")
            self.reclaimed_at = self.reserved()

    def stepped_unless_own(self, n: int) -> None:
        if not self.own_steps:
            self.stepped(n)

    def own_step(self) -> None:
        """The program reports the end of a step."""
        self.own_steps = True
        try:
            self.stepped(self.steps + 1)
        except Exception as e:
            self.journal.note(f"step {self.steps}", e)

    def stepped(self, n: int) -> None:
        """In the program's own thread, at the end of a step."""
        self.steps = n
        self.last_step = time.monotonic()
        self.stepping = min(self.stepping, self.last_step)
        o = self.options
        if self.due is not None:
            reason, self.due = self.due, None
            self.take_at_step(reason)
        elif o.every_steps and n % o.every_steps == 0:
            self.take("step")
        elif n >= self.next_step and not self.queue and not _tracing() and self.paused <= max(_FREE, (self.last_step - self.stepping) / 2):
            self.next_step = n + (max(n // 2, 5) if o.levels else n)
            self.take_at_step("step")
        if o.reclaim_steps and n % o.reclaim_steps == 0:
            self.reclaim_now("step")
        self.reclaim_above()

    def take_at_step(self, reason: str) -> None:
        """Take a snapshot of the schedule, and count its time."""
        began = time.thread_time()
        self.take(reason)
        self.at_steps += 1
        self.paused += time.thread_time() - began

    def out_of_memory(self, device: int, request: int, total: int, free: int) -> None:
        """Called by the allocator, before it raises."""
        now = time.monotonic()
        if self.stopped or os.getpid() != self.pid:
            return
        self.ooms += 1
        try:
            self.note({"event": "oom", "device": device, "request_bytes": request, "device_total_bytes": total, "device_free_bytes": free})
            if self.ooms > _OOM_BURST and now - self.last_oom < _OOM_PAUSE:
                return
            self.last_oom = now
            taken = self.take("oom", queued=False)
            if taken is not None:  # written now: the program may end before the thread's turn
                self.write(taken, _PATIENCE)
        except Exception:
            pass

    # How they are taken and written.

    def now(self, reason: str) -> Taken:
        """Take and write a snapshot. It has a path, or the reason why not."""
        taken = self.take(reason, queued=False)
        if taken is None:
            taken = Taken(reason, None, {}, 0.0)
            taken.failed = "the snapshot could not be taken; the recording's notes have the reason"
        else:
            self.write(taken, _PATIENCE)
        return taken

    def take(self, reason: str, queued: bool = True) -> Optional[Taken]:
        """Copy the allocator's state and history, and leave the writing to the thread."""
        if queued and self.queue and reason not in ("exit", "above"):
            self.note({"event": "skipped", "reason": reason})  # the one before is not written yet
            return None
        collecting = gc.isenabled()
        try:
            with self.lock:
                if self.ended:
                    return None
                self.ended = reason == "exit"
                if threading.current_thread() is self.thread:  # what is taken amid a backward pass has no gradients' holders
                    _engine.wait(_BACKWARD)
                before = time.monotonic()
                gc.disable()  # what it frees after the snapshot would look as if nobody kept it
                snapshot = _snapshot.take(self.torch) if self.on_device else _snapshot.empty()
                held_by = self.holders.held_by(snapshot, self.ended) if self.holders is not None else None
                if not self.on_device and queued and not (held_by and (held_by.get("graphs") or held_by.get("host"))):
                    return None  # there is no tensor
                taken = Taken(reason, self.steps or None, snapshot, time.monotonic() - before)
                taken.held_by = held_by
                taken.devices = devices(self.torch, snapshot)
        except Exception as e:
            self.journal.note(f"no snapshot ({reason})", e)
            return None
        finally:
            if collecting:
                gc.enable()
        if queued:
            self.queue.append(taken)
            self.control.wake()
        return taken

    def write_waiting(self) -> None:
        while self.queue:
            self.write(self.queue[0], _PATIENCE if self.stopped else 60.0)
            self.queue.popleft()

    def write(self, taken: Taken, patience: float) -> None:
        """Write a snapshot, and note it."""
        try:
            before = time.monotonic()
            with self.writing:
                path, size = self.store.write(taken.snapshot, taken.when, taken.reason in ("oom", "call", "signal", "above"), patience)
            taken.path = os.path.join(self.options.dir, path)
            self.dumps += 1
            event = {
                "event": "dump",
                "file": path,
                "reason": taken.reason,
                "step": taken.step,
                "taken": round(taken.when, 6),
                "bytes": size,
                "events": sum(len(t) for t in taken.snapshot.get("device_traces", [])),
                "devices": taken.devices,
                "host_bytes": taken.host,
                "pause_seconds": round(taken.seconds, 6),
                "write_seconds": round(time.monotonic() - before, 6),
            }
            if taken.held_by is not None:
                event["held_by"] = taken.held_by
            self.note(event)
        except Exception as e:
            taken.failed = _why.of(e)
            self.journal.note(f"a snapshot ({taken.reason}) was not written", e)
        finally:
            taken.done.set()

    # What others ask for.

    def answer(self, request: Mapping[str, Any]) -> Dict[str, Any]:
        """Answer a request of the control socket."""
        do = request.get("do")
        if do == "snapshot":
            taken = self.now(str(request.get("reason") or "call"))
            return {"path": taken.path} if taken.path else {"error": taken.failed}
        if do == "status":
            return {"pid": self.pid, "role": self.role, "rank": self.rank, "steps": self.steps, "dumps": self.dumps, "folder": self.options.dir}
        if do == "stats":
            return self.stats()
        if do == "reclaim":
            return self.reclaim("call")
        raise ValueError(f"unknown request {do!r}")

    def stats(self) -> Dict[str, Any]:
        """The allocator's figures, by device."""
        out = []
        for i in range(self.torch.cuda.device_count() if self.on_device else 0):
            s = self.torch.cuda.memory_stats(i)
            if not s.get("reserved_bytes.all.peak"):
                continue
            out.append(
                {
                    "device": i,
                    "allocated_bytes": s.get("allocated_bytes.all.current"),
                    "active_bytes": s.get("active_bytes.all.current"),
                    "reserved_bytes": s.get("reserved_bytes.all.current"),
                    "peak_allocated_bytes": s.get("allocated_bytes.all.peak"),
                    "peak_reserved_bytes": s.get("reserved_bytes.all.peak"),
                    "retries": s.get("num_alloc_retries"),
                    "ooms": s.get("num_ooms"),
                }
            )
        return {"time": round(time.time(), 6), "pid": self.pid, "steps": self.steps, "devices": out}

    def reclaim_now(self, reason: str) -> None:
        """Reclaim by the policy of the options."""
        try:
            self.reclaim(reason)
        except Exception as e:  # the program captures a graph, for one
            self.journal.note(f"nothing was reclaimed ({reason})", e)

    def reclaim(self, reason: str) -> Dict[str, Any]:
        """Give memory back, and note what that brought."""
        if not self.on_device:
            raise RuntimeError("the process has initialized no device")
        out = _reclaim.reclaim(self.torch)
        self.reclaims += 1
        self.note({"event": "reclaim", "reason": reason, "step": self.steps or None, **out})
        return out


def devices(torch: Any, snapshot: Mapping[str, Any]) -> List[Dict[str, int]]:
    """What is allocated and reserved on each device, in bytes, and what all processes use of it."""
    sums: Dict[int, Dict[str, int]] = {}
    for s in snapshot.get("segments", []):
        d = sums.setdefault(s["device"], {"device": s["device"], "allocated_bytes": 0, "reserved_bytes": 0})
        d["allocated_bytes"] += s["allocated_size"]
        d["reserved_bytes"] += s["total_size"]
    for i, d in sums.items():
        try:
            free, total = torch.cuda.mem_get_info(i)
            d["used_bytes"] = int(total) - int(free)
        except Exception:  # a driver that does not tell
            pass
    return [sums[i] for i in sorted(sums)]


def _tracing() -> bool:
    """Whether Python traces allocations: a look for holders takes ten times as long then, and would be cut short."""
    tracemalloc = sys.modules.get("tracemalloc")
    return tracemalloc is not None and bool(tracemalloc.is_tracing())


def _holders(torch: Any) -> Any:
    """What finds who keeps the tensors of a snapshot, in modules that have it."""
    try:
        from . import _holders as module
    except ImportError:
        return None
    return module.Holders(torch)
