"""What a process is: its role, rank, command line and devices."""

from __future__ import annotations

import os
import re
import sys
from typing import Any, Dict, List, Optional

from . import _secret

_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
_LOCAL_RANKS = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
_WORLD_SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")


def command() -> str:
    """The command line, cut to a kilobyte, without the secrets in it."""
    try:
        with open("/proc/self/cmdline", "rb") as f:
            text = f.read(4096).rstrip(b"\0").decode("utf-8", "replace")
    except OSError:
        text = ""
    args = text.split("\0") if text else [sys.executable or "python", *getattr(sys, "argv", [])]
    return " ".join(_secret.args(args))[:1024]


def role(torch: Any = None) -> str:
    """A short name of what the process is for, fit for a file's name."""
    name = _title() or _worker() or _script() or "python"
    name = re.sub(r"(?i)(rank|pid)(?=[-_ =]?\d)", "", name)  # these stand in the file's name themselves
    name = re.sub(r"[^A-Za-z0-9.+-]+", "-", name).strip("-.")
    return name[:48] or "python"


def _title() -> str:
    """The title that a server gave itself, as in sglang::scheduler or ray::Worker.step."""
    found = re.match(r"\s*([A-Za-z0-9_]+::[^\s\[(]+)", command())
    return str(found[1]).replace("::", "-") if found else ""


def _worker() -> str:
    """The name that the program gave a process of multiprocessing."""
    process = sys.modules.get("multiprocessing.process")
    name = str(process.current_process().name) if process else "MainProcess"
    if name == "MainProcess":
        return ""
    if re.fullmatch(r"(Spawn|Fork|ForkServer)?(Pool)?(Process|Worker)-[\d:-]+", name):
        return _script() + "-child" if _script() else "child"
    return name


def _script() -> str:
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None and getattr(spec, "name", None):
        name = str(spec.name)
        return name[: -len(".__main__")] if name.endswith(".__main__") else name
    argv = getattr(sys, "argv", None) or [""]
    if argv[0] in ("", "-", "-c"):
        return ""
    name = os.path.splitext(os.path.basename(argv[0]))[0]
    if name == "__main__":
        name = os.path.basename(os.path.dirname(os.path.abspath(argv[0])))
    return name


def _number(names: Any) -> Optional[int]:
    for name in names:
        text = os.environ.get(name, "")
        if text.isdigit():
            return int(text)
    return None


def rank(torch: Any = None) -> Optional[int]:
    """The rank in the process group, else that of the launcher, else None."""
    try:
        dist = torch.distributed
        if dist.is_available() and dist.is_initialized():
            return int(dist.get_rank())
    except Exception:
        pass
    return _number(_RANKS)


def no_device(torch: Any) -> bool:
    """Report whether the process surely has no device. PyTorch is not asked, which would load the driver."""
    if getattr(torch.version, "cuda", None) is None and getattr(torch.version, "hip", None) is None:
        return True
    if any(os.environ.get(name, "0") in ("", "-1") for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")):
        return True
    return not any(map(os.path.exists, ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg", "/dev/nvhost-gpu", "/dev/nvgpu")))


def loads_data() -> bool:
    """Report whether the process is a worker of one of PyTorch's data loaders."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


def process(torch: Any, on_device: bool) -> Dict[str, Any]:
    """What the manifest states about this process, which has initialized a device or has not."""
    out: Dict[str, Any] = {
        "parent": os.getppid(),
        "rank": rank(torch),
        "local_rank": _number(_LOCAL_RANKS),
        "world_size": _number(_WORLD_SIZES),
        "role": role(torch),
        "command": command(),
        "python": "%d.%d.%d" % sys.version_info[:3],
        "torch": str(getattr(torch, "__version__", "")),
        "cuda": _try(lambda: torch.version.cuda),
        "allocator": _try(lambda: torch.cuda.memory.get_allocator_backend()),
        "allocator_conf": os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF"),
        "visible_devices": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "devices": _try(lambda: _devices(torch)) or [] if on_device else [],
    }
    return {k: v for k, v in out.items() if v is not None}


def _devices(torch: Any) -> List[Dict[str, Any]]:
    out = []
    for i in range(torch.cuda.device_count()):
        p = torch.cuda.get_device_properties(i)
        uuid = getattr(p, "uuid", None)
        out.append({"index": i, "name": p.name, "total_bytes": int(p.total_memory), **({"uuid": str(uuid)} if uuid else {})})
    return out


def _try(f: Any) -> Any:
    try:
        return f()
    except Exception:
        return None
