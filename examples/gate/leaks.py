"""A loop that keeps 256 KiB a step: `strandline check` fails it."""

import time

kept = []
for step in range(60):
    kept.append(bytearray(256 << 10))
    print("step", step, flush=True)
    time.sleep(0.02)
