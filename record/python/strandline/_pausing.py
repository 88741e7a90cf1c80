"""What pausable.py computes from the library's status, and who holds a device."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Dict, Iterable, List, Optional, Tuple
from urllib.parse import unquote


def parse(text: str) -> Dict[str, Any]:
    """The status that the library writes in lines, whose form pausable/c/status.c has."""
    out: Dict[str, Any] = {"tags": [], "devices": []}
    for line in text.splitlines():
        word, *rest = line.split(" ")
        if word == "tag":
            name, size, blocks, state, backup, kept, held = rest
            out["tags"].append(
                {"tag": unquote(name), "bytes": int(size), "blocks": int(blocks), "state": state, "backup": backup,
                 "backup_bytes": int(kept), "held_bytes": int(held), "devices": []}
            )
        elif word == "part":
            names = ("device", "bytes", "held_bytes", "to_copy_bytes", "backup_bytes")
            out["tags"][-1]["devices"].append(dict(zip(names, map(int, rest[1:]))))
        elif word == "device":
            index, free, total = map(int, rest)
            out["devices"].append({"device": index, "free_bytes": free, "total_bytes": total})
        elif word == "doing":
            out["doing"] = {"do": rest[0], "tag": _tag(rest[1]), "bytes": int(rest[2]), "done_bytes": int(rest[3])}
        elif word == "did":
            out["did"] = {"do": rest[0], "tag": _tag(rest[1]), "copied_bytes": int(rest[2]), "seconds": int(rest[3]) / 1e9,
                          "succeeded": rest[4] == "0", "count": int(rest[5])}
        elif word == "freed":
            out["not_freed_bytes"] = int(rest[1])
        elif word in ("kept", "margin"):
            out[{"kept": "pinned_pool_bytes", "margin": "margin_bytes"}[word]] = int(rest[0])
    return out


def size(n: float) -> str:
    """Bytes as people read them, with three digits: "1.5 GiB"."""
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while n >= 1023.5 and len(units) > 1:  # more would be rounded to 1024
        n /= 1024
        del units[0]
    digits = 0 if n >= 99.95 or units[0] == "B" else 1 if n >= 9.995 else 2
    text = f"{n:.{digits}f}"
    return (text.rstrip("0").rstrip(".") if digits else text) + " " + units[0]


def _tag(name: str) -> Optional[str]:
    return None if name == "-" else unquote(name)


def plan(status: Dict[str, Any], steps: Iterable[Tuple[str, Optional[str]]]) -> Dict[str, Any]:
    """What pauses and resumes would do in an order, by a status that is changed.

    A step that does not fit is counted as if it did, so that the peak is what the whole order needs. The host's
    memory is what backups hold that are not in files; a step is None where the peak is before the first.
    """
    free = {d["device"]: d["free_bytes"] for d in status["devices"]}
    peaks: Dict[int, List[Any]] = {device: [n, None] for device, n in free.items()}  # least free, after which step
    host = sum(t["backup_bytes"] for t in status["tags"] if t["backup"] != "file")
    host_peak: List[Any] = [host, None]
    out: List[Dict[str, Any]] = []
    for i, (do, name) in enumerate(steps):
        tags = [t for t in status["tags"] if name in (None, t["tag"])]
        if do not in ("pause", "resume") or not (tags or name is None):
            raise ValueError(f"step {i} is neither a pause nor a resume: {do!r}" if tags or name is None else f"step {i}: there is no tag {name}")
        takes: Dict[int, int] = {}
        copies = 0
        for t in tags:
            for p in t["devices"]:
                holds = 0 if do == "pause" else p["bytes"]
                takes[p["device"]] = takes.get(p["device"], 0) + holds - p["held_bytes"]
                p["held_bytes"] = holds
                moved = p["to_copy_bytes"] if do == "pause" else p["backup_bytes"]
                copies += moved
                host += (moved if do == "pause" else -moved) if t["backup"] != "file" else 0
                _move(p, do)
        fits = all(n <= 0 or n <= free[d] - status.get("margin_bytes", 0) for d, n in takes.items())
        for d, n in takes.items():
            free[d] -= n
            if free[d] < peaks[d][0]:
                peaks[d] = [free[d], i]
        if host > host_peak[0]:
            host_peak = [host, i]
        out.append({"do": do, "tag": name, "copies_bytes": copies, "fits": fits,
                    "devices": [{"device": d, "takes_bytes": n, "free_bytes": free[d]} for d, n in sorted(takes.items())]})
    total = {d["device"]: d["total_bytes"] for d in status["devices"]}
    return {
        "fits": all(s["fits"] for s in out),
        "steps": out,
        "devices": [{"device": d, "total_bytes": total[d], "peak_bytes": total[d] - least, "peak_step": step} for d, (least, step) in peaks.items()],
        "host": {"peak_bytes": host_peak[0], "peak_step": host_peak[1]},
    }


def _move(part: Dict[str, int], do: str) -> None:
    """Moves contents into the backup of a part, or out of it."""
    to, of = ("backup_bytes", "to_copy_bytes") if do == "pause" else ("to_copy_bytes", "backup_bytes")
    part[to] += part[of]
    part[of] = 0


class _Process(ctypes.Structure):  # of nvmlDeviceGetComputeRunningProcesses_v3
    _fields_ = [("pid", ctypes.c_uint), ("bytes", ctypes.c_ulonglong), ("instances", ctypes.c_uint * 2)]


def holders(device: int) -> List[Dict[str, Any]]:
    """The processes that hold memory of a device: pid, name and bytes, the largest first, as the driver reports
    them. Empty where it does not."""
    try:
        nvml, cuda = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.CDLL("libcuda.so.1")
        handle, ordinal, bus = ctypes.c_void_p(), ctypes.c_int(), ctypes.create_string_buffer(64)
        if nvml.nvmlInit_v2() or cuda.cuDeviceGet(ctypes.byref(ordinal), device):
            return []
        try:
            if cuda.cuDeviceGetPCIBusId(bus, len(bus), ordinal) or nvml.nvmlDeviceGetHandleByPciBusId_v2(bus, ctypes.byref(handle)):
                return []
            n = ctypes.c_uint(256)
            found = (_Process * n.value)()
            if nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle, ctypes.byref(n), found):
                return []
        finally:
            nvml.nvmlShutdown()
    except (OSError, AttributeError):
        return []
    known = [p for p in found[: n.value] if p.bytes != 2**64 - 1]
    known.sort(key=lambda p: int(p.bytes), reverse=True)
    return [{"pid": p.pid, "name": _named(p.pid), "bytes": p.bytes} for p in known]


def _named(pid: int) -> str:
    """The name of a process; empty where it is of another container."""
    if pid == os.getpid():
        return "this process"
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip()
    except OSError:
        return ""
