"""A server with OpenAI's API that keeps, unmaps (with UCX) or forgets what it is asked: server.py KIND PORT [MIB], which it holds."""
import mmap
import sys

from asked import serve

KIND, PORT = sys.argv[1], int(sys.argv[2])
HELD = bytearray(b"x" * (int(sys.argv[3]) << 20)) if len(sys.argv) > 3 else b""
history = []
if KIND == "unmap":
    import unmap
    context = unmap.start_ucx()
if KIND == "graph":
    import torch
    total = torch.rand(1)


def asked(text):
    global total
    if KIND == "objects":
        history.append([text[:40] + str(i) for i in range(400)])  # LINE
    if KIND == "unmap":
        for _ in range(400):
            mmap.mmap(-1, 65536).close()
    if KIND == "graph":
        for _ in range(100):
            total += torch.rand(1).requires_grad_()


serve(PORT, asked)
