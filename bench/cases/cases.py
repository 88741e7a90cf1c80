"""The programs that run.py tries, and the cause of each one's growth."""
import dataclasses

# The words by which a finding names a cause: in its kind, its title, its details or its remedies.
GRAPH = r"autograd.*\.detach\(\)"
UCX = r"UCX_MEM_MMAP_HOOK_MODE=none"


@dataclasses.dataclass
class Case:
    name: str
    program: str
    cause: str = ""  # a pattern; empty where nothing leaks
    line: bool = False  # whether the line that is marked LINE is to be named
    needs: str = ""  # torch, device or ucx
    soak: bool = False  # the program is a server
    beside: bool = False  # what grows is not PyTorch's, so that record cannot see it


CASES = [
    Case("sum", "accumulate.py value cpu {seconds}", GRAPH, line=True, needs="torch"),
    Case("sum-scalar", "accumulate.py scalar cpu {seconds}", GRAPH, line=True, needs="torch"),
    Case("sum-detached", "accumulate.py detached cpu {seconds}", needs="torch"),
    Case("sum-device", "accumulate.py value cuda {seconds}", GRAPH, line=True, needs="device"),
    Case("meter", "meter.py cpu {seconds}", GRAPH, line=True, needs="torch"),
    Case("meter-device", "meter.py cuda {seconds}", GRAPH, line=True, needs="device"),
    Case("tensors", "tensors.py {seconds}", r"CACHE", line=True, needs="torch"),
    Case("steady", "steady.py cpu {seconds}", needs="torch"),
    Case("steady-device", "steady.py cuda {seconds}", needs="device"),
    Case("prompts", "prompts.py {seconds}", needs="device"),
    Case("driver", "driver.py {seconds}", "outside PyTorch|PyTorch does not know of it", needs="device", beside=True),
    Case("unmap", "unmap.py {seconds}", UCX, needs="ucx"),
    Case("objects", "objects.py {seconds}", "Python objects|references", line=True),
    Case("maps", "maps.py {seconds}", "unmap|mapping|free these allocations", line=True),
    Case("heap", "heap.py {seconds}", "heap of malloc|heaptrack"),
    Case("threads", "threads.py {seconds}", "thread"),
    Case("server", "server.py steady {port}", soak=True),
    Case("server-objects", "server.py objects {port}", "Python objects|references", line=True, soak=True),
    Case("server-unmap", "server.py unmap {port}", UCX, needs="ucx", soak=True),
    Case("server-graph", "server.py graph {port}", GRAPH, needs="torch", soak=True),
]
