"""Keeps the requests that it answers in a dictionary of a module."""
import sys
import time

SECONDS = float(sys.argv[1])
seen = {}


def handle(i):
    seen[i] = [str(i + k) for k in range(60)]  # LINE


def main():
    end = time.time() + SECONDS
    i = 0
    while time.time() < end:
        for _ in range(20):
            handle(i)
            i += 1
        time.sleep(0.01)


main()
