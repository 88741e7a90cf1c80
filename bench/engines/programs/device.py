"""A PyTorch server on a device, with OpenAI's API: device.py KIND PORT

KIND: clean, request (a tensor of each is kept), cache (of each prompt, without a bound), waves (kept once after each pause)"""
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "cases", "programs"))

import torch  # noqa: E402
from asked import serve  # noqa: E402

KIND, PORT = sys.argv[1], int(sys.argv[2])
WIDTH, IDLE = 512, 0.2
lock = threading.Lock()


class Service:
    def __init__(self):
        self.model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU(), torch.nn.Linear(WIDTH, WIDTH)).cuda()
        self.kept, self.cache, self.last = [], {}, time.monotonic()

    @torch.no_grad()
    def asked(self, text):
        with lock:
            time.sleep(0.02)
            out = self.model(torch.zeros(256, WIDTH, device="cuda"))  # LINE request
            if KIND == "request":
                self.kept.append(out)  # HOLDS request
            if KIND == "cache" and text not in self.cache:
                self.cache[text] = torch.empty_like(out)  # LINE cache
            if KIND == "waves" and time.monotonic() - self.last > IDLE:
                self.kept.append(torch.empty(16 << 20, dtype=torch.uint8, device="cuda"))  # LINE waves
            self.last = time.monotonic()


service = Service()
serve(PORT, service.asked)
