"""Holds pausable memory of three tags. Its first line is its id; then it does what each line of its input says,
and answers with a line. "take BYTES" and "give" occupy the device from elsewhere, "check" compares the contents,
"fork" makes a child, and "end" ends the child. "pause", "resume" and "log" are the library's. The child ends with the input of its parent, too.
With TAKEN in the environment the name of the library's socket is taken before."""

import ctypes
import os
import socket
import sys

lib = ctypes.CDLL(os.environ["STRANDLINE_MEM_LIBRARY"])
cuda = ctypes.CDLL("libcuda.so.1")
lib.pausable_malloc.restype = ctypes.c_void_p
lib.pausable_malloc.argtypes = [ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
NONE, PINNED, PAGEABLE = 0, 1, 2
SIZE = 3 << 20
held = []
if "TAKEN" in os.environ:
    taken_name = socket.socket(socket.AF_UNIX)
    taken_name.bind("\0strandline-mem/%d" % os.getpid())
for name, kind in ((b"weights", PINNED), (b"kv cache", NONE), (b"states", PAGEABLE)):
    assert not lib.pausable_region(name, kind, 0)
    for _ in range(2):
        at = lib.pausable_malloc(SIZE, 0, None)
        assert at
        held.append((at, kind, os.urandom(SIZE)))
        ctypes.memmove(at, held[-1][2], SIZE)
print(os.getpid(), flush=True)
taken = 0
for line in sys.stdin:
    word, *more = line.split()
    answer = "ok"
    if word == "take":
        taken += int(more[0])
        cuda.fake_occupy(0, ctypes.c_long(int(more[0])))
    elif word == "give":
        cuda.fake_occupy(0, ctypes.c_long(-taken))
        taken = 0
    elif word == "check":
        for at, kind, text in held:
            assert kind == NONE or ctypes.string_at(at, SIZE) == text
    elif word == "fork":
        (read, write), (begun, began) = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            os.close(write)
            os.write(began, b".")
            os.read(read, 1)
            os._exit(0)
        os.close(read)
        os.read(begun, 1)
        answer = str(child)
    elif word in ("pause", "resume"):
        assert not getattr(lib, "pausable_" + word)(more[0].encode() if more else None)
    elif word == "log":
        answer = "ok" if not lib.pausable_set_log(more[0].encode()) else "refused"
    elif word == "end":
        os.close(write)
        os.waitpid(child, 0)
    print(answer, flush=True)
