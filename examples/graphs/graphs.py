"""Serves a model through CUDA graphs, one for each batch size, each captured
into a pool of its own.  Writes captured.pickle behind the captures.

    graphs.py           a pool for each graph
    graphs.py shared    one pool for all: shared.pickle
"""
import sys

import torch
from torch import nn

WIDTH, SIZES = 4096, (256, 128, 64, 32)


def main():
    shared = "shared" in sys.argv
    torch.cuda.memory._record_memory_history(stacks="python")
    layers = [nn.Linear(WIDTH, 8 * WIDTH), nn.GELU(), nn.Linear(8 * WIDTH, WIDTH)]
    model = nn.Sequential(*layers).to("cuda", torch.bfloat16)
    pool = torch.cuda.graph_pool_handle() if shared else None
    graphs = []
    with torch.inference_mode():
        for size in SIZES:
            batch = torch.zeros(64 * size, WIDTH, dtype=torch.bfloat16, device="cuda")
            model(batch[:1])
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                out = model(batch)
            graphs.append((graph, batch, out))
        for graph, _, _ in graphs:
            graph.replay()
    torch.cuda.memory._dump_snapshot("shared.pickle" if shared else "captured.pickle")


main()
