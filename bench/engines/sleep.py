#!/usr/bin/env python3
"""Plants failures of sleep and wake in a loop of rollout and update, and prints who names them.

    bench/engines/sleep.py [OPTIONS] [KIND...]   # the failures of that kind, or all

    --strandline PATH  the program to try (default: built from this checkout)
    --torch DIR        PyTorch, as setup.sh leaves it
    --failures N       how many failures (default 200), and a clean loop after each fourth
    --by LIST          mem,watch,log (default: all)
    --seconds N        how long a rank sleeps, and is awake (default 0.5)
    --show             print each document that is wrong

Each loop has 2 to 4 ranks, each a process with real PyTorch and strandline.pausable on a device of
bench/pytorch. The failures are drawn: a tag that stays awake, a missing empty_cache, graphs,
a communicator that is kept, a shard that stays, a buffer that is made again. An answer is right if one
finding names the rank, the phase (the tags that are paused) and the pool. `log` has the logs alone.
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cases"))
from run import built, findings_of, run_json  # noqa: E402

NAMES = [("weights", "kv_cache"), ("model_weights", "kv"), ("rollout", "cache", "draft"), ("actor", "kv_cache", "ref"), ("weights", "kv_cache", "optimizer"), ("w0", "pages")]
CYCLES, RANKS = 7, 4
TENSORS, CACHE, GRAPHS, DRIVER = "tensors in no region", "PyTorch's cache", "CUDA graph pools", "driver memory of libraries"


def draw(dice, planted, seconds):
    """The orders of a loop, and its failure: rank, pool and tag; None for a clean one."""
    names = dice.choice(NAMES)
    ranks = dice.randint(2, RANKS)
    sizes = {tag: dice.choice([64, 96, 128, 256, 384]) for tag in names}
    order = {"tags": sizes, "activations": dice.choice([96, 160, 320]), "cycles": CYCLES, "seconds": seconds, "communicator": dice.choice([0, 16, 48]), "resident": dice.choice([0, 0, 32, 128])}
    orders = [dict(order) for _ in range(ranks)]
    if not planted:
        return orders, None
    at, tag, mib = dice.randrange(ranks), dice.choice(names), dice.choice([64, 96, 192, 400])
    everywhere = dice.random() < 0.2
    kinds = {
        "awake": ({"kind": "awake", "tags": [tag]}, "tag", tag),
        "awake-once": ({"kind": "awake", "tags": [tag], "cycles": [CYCLES - 3, CYCLES - 2]}, "tag", tag),
        "cache": ({"kind": "cache"}, CACHE, ""),
        "graphs": ({"kind": "graphs", "mib": mib}, GRAPHS, ""),
        "nccl": ({"kind": "nccl", "mib": mib}, DRIVER, ""),
        "nccl-later": ({"kind": "nccl", "mib": mib, "from": 3}, DRIVER, ""),
        "nccl-again": ({"kind": "driver-again", "mib": dice.choice([8, 24, 64])}, DRIVER, ""),
        "shard": ({"kind": "shard", "mib": mib}, TENSORS, ""),
        "shard-later": ({"kind": "shard", "mib": mib, "from": 3}, TENSORS, ""),
        "tensors-again": ({"kind": "tensors-again", "mib": dice.choice([8, 24, 64])}, TENSORS, ""),
        "tag-again": ({"kind": "tag-again", "tag": tag, "mib": dice.choice([8, 24, 64])}, "tag", tag),
    }
    name = dice.choice(sorted(kinds))
    fault, pool, tag = kinds[name]
    if name in ("nccl", "shard"):
        everywhere = False  # such memory may be meant
    for i in range(ranks):
        if everywhere or i == at:
            orders[i]["fault"] = dict(fault)
    return orders, (name, [f"rank {i}" for i in range(ranks) if everywhere or i == at], pool, tag)


class Loop:
    """The processes of all ranks, which do one order after the other."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        module = os.path.join(folder, "module")
        subprocess.run([options.strandline, "record", "--module", module], check=True, stdout=subprocess.DEVNULL)
        self.env = dict(os.environ, FAKE_SHARED=os.path.join(folder, "shared"), FAKE_CUDA_DEVICES=str(RANKS), FAKE_CUDA_TOTAL_MEM="8192m",
                        FAKE_CUDA_CONTEXT_MEM="200m", PYTHONPATH=module, PATH=os.path.join(HERE, "..", "pausable") + ":" + os.environ["PATH"])
        with open(self.env["FAKE_SHARED"], "wb") as f:
            f.write(bytes(64 * 72))
        self.ranks = []
        for rank in range(RANKS):
            env = dict(self.env, RANK=str(rank), WORLD_SIZE=str(RANKS))
            line = [os.path.join(HERE, "..", "pytorch", "run.sh"), options.torch, os.path.join(HERE, "programs", "sleeper.py")]
            self.ranks.append(subprocess.Popen(line, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))

    def tell(self, ranks, line):
        for r in ranks:
            print(line, file=r.stdin, flush=True)

    def hear(self, ranks):
        return [r.stdout.readline().strip() for r in ranks]

    def run(self, orders, number):
        """The findings by each way of asking."""
        options, out = self.options, {}
        logs = os.path.join(self.folder, f"logs{number}")
        os.mkdir(logs)
        ranks = self.ranks[:len(orders)]
        for r, order in zip(ranks, orders):
            print(json.dumps(dict(order, log=logs)), file=r.stdin, flush=True)
        pids, watch = self.hear(ranks), None
        if "watch" in options.by:
            watch = subprocess.Popen([options.strandline, "watch", "--json", "--pid", str(os.getpid()), "--interval", "100ms", "--duration", f"{CYCLES * 2 * options.seconds + 2:.0f}s"],
                                     env=self.env, stdout=open(os.path.join(self.folder, "samples"), "w+"))  # a pipe that nobody reads holds it up
        self.tell(ranks, "on")
        self.hear(ranks)
        if "mem" in options.by:
            doc, _ = run_json([options.strandline, "mem", "status", "--json", "--pid", pids[0]], self.env, self.folder)
            out["mem"] = findings_of(doc)
        self.tell(ranks, "on")
        self.hear(ranks)
        if watch:
            watch.wait()
            with open(os.path.join(self.folder, "samples")) as f:
                out["watch"] = findings_of(json.loads(f.read().splitlines()[-1]))
        self.tell(ranks, "on")
        self.hear(ranks)
        if "log" in options.by:
            doc, _ = run_json([options.strandline, "diagnose", "--json", logs], self.env, self.folder)
            out["log"] = findings_of(doc)
        shutil.rmtree(logs)
        return out

    def end(self):
        for r in self.ranks:
            r.stdin.close()
            r.wait()


def judge(found, planted):
    """Whether findings name a failure, are silent, or WRONG."""
    stays = [f for f in found if (f.get("evidence") or {}).get("pool") and f["severity"] != "info"]
    if not planted:
        loud = [f for f in found if f["severity"] == "problem"] + [f for f in stays if f["severity"] != "problem"]
        return "WRONG" if loud else "right"
    _, names, pool, tag = planted
    for f in stays:
        e = f["evidence"]
        if set(names) <= set(e["processes"]) and e["pool"] == pool and e.get("tag", "") == tag and e["paused"]:
            if set(e["processes"]) == set(names):
                return "right"
    return "WRONG" if stays else "silent"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--strandline")
    parser.add_argument("--torch", required=True)
    parser.add_argument("--failures", type=int, default=200)
    parser.add_argument("--seed", type=int, default=43)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--by", default="mem,watch,log")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("kinds", nargs="*")
    options = parser.parse_args()
    options.strandline = options.strandline or built()
    options.by = options.by.split(",")
    loop = Loop(options, tempfile.mkdtemp(prefix="sleep-"))
    dice = random.Random(options.seed)
    count, kinds = {}, {}
    for number in range(options.failures + options.failures // 4):
        orders, planted = draw(dice, number % 5 != 4, options.seconds)
        if options.kinds and (planted[0] if planted else "clean") not in options.kinds:
            continue
        found = loop.run(orders, number)
        words = {by: judge(f, planted) for by, f in found.items()}
        for by, word in words.items():
            key = "clean" if not planted else "failure"
            count.setdefault((key, by), {}).setdefault(word, 0)
            count[key, by][word] += 1
            kinds.setdefault((planted[0] if planted else "clean", by), []).append(word == "right")
        if planted:
            count.setdefault(("failure", "any"), {}).setdefault("right" if "right" in words.values() else "no", 0)
            count["failure", "any"]["right" if "right" in words.values() else "no"] += 1
        print(f"{number:3} {planted[0] if planted else 'clean':14} {len(orders)} ranks  " + "  ".join(f"{by} {word}" for by, word in words.items()), flush=True)
        if options.show:
            for by, word in words.items():
                if word != "right":
                    print("     planted", planted, orders[0])
                    for f in found[by]:
                        print("     ", by, f["severity"], f["kind"], f["title"])
    loop.end()
    for (name, by), right in sorted(kinds.items()):
        print(f"{name:14} {by:6} {sum(right)} of {len(right)}")
    for (key, by), words in sorted(count.items()):
        print(f"{key} by {by}: " + ", ".join(f"{n} {word}" for word, n in sorted(words.items())))


if __name__ == "__main__":
    main()
