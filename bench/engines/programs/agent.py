"""A NIXL agent with its UCX backend, beside which a decoder maps and unmaps buffers.

    agent.py SECONDS"""
import os
import sys
import time
import types

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "cases", "programs"))
from unmap import decode  # noqa: E402

sys.modules.setdefault("torch", types.SimpleNamespace(Tensor=type(None)))  # older releases import it for this name alone
from nixl_cu12._api import nixl_agent, nixl_agent_config  # noqa: E402


def main():
    agent = nixl_agent("decoder", nixl_agent_config(backends=["UCX"]))
    with open("/proc/self/maps") as maps:
        if not any("libucp" in line for line in maps):
            sys.exit("NIXL's UCX backend does not load")
    end = time.time() + float(sys.argv[1])
    while time.time() < end:
        decode()
    os._exit(0 if agent else 1)


main()
