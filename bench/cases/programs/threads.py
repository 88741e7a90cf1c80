"""Starts a thread for each request, and none of them ends."""
import sys
import threading
import time

SECONDS = float(sys.argv[1])
done = threading.Event()


def main():
    end = time.time() + SECONDS
    while time.time() < end:
        threading.Thread(target=done.wait, daemon=True).start()  # LINE
        time.sleep(0.01)


main()
