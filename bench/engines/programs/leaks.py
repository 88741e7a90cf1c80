"""A host leak of one kind, for the comparison of tools: leaks.py KIND STEPS

KIND is clean, objects, native, library or maps. LEAKS_LIBRARY is the library, as peers.py builds it. It prints the processor time of its steps."""
import ctypes
import mmap
import os
import sys
import time

libc = ctypes.CDLL("libc.so.6")
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
compiled = ctypes.CDLL(os.environ.get("LEAKS_LIBRARY"))
kept = []


def objects(i):
    kept.append([str(i + k) for k in range(1200)])  # LINE objects


def native(i):
    ctypes.memset(libc.malloc(64 << 10), 1, 64 << 10)  # LINE native


def library(i):
    compiled.keep(64 << 10)  # LINE library


def maps(i):
    m = mmap.mmap(-1, 64 << 10)  # LINE maps
    m.write(b"x" * (64 << 10))
    kept.append(m)


def clean(i):
    kept[:] = [[str(i + k) for k in range(1200)]]


def main(kind, steps):
    began = time.process_time()
    for i in range(steps):
        globals()[kind](i)
        time.sleep(0.01)
    print("cpu", time.process_time() - began, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
