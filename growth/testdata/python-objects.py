# Dictionaries that a list keeps.
import time

kept = []
print("grows", flush=True)
time.sleep(0.3)
for step in range(100):
    kept.extend({"step": i} for i in range(2000))
    time.sleep(0.006)
while True:
    time.sleep(1)
