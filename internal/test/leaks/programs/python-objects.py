# Objects that a list keeps. Python's own allocator makes them, not malloc.
import time

kept = []


def remember(n):
    for i in range(n):
        kept.append({i: str(i)})


def serve():
    while len(kept) < 1_000_000:
        remember(2000)
        time.sleep(0.05)
    time.sleep(3600)


print("ready", flush=True)
serve()
