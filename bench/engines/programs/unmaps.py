"""Starts UCX, unmaps buffers, and prints the bytes that stay of each: unmaps.py TIMES"""
import mmap
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "cases", "programs"))
from unmap import start_ucx  # noqa: E402


def anonymous():
    with open("/proc/self/smaps_rollup") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("Anonymous:"))


def unmap(times):
    for _ in range(times):
        mmap.mmap(-1, 65536).close()


def main():
    times = int(sys.argv[1])
    context = start_ucx()
    unmap(1000)
    before = anonymous()
    unmap(times)
    print(f"{(anonymous() - before) / times:.0f} bytes a munmap", flush=True)
    os._exit(0 if context else 1)


main()
