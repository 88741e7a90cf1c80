"""Does with the real PyTorch what a program must not do, or what goes wrong on a machine, in both modes: each is a
clear error or a stated no-op, and nothing is lost.

    run.sh RIG_RUN RIG bad.py [CASE]

Each case is a process of its own.
"""

import os
import signal
import subprocess
import sys
import threading
import time

MB = 1 << 20
MODULE = "/rig/out/module/strandline"
LIBRARY = f"{MODULE}/libstrandline-mem.so"


def setup():
    import torch
    from strandline.pausable import torch_memory_saver as tms

    return torch, tms


def make(torch, mb, seed):
    host = torch.randint(0, 255, (mb * MB,), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
    return host, host.cuda()


def fails(what, text, kind=Exception):
    try:
        what()
    except kind as e:
        assert text in str(e), f"{type(e).__name__}: {e}"
        print(f"{type(e).__name__}: {e}")
        return e
    raise AssertionError(f"no {kind.__name__}: {text}")


def used(torch):
    free, total = torch.cuda.mem_get_info()
    return total - free


def state(tms, tag):
    return next(t["state"] for t in tms.status()["tags"] if t["tag"] == tag)


def twice():
    torch, tms = setup()
    with tms.region("w", enable_cpu_backup=True):
        host, x = make(torch, 8, 1)
    for _ in range(2):
        tms.pause("w")
    for _ in range(2):
        tms.resume("w")
    assert torch.equal(x.cpu(), host)
    threads = [threading.Thread(target=tms.pause if i % 2 else tms.resume) for i in range(20)]
    [t.start() for t in threads], [t.join() for t in threads]
    tms.resume()
    assert torch.equal(x.cpu(), host)
    futures = [tms.pause_async("w"), tms.resume_async("w")]
    [f.result(60) for f in futures]
    fails(lambda: tms.resume_async("none").result(60), "there is no tag none")


def unknown():
    torch, tms = setup()
    fails(lambda: tms.pause("w"), "there is no tag w")
    with tms.region("w"):
        make(torch, 8, 1)
    fails(lambda: tms.resume("x"), "there is no tag x")
    for bad in ("", "x" * 64, "a\0b"):
        fails(lambda: tms.region(bad).__enter__(), "1 to 63 bytes", ValueError)
    with tms.region("tag with space, ü and %"):
        host, x = make(torch, 8, 2)
    tms.pause("tag with space, ü and %")
    assert state(tms, "tag with space, ü and %") == "paused"


def full():
    torch, tms = setup()
    from strandline.pausable import NotEnoughMemory

    with tms.region("w", enable_cpu_backup=True):
        host, x = make(torch, 64, 1)
    at = x.data_ptr()
    tms.pause("w")
    free = torch.cuda.mem_get_info()[0]
    filler = torch.empty(free - 16 * MB, dtype=torch.uint8, device="cuda")
    e = fails(lambda: tms.resume("w"), "64 MiB are to come back", NotEnoughMemory)
    assert e.needed == 64 * MB and e.available <= 16 * MB and e.device == 0
    fails(lambda: tms.resume("w"), "are missing", NotEnoughMemory)
    assert state(tms, "w") == "paused" and torch.equal(tms.get_cpu_backup(x), host)
    del filler
    torch.cuda.empty_cache()
    tms.resume("w")
    assert x.data_ptr() == at and torch.equal(x.cpu(), host)


def freed():
    torch, tms = setup()
    with tms.region("w", enable_cpu_backup=True):
        host, x = make(torch, 32, 1)
        other, y = make(torch, 32, 2)
    tms.pause()
    del x  # PyTorch keeps its block, which comes back with the rest
    tms.resume()
    assert torch.equal(y.cpu(), other)
    tms.pause()
    del y
    tms.resume()
    with tms.region("w", enable_cpu_backup=True):
        host, x = make(torch, 32, 3)
    tms.pause()
    tms.resume()
    assert torch.equal(x.cpu(), host)


def forked():
    torch, tms = setup()
    with tms.region("w", enable_cpu_backup=True):
        host, x = make(torch, 8, 1)
    for paused in (False, True):
        tms.pause() if paused else None
        child = os.fork()
        if not child:
            try:
                for what in (tms.pause, tms.resume):
                    fails(what, "forked")
                assert tms.status()["tags"] == []
                fails(lambda: tms.region("w").__enter__(), "")
            except BaseException as e:
                print(f"in the child: {e}", flush=True)
                os._exit(1)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    tms.resume()
    assert torch.equal(x.cpu(), host)


def leaver(how):
    """Ends while memory is paused."""
    torch, tms = setup()
    tms.set_disk_backup_dir("/rig/out/ends")
    for tag, options in (("a", {"enable_cpu_backup": True}), ("b", {"enable_disk_backup": True}), ("c", {})):
        with tms.region(tag, **options):
            make(torch, 8, 1)
            globals()[tag] = make(torch, 8, 2)
    tms.pause()
    if how == "exit":
        sys.exit(7)
    if how == "raise":
        raise RuntimeError("a failure of the program")
    if how == "pausing":  # while it copies
        tms.resume()
        threading.Thread(target=lambda: [(tms.pause(), tms.resume()) for _ in range(1000)], daemon=True).start()
        time.sleep(0.2)
        sys.exit(7)
    os.kill(os.getpid(), {"term": signal.SIGTERM, "kill": signal.SIGKILL}[how])
    time.sleep(60)


def leaving():
    os.makedirs("/rig/out/ends", exist_ok=True)
    for how, want in (("exit", 7), ("raise", 1), ("pausing", 7), ("term", -15), ("kill", -9)):
        run = subprocess.run([sys.executable, __file__, "leaver", how], capture_output=True, text=True, timeout=120)
        assert run.returncode == want, f"{how}: {run.returncode}, {run.stderr}"
        assert os.listdir("/rig/out/ends") == [], os.listdir("/rig/out/ends")
        assert "terminate called" not in run.stderr and "Fatal" not in run.stderr, run.stderr


def folders():
    torch, tms = setup()
    from strandline.pausable import Failure

    os.makedirs("/rig/out/small", exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", "/rig/out/small"], check=True)
    with tms.region("w", enable_disk_backup=True):
        host, x = make(torch, 24, 1)
    at, before = x.data_ptr(), used(torch)
    tms.set_disk_backup_dir("/rig/out/small")
    fails(tms.pause, "has no space for a backup in /rig/out/small: No space left on device", Failure)
    assert state(tms, "w") == "active" and used(torch) == before and torch.equal(x.cpu(), host)
    tms.set_disk_backup_dir("/rig/out/gone")
    fails(tms.pause, "cannot make a backup in /rig/out/gone: No such file or directory", Failure)
    assert state(tms, "w") == "active" and used(torch) == before and torch.equal(x.cpu(), host)
    fails(lambda: tms.set_disk_backup_dir(""), "empty", Failure)
    os.makedirs("/rig/out/vanishes", exist_ok=True)
    tms.set_disk_backup_dir("/rig/out/vanishes")
    tms.pause()
    os.rmdir("/rig/out/vanishes")  # the file is open
    tms.resume()
    assert x.data_ptr() == at and torch.equal(x.cpu(), host)
    fails(tms.pause, "No such file", Failure)
    subprocess.run(["umount", "/rig/out/small"], check=True)


def unpinned():
    torch, tms = setup()
    with tms.region("w", enable_cpu_backup=True):
        host, x = make(torch, 8, 1)
    tms.pause()
    assert tms.status()["tags"][0]["backup"] == "pageable", tms.status()
    tms.resume()
    assert torch.equal(x.cpu(), host)


def peers():
    torch, tms = setup()

    def allocate():
        with tms.region("w", enable_cpu_backup=True):
            make(torch, 8, 1)

    fails(allocate, os.environ["WANT"])


def expandable_later():
    """verl turns expandable segments on for the trainer, while the program runs."""
    torch, tms = setup()
    with tms.region("w", enable_cpu_backup=True):
        host, x = make(torch, 8, 1)
    tms.pause()
    torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    y = torch.empty(64 * MB, dtype=torch.uint8, device="cuda")
    for tag in "vw":  # or what is allocated in it would not be pausable, without a word
        fails(lambda: tms.region(tag).__enter__(), "the program set it")
    tms.resume()
    tms.pause()
    torch.cuda.memory._set_allocator_settings("expandable_segments:False")
    tms.resume()
    assert torch.equal(x.cpu(), host) and y.is_cuda
    with tms.region("v", enable_cpu_backup=True):
        other, z = make(torch, 8, 2)
    torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    tms.pause()
    tms.resume()
    assert torch.equal(z.cpu(), other) and torch.equal(x.cpu(), host)


def expandable_from_start():
    """Nothing is pausable, so that a pause would release nothing."""
    torch, tms = setup()
    make(torch, 8, 1)
    fails(tms.pause, "expandable_segments")


def expandable_in_region_from_start():
    torch, tms = setup()
    host, x = make(torch, 8, 1)
    tms.pause()
    torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    tms.resume()
    fails(tms.pause, "the program set it")  # what it takes now would stay
    torch.cuda.memory._set_allocator_settings("expandable_segments:False")
    tms.pause()
    tms.resume()
    assert torch.equal(x.cpu(), host)


def not_preloaded():
    torch, tms = setup()
    tms.hook_mode = "preload"
    fails(lambda: tms.region().__enter__(), "the library is not preloaded")
    fails(tms.pause, "the library is not preloaded")


def many():
    """Two threads pause by tags while a third one allocates and frees."""
    torch, tms = setup()
    held = {}
    for i, tag in enumerate("ab"):
        with tms.region(tag, enable_cpu_backup=True):
            held[tag] = make(torch, 8, i)
    failed, going = [], [True]

    def cycle(tag):
        try:
            for _ in range(200):
                tms.pause(tag)
                tms.resume(tag)
        except BaseException as e:
            failed.append(e)

    def allocate():
        while going[0]:
            torch.empty(4 * MB, dtype=torch.uint8, device="cuda")
            torch.cuda.empty_cache()

    threads = [threading.Thread(target=cycle, args=tag) for tag in "ab"]
    third = threading.Thread(target=allocate)
    third.start()
    [t.start() for t in threads], [t.join() for t in threads]
    going[0] = False
    third.join()
    assert not failed, failed
    assert all(torch.equal(x.cpu(), host) for host, x in held.values())


CASES = [  # with the environment, and whether the library is preloaded: None for both ways
    (twice, {}, None), (unknown, {}, None), (full, {"FAKE_CUDA_TOTAL_MEM": "1g"}, None), (freed, {}, None), (forked, {}, None),
    (leaving, {}, None), (folders, {}, None), (unpinned, {"FAKE_PINNED": "0"}, None), (expandable_later, {}, None),
    (peers, {"STRANDLINE_MEM_PEERS": "4", "FAKE_CUDA_DEVICES": "2", "WANT": "on device 2"}, None),
    (expandable_from_start, {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", "TMS_INIT_ENABLE": "1"}, True),
    (expandable_in_region_from_start, {"TMS_INIT_ENABLE": "1", "TMS_INIT_ENABLE_CPU_BACKUP": "1"}, True),
    (not_preloaded, {}, False), (not_preloaded, {"LD_PRELOAD": "/rig/out/none.so"}, False), (many, {}, None),
]


def main():
    failed = done = 0
    for case, env, preloaded in CASES:
        for preload in (False, True) if preloaded is None else (preloaded,):
            all_ = {**{k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}, **env}
            if preload:
                all_["LD_PRELOAD"] = LIBRARY
            run = subprocess.run([sys.executable, __file__, case.__name__], env=all_, capture_output=True, text=True)
            done += 1
            failed += run.returncode != 0
            print(f"{'failed' if run.returncode else 'ok':6}  {'preload' if preload else 'torch':7}  {case.__name__} {' '.join(f'{k}={v}' for k, v in env.items() if k != 'WANT')}", flush=True)
            print("\n".join("            " + line for line in run.stdout.splitlines()[:12]) if not run.returncode else run.stdout[-2000:] + run.stderr[-2000:], flush=True)
    print(f"{done - failed} of {done} passed")
    return failed


if __name__ == "__main__":
    if len(sys.argv) > 1:
        globals()[sys.argv[1]](*sys.argv[2:])
    else:
        sys.exit(1 if main() else 0)
