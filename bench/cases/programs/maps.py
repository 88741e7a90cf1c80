"""Maps buffers and never unmaps them."""
import mmap
import sys
import time

SECONDS = float(sys.argv[1])
kept = []


def buffer():
    m = mmap.mmap(-1, 256 << 10)  # LINE
    m.write(b"x" * (256 << 10))
    kept.append(m)


def main():
    end = time.time() + SECONDS
    while time.time() < end:
        buffer()
        time.sleep(0.02)


main()
