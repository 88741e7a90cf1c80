"""Starts UCX, as NIXL and MPI do, and then maps and unmaps buffers, as a decoder does."""
import ctypes
import mmap
import os
import sys
import time


def start_ucx():
    ucp = ctypes.CDLL("libucp.so.0", mode=ctypes.RTLD_GLOBAL)
    major, minor, release = ctypes.c_uint(), ctypes.c_uint(), ctypes.c_uint()
    ucp.ucp_get_version(ctypes.byref(major), ctypes.byref(minor), ctypes.byref(release))
    config, context = ctypes.c_void_p(), ctypes.c_void_p()
    assert ucp.ucp_config_read(None, None, ctypes.byref(config)) == 0
    parameters = (ctypes.c_uint64 * 40)(1, 3)  # the field of features: tags and remote memory
    assert ucp.ucp_init_version(major, minor, ctypes.byref(parameters), config, ctypes.byref(context)) == 0
    return context


def decode():
    for _ in range(200):
        mmap.mmap(-1, 65536).close()
    time.sleep(0.001)


def main():
    context = start_ucx()
    end = time.time() + float(sys.argv[1])
    while time.time() < end:
        decode()
    os._exit(0 if context else 1)


if __name__ == "__main__":
    main()
