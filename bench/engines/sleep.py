#!/usr/bin/env python3
"""Plants failures of sleep and wake in a loop of rollout and update, and prints who names them.

    bench/engines/sleep.py [OPTIONS] [KIND...]   # the failures of that kind, or all

    --strandline PATH  the program to try (default: built from this checkout)
    --torch DIR        PyTorch, as setup.sh leaves it
    --failures N       how many failures (default 200), and a clean loop after each fourth
    --by LIST          mem,watch,log (default: all)
    --seconds N        how long a rank sleeps, and is awake (default 0.8)
    --keep DIR         keep the answers here; loops that were kept are not run again
    --judge DIR        run nothing, and judge the answers that were kept
    --show             print each answer that is wrong

Each loop has 2 to 4 ranks, each a process with real PyTorch and strandline.pausable on a device of
bench/pytorch. The failures are drawn: a tag that stays awake, a missing empty_cache, graphs,
a communicator that is kept, a shard that stays, a buffer that is made again. An answer is right if one
finding has the kind, the ranks, the pool, the tag and all tags that are paused meanwhile, each exactly
as planted, and no other finding is a problem or a warning. Of a clean loop no finding may be either.
`mem status` is asked once, in the last pause. `log` has the logs alone. In the end each right answer
is falsified in several ways, and none of these may count as right. The exit status is 1 if one does, or an answer is wrong.
"""
import argparse
import copy
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
    return orders, {
        "name": name, "kind": "leak" if name.endswith("-again") else "residue", "pool": pool, "tag": tag,
        "processes": [f"rank {i}" for i in range(ranks) if everywhere or i == at],
        "paused": sorted(t for t in names if t != tag or not name.startswith("awake")),
    }


class Loop:
    """The processes of all ranks, which do one order after the other."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        module = os.path.join(folder, "module")
        subprocess.run([options.strandline, "record", "--module", module], check=True, stdout=subprocess.DEVNULL)
        self.env = dict(os.environ, FAKE_SHARED=os.path.join(folder, "shared"), FAKE_CUDA_DEVICES=str(RANKS), FAKE_CUDA_TOTAL_MEM="8192m",
                        FAKE_CUDA_CONTEXT_MEM="200m", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(20000 + os.getpid() % 10000), PYTHONPATH=module, PATH=os.path.join(HERE, "..", "pausable") + ":" + os.environ["PATH"])
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
        """The document by each way of asking."""
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
            out["mem"] = doc
        self.tell(ranks, "on")
        self.hear(ranks)
        if watch:
            watch.wait()
            with open(os.path.join(self.folder, "samples")) as f:
                out["watch"] = json.loads(f.read().splitlines()[-1])
        self.tell(ranks, "on")
        self.hear(ranks)
        if "log" in options.by:
            doc, _ = run_json([options.strandline, "diagnose", "--json", logs], self.env, self.folder)
            out["log"] = doc
        shutil.rmtree(logs)
        return out

    def end(self):
        for r in self.ranks:
            r.stdin.close()
            r.wait()


def judge(by, found, planted):
    """Whether findings name a failure, are silent, or WRONG."""
    loud = [f for f in found if f["severity"] in ("problem", "warning")]
    if not planted:
        return "WRONG" if loud else "right"
    if not loud:
        return "silent"
    f, e = loud[0], loud[0].get("evidence") or {}
    same = len(loud) == 1 and all(e.get(key, "") == planted[key] for key in ("pool", "tag"))
    same = same and all(sorted(e.get(key) or []) == planted[key] for key in ("processes", "paused"))
    # One moment shows no growth.
    return "right" if same and (f["kind"] == planted["kind"] or by == "mem" and f["kind"] == "residue") else "WRONG"


def falsified(found):
    """Answers that are near a right one, and wrong."""
    at = next(i for i, f in enumerate(found) if f["severity"] in ("problem", "warning"))
    e = found[at]["evidence"]

    def other(**changes):
        out = copy.deepcopy(found)
        out[at]["evidence"].update(changes)
        return out
    yield other(processes=e["processes"] + ["rank 9"])
    yield other(processes=e["processes"][1:])
    yield other(paused=e["paused"][1:])
    yield other(paused=e["paused"] + ["other"])
    yield other(pool=GRAPHS if e["pool"] != GRAPHS else CACHE)
    yield other(tag=e.get("tag", "") + "x")
    yield found + [found[at]]
    yield found + [{"kind": "unknown", "severity": "warning", "title": "something else"}]
    yield [dict(f, kind="growth") for f in found]
    yield [dict(f, severity="info") for f in found]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--strandline")
    parser.add_argument("--torch")
    parser.add_argument("--failures", type=int, default=200)
    parser.add_argument("--seed", type=int, default=43)
    parser.add_argument("--seconds", type=float, default=0.8)
    parser.add_argument("--by", default="mem,watch,log")
    parser.add_argument("--keep")
    parser.add_argument("--judge")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("kinds", nargs="*")
    options = parser.parse_args()
    if not (options.torch or options.judge):
        parser.error("--torch or --judge is needed")
    options.strandline = options.strandline or options.judge or built()
    options.by = options.by.split(",")
    keep = options.judge or options.keep or tempfile.mkdtemp(prefix="sleep-kept-")
    os.makedirs(keep, exist_ok=True)
    loop, dice = None, random.Random(options.seed)
    count, kinds, near, loads = {}, {}, [], []
    for number in range(options.failures + options.failures // 4):
        orders, planted = draw(dice, number % 5 != 4, options.seconds)
        name, kept = planted["name"] if planted else "clean", os.path.join(keep, f"{number}.json")
        if options.kinds and name not in options.kinds or options.judge and not os.path.exists(kept):
            continue
        if not os.path.exists(kept):
            loop = loop or Loop(options, tempfile.mkdtemp(prefix="sleep-"))
            documents = loop.run(orders, number)
            with open(kept + ".new", "w") as f:
                json.dump(documents, f)
            os.rename(kept + ".new", kept)
        with open(kept) as f:
            documents = json.load(f)
        words = {}
        loads += [os.getloadavg()[0]] * bool(loop)
        for by in options.by:
            found = findings_of(documents[by])
            words[by] = judge(by, found, planted)
            if planted and words[by] == "right":
                near += [judge(by, wrong, planted) for wrong in falsified(found)]
        if planted:
            words["any"] = "right" if "right" in words.values() else "no"
        for by, word in words.items():
            of = count.setdefault(("failure" if planted else "clean", by), {})
            of[word] = of.get(word, 0) + 1
            if by != "any":
                kinds.setdefault((name, by), []).append(word == "right")
        print(f"{number:3} {name:14} {len(orders)} ranks  " + "  ".join(f"{by} {words[by]}" for by in options.by), flush=True)
        if options.show:
            for by in options.by:
                if words[by] != "right":
                    print("     planted", planted, orders[0])
                    for f in findings_of(documents[by]):
                        print("     ", by, f["severity"], f["kind"], f["title"])
    if loop:
        loop.end()
        print(f"load: {min(loads):.1f} to {max(loads):.1f} on {os.cpu_count()} processors")
    for (name, by), right in sorted(kinds.items()):
        print(f"{name:14} {by:6} {sum(right)} of {len(right)}")
    for (key, by), words in sorted(count.items()):
        print(f"{key} by {by}: " + ", ".join(f"{n} {word}" for word, n in sorted(words.items())))
    print(f"falsified answers: {near.count('right')} of {len(near)} count as right")
    return 1 if "right" in near or any("WRONG" in words for words in count.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
