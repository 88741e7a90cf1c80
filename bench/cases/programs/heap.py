"""Takes blocks from malloc and never frees them."""
import ctypes
import sys
import time

SECONDS = float(sys.argv[1])
libc = ctypes.CDLL("libc.so.6")
libc.malloc.restype = ctypes.c_void_p


def block():
    ctypes.memset(libc.malloc(2000), 1, 2000)


def main():
    end = time.time() + SECONDS
    while time.time() < end:
        for _ in range(40):
            block()
        time.sleep(0.005)


main()
