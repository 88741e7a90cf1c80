"""strandline.pausable under the name of torch_memory_saver, for programs that import that."""

from strandline.pausable import Failure, MemorySaver, NotEnoughMemory, configure_subprocess, torch_memory_saver

__all__ = ["Failure", "MemorySaver", "NotEnoughMemory", "configure_subprocess", "torch_memory_saver"]
