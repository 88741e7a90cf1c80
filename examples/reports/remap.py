"""Keeps a log in a mapping that mremap enlarges, as `pmap -x PID | tail -n +3 | sort -k3 -nr | head`
in a loop shows it."""
import mmap
import subprocess
import os
import time

PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
log = mmap.mmap(-1, 64 << 20, flags=PRIVATE)
other = []
for n in range(1, 17):
    log.resize((64 + 4 * n) << 20)
    other.append(mmap.mmap(-1, 4096, flags=PRIVATE))
    log.seek(0)
    log.write(b"x" * len(log))
    print(subprocess.run(f"pmap -x {os.getpid()} | tail -n +3 | sort -k3 -nr | head -n 6", shell=True, capture_output=True, text=True).stdout, end="", flush=True)
    time.sleep(0.1)
