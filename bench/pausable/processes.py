"""Has several processes share devices, and pauses and resumes from outside while others take what was released.

    FAKE_SHARED=/rig/out/shared FAKE_CUDA_DEVICES=2 FAKE_CUDA_TOTAL_MEM=2048m FAKE_CUDA_CONTEXT_MEM=100m \\
        run.sh RIG_RUN RIG processes.py

FAKE_SHARED has the simulated devices be those of all processes: see driver.c.
"""

import json
import os
import subprocess
import sys
import time
import urllib.request

MIB = 1 << 20
DEVICES = 2


class Worker:
    """A process that holds memory, and does what it is told."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, __file__, "worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid

    def do(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        assert line, f"{words}: the process ended"
        return json.loads(line)


def work():
    import torch
    from strandline.pausable import NotEnoughMemory, torch_memory_saver as tms

    held, taken = [], []
    for line in sys.stdin:
        word, *more = line.split()
        answer = "ok"
        try:
            if word == "hold":  # DEVICE TAG MIB BACKUP
                device, tag, mib, kept = int(more[0]), more[1], int(more[2]), more[3] == "kept"
                host = torch.randint(0, 255, (mib * MIB,), dtype=torch.uint8, generator=torch.Generator().manual_seed(len(held)))
                with torch.cuda.device(device), tms.region(tag, enable_cpu_backup=kept):
                    there = torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")
                there.copy_(host)
                held.append((host, there, there.data_ptr(), kept))
            elif word == "take":  # DEVICE MIB
                taken.append(torch.empty(int(more[1]) * MIB, dtype=torch.uint8, device=f"cuda:{more[0]}"))
            elif word == "give":
                taken.clear()
                torch.cuda.empty_cache()
            elif word == "same":
                answer = all(there.data_ptr() == at and (not kept or torch.equal(there.cpu(), host)) for host, there, at, kept in held)
            elif word == "resume":
                tms.resume()
            elif word == "status":
                answer = tms.status()
        except NotEnoughMemory as e:
            answer = {"text": str(e), "holders": e.holders, "device": e.device}
        print(json.dumps(answer), flush=True)


def tools():
    return {**os.environ, "PATH": "/rig/out:" + os.environ["PATH"]}  # nvidia-smi


def strandline(*args, code=0):
    run = subprocess.run(["/rig/out/strandline", *map(str, args), "--json"], capture_output=True, text=True, env=tools())
    assert run.returncode == code, f"{args} ended with {run.returncode}, not {code}: {run.stdout} {run.stderr}"
    return json.loads(run.stdout.splitlines()[-1] if args[0] == "watch" else run.stdout)


def states(doc):
    return {t["tag"]: t["state"] for t in doc["tags"]}


def main():
    engine, trainer = Worker(), Worker()
    for d in range(DEVICES):
        engine.do("hold", d, "weights", 256, "kept")
        engine.do("hold", d, "kv_cache", 512, "lost")
        trainer.do("take", d, 64)

    def mem(do, *more, code=0):
        return strandline("mem", do, "--pid", engine.pid, *more, code=code)

    before = mem("status")
    assert states(before) == {"weights": "active", "kv_cache": "active"}, before
    for d in before["devices"]:
        assert {h["pid"]: h["bytes"] for h in d["holders"]} == {engine.pid: (768 + 100) * MIB, trainer.pid: (64 + 100) * MIB}, d
    done = mem("pause")
    assert states(done) == {"weights": "paused", "kv_cache": "paused"} and [d["released_bytes"] for d in done["devices"]] == [768 * MIB] * DEVICES, done
    print("a pause of both devices releases what the driver counts, 768 MiB of each")

    watched(engine.pid)

    # The second device is full: nothing of the first is kept either.
    trainer.do("take", 1, 1400)
    mem("plan", code=1)
    refused = mem("resume", code=1)
    assert refused["failure"]["device"] == 1 and states(refused) == states(done), refused
    on = next(d for d in refused["devices"] if d["device"] == 1)
    assert max(on["holders"], key=lambda h: h["bytes"])["pid"] == trainer.pid, on
    assert refused["devices"][0]["free_bytes"] == done["devices"][0]["free_bytes"], refused
    text = subprocess.run(["/rig/out/strandline", "mem", "resume", "--pid", str(engine.pid)], capture_output=True, text=True, env=tools())
    assert text.returncode == 1 and str(trainer.pid) in text.stdout, text
    print(text.stdout)
    inside = engine.do("resume")
    assert inside["device"] == 1 and inside["holders"][0]["pid"] == trainer.pid and str(trainer.pid) in inside["text"], inside
    print(inside["text"])

    # A tag fits, the other one does not.
    assert states(mem("resume", "--tag", "weights", code=0)) == {"weights": "active", "kv_cache": "paused"}
    mem("resume", code=1)
    trainer.do("give")
    mem("resume")
    assert engine.do("same") is True
    print("once the memory is free, the resume succeeds, and all is as it was")

    # Two that pause and resume against each other, many times.
    trainer.do("hold", 0, "states", 700, "kept")
    rounds = 20
    mem("pause")
    for i in range(rounds):
        strandline("mem", "pause", "--pid", trainer.pid)
        mem("resume")
        mem("pause")
        strandline("mem", "resume", "--pid", trainer.pid)
    trainer.do("take", 0, 900)
    assert mem("resume", code=1)["failure"]["device"] == 0
    trainer.do("give")
    strandline("mem", "pause", "--pid", trainer.pid)
    mem("resume")
    assert engine.do("same") is True
    print(f"{rounds} hand-overs between two processes lose nothing")

    # One that dies gives its memory back.
    trainer.process.kill()
    trainer.process.wait()
    assert [h["pid"] for d in mem("status")["devices"] for h in d["holders"]] == [engine.pid] * DEVICES
    engine.process.stdin.close()
    assert engine.process.wait() == 0
    print("ok")


def watched(pid):
    """What watch tells of the paused process: of what it holds now, only the context is neither PyTorch's nor paused."""
    doc = strandline("watch", "--pid", pid, "--duration", "2s", "--interval", "500ms")
    process = next(p for p in doc["processes"] if p["pid"] == pid)
    for d in process["devices"]:
        assert (d["used_bytes"], d["allocated_bytes"], d["cached_bytes"], d["other_bytes"]) == (100 * MIB, 768 * MIB, 0, 100 * MIB), d
    assert {t["tag"]: (t["state"], t["held_bytes"]) for t in process["pausable"]} == {"weights": ("paused", 0), "kv_cache": ("paused", 0)}, process
    address = "127.0.0.1:9417"
    with subprocess.Popen(["/rig/out/strandline", "watch", "--pid", str(pid), "--duration", "6s", "--listen", address], stdout=subprocess.DEVNULL, env=tools()) as watch:
        metrics = ""
        while "pausable" not in metrics:
            assert watch.poll() is None, "no metrics"
            time.sleep(0.3)
            try:
                with urllib.request.urlopen(f"http://{address}/metrics") as answer:
                    metrics = answer.read().decode()
            except OSError:
                pass
        watch.terminate()
    print("\n".join(line for line in metrics.splitlines() if "pausable" in line and not line.startswith("#")))


if __name__ == "__main__":
    work() if sys.argv[1:] == ["worker"] else main()
