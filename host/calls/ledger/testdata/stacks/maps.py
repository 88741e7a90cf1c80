"""Python that maps below functions of many kinds, for every line that it reads,
and prints which they were."""
import asyncio
import ctypes
import functools
import json
import mmap
import re
import sys
import threading
import time

kept = []
notes = []
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]


def note(address):
    """Keep who maps, as Python itself knows it."""
    frame = sys._getframe(1)
    stack = []
    while frame:
        stack.append(f"{getattr(frame.f_code, 'co_qualname', frame.f_code.co_name)}:{frame.f_lineno}")
        frame = frame.f_back
    notes.append(f"{address:x} {' '.join(stack)}")


def address_of(m):
    kept.append(m)
    return ctypes.addressof(ctypes.c_char.from_buffer(m))


def take(n):
    note(address_of(mmap.mmap(-1, 4096 * (n % 50 + 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)))


def take_by_ctypes(n):
    note(libc.mmap(None, 4096 * (n % 50 + 1), 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0))


def down(depth, n):
    if depth:
        return down(depth - 1, n)
    take(n)


def inside_0(n):
    take(n)


inside_1 = inside_2 = inside_0


def numbers(n):
    yield 1
    take(n)
    yield from others(n)


def others(n):
    take_by_ctypes(n)
    yield 2


class Server:
    def __init__(self, n):
        take(n)

    @property
    def size(self):
        take(3)
        return 1

    @functools.lru_cache(maxsize=None)
    def cached(self, n):
        take(n)

    def __lt__(self, other):
        take(7)
        return True

    def __del__(self):
        take_by_ctypes(5)


class Held:
    def __enter__(self):
        return self

    def __exit__(self, *what):
        take(2)


async def waits(n):
    await asyncio.sleep(0)
    take(n)
    await asyncio.gather(*(inner(n + i) for i in range(3)))


async def inner(n):
    with Held():
        take_by_ctypes(n)


def raises(n):
    try:
        1 / 0
    except ZeroDivisionError:
        take(n)
        raise


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
def compare(a, b):
    take(a[0])
    return a[0] - b[0]

def work(n):
    down(n % 30, n)
    sum(numbers(n))
    server = Server(n)
    server.size
    server.cached(n)
    sorted([server, Server(n + 1)])
    re.sub("[0-9]", lambda m: take(n) or "x", "a1")
    json.loads('{"a": 1}', object_hook=lambda x: take(n))
    eval("[take(i) for i in range(2)]")  # of code that is gone a moment later
    eval(f"[inside_{n % 3}(i) for i in range(2)]")
    {i: take(i) for i in range(2)}
    list(map(take, range(2)))
    numbers_of_c = (ctypes.c_int * 3)(3, 2, 1)
    libc.qsort(numbers_of_c, 3, ctypes.sizeof(ctypes.c_int), compare)
    try:
        raises(n)
    except ZeroDivisionError:
        take(n)
    time.sleep(0.001)


def waits_in_a_thread():
    threading.Thread(target=threading.Event().wait, daemon=True).start()


def run():
    waits_in_a_thread()
    threads = [threading.Thread(target=lambda: [work(n) for n in range(4)]) for _ in range(4)]
    for t in threads:
        t.start()
    for n in range(10):
        work(n)
        asyncio.run(waits(n))
    for t in threads:
        t.join()


print("ready", flush=True)
for line in sys.stdin:
    notes.clear()
    run()
    print("\n".join(notes))
    print("done", flush=True)
