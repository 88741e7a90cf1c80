# Dictionaries that a list keeps.
import signal
import time

kept = []
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("waits", flush=True)
signal.sigwait([signal.SIGUSR1])
for step in range(100):
    kept.extend({"step": i} for i in range(2000))
    time.sleep(0.006)
with open("/proc/self/comm", "w") as name:
    name.write("grown")
while True:
    time.sleep(1)
