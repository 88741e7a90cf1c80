"""Uses the real PyTorch as the documentation of torch_memory_saver does, under its name: each call, mode and
variable of the environment, and what is different on purpose.

    run.sh RIG_RUN RIG saver.py

Each case is a process of its own.
"""

import os
import subprocess
import sys
import warnings

MB = 1 << 20
MODULE = "/rig/out/module/strandline"
LIBRARY = f"{MODULE}/libstrandline-mem.so"


def setup():
    import torch
    from torch_memory_saver import torch_memory_saver as tms

    return torch, tms


def used(torch):
    free, total = torch.cuda.mem_get_info()
    return total - free


def full(torch, value, mb=8):
    return torch.full((mb * MB,), value, dtype=torch.uint8).cuda()


def kept(torch, tensor, value):
    return bool((tensor.cpu() == value).all())


def fails(what, text, kind=Exception):
    try:
        what()
    except kind as e:
        assert text in str(e), e
        return
    raise AssertionError(f"no {kind.__name__}: {text}")


def basic():
    torch, tms = setup()
    assert tms.enabled
    with tms.region():
        x = full(torch, 100)
    at, before = x.data_ptr(), used(torch)
    tms.pause()
    assert used(torch) <= before - 8 * MB
    tms.pause()  # nothing: torch_memory_saver ends the process
    tms.resume()
    assert used(torch) == before and x.data_ptr() == at
    tms.resume()


def tags():
    torch, tms = setup()
    with tms.region(tag="type1"):
        full(torch, 1), full(torch, 1)
        a = full(torch, 1)
    with tms.region(tag="type2"):
        b = full(torch, 2, 16)
    at, before = (a.data_ptr(), b.data_ptr()), used(torch)
    tms.pause("type1")
    one = used(torch)
    tms.pause("type2")
    assert used(torch) <= one - 16 * MB and one < before
    tms.resume("type2")
    tms.resume("type1")
    tms.pause("type1")
    assert used(torch) == one
    tms.resume("type1")
    assert used(torch) == before and at == (a.data_ptr(), b.data_ptr())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        tms.pause("type3")
    assert used(torch) == before and "there is no tag type3" in str(said[0].message)


def backups():
    torch, tms = setup()
    tensors = []
    for i, options in enumerate(({}, {"cpu_backup_backend": None}, {"cpu_backup_backend": "pinned"}, {"cpu_backup_backend": "mmap"})):
        with tms.region(tag=f"t{i}", enable_cpu_backup=True, **options):
            tensors.append(full(torch, 42 + i))
    os.mkdir("disk")
    tms.set_disk_backup_dir("disk")
    with tms.region(tag="disk", enable_disk_backup=True):
        tensors.append(full(torch, 42 + len(tensors)))
    tms.pause()
    assert any("/disk/" in os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{fd}"))
    assert os.listdir("disk") == []  # files have no name
    tms.resume()
    assert all(kept(torch, t, 42 + i) for i, t in enumerate(tensors))
    fails(lambda: tms.region(enable_cpu_backup=True, enable_disk_backup=True).__enter__(), "either")


def copies():
    torch, tms = setup()
    with tms.region(enable_cpu_backup=True):
        x = torch.arange(3 * MB, dtype=torch.int32).cuda().reshape(3, -1)
    want = x.cpu()
    assert tms.get_cpu_backup(x) is None and tms.get_cpu_backup(torch.empty(5, device="cuda")) is None
    tms.pause()
    for zero_copy in (False, True):
        got = tms.get_cpu_backup(x, zero_copy=zero_copy)
        assert got.device.type == "cpu" and got.dtype == x.dtype and got.stride() == x.stride() and torch.equal(got, want)
    assert torch.equal(tms.get_cpu_backup(x[1:, 5:]), want[1:, 5:])
    tms.resume()
    assert torch.equal(x.cpu(), want)


def retained(variable=False):
    torch, tms = setup()
    with tms.region(enable_cpu_backup=True):
        x = full(torch, 7)
    assert tms.retain_cpu_backup is variable
    tms.retain_cpu_backup = True
    assert tms.retain_cpu_backup is True
    tms.pause()
    tms.resume()
    assert kept(torch, tms.get_cpu_backup(x), 7)
    tms.pause()
    tms.retain_cpu_backup = False
    assert tms.retain_cpu_backup is False
    tms.resume()
    assert tms.get_cpu_backup(x) is None


def retained_by_variable():
    retained(True)


def regions():
    torch, tms = setup()
    fails(lambda: tms.disable().__enter__(), "no region")
    with tms.region("outer"):
        a = full(torch, 1)
        with tms.disable():
            b = full(torch, 2)
        with tms.region("inner", enable_cpu_backup=True):
            c = full(torch, 3)
    tms.pause("inner")
    tms.pause("outer")
    assert kept(torch, b, 2)
    tms.resume()
    assert kept(torch, c, 3) and a.is_cuda


def margin():
    torch, tms = setup()
    tms.memory_margin_bytes = torch.cuda.mem_get_info()[0] - 32 * MB
    assert tms.memory_margin_bytes == torch.cuda.mem_get_info()[0] - 32 * MB
    with tms.region():
        fails(lambda: torch.empty(64 * MB, dtype=torch.uint8, device="cuda"), "out of memory", torch.cuda.OutOfMemoryError)
        torch.empty(16 * MB, dtype=torch.uint8, device="cuda")


def modes():
    torch, tms = setup()
    other = "torch" if os.environ.get("LD_PRELOAD") else "preload"
    fails(lambda: setattr(tms, "hook_mode", "custom"), "no hook mode 'custom'")
    with tms.region():
        full(torch, 1)
    fails(lambda: setattr(tms, "hook_mode", other), "since the first region")


def child():
    """Is started with configure_subprocess."""
    torch, tms = setup()
    assert tms.hook_mode == "preload" and os.environ["LD_PRELOAD"].split(":")[0] == LIBRARY
    with tms.region(enable_cpu_backup=True):
        x = full(torch, 5)
    tms.pause()
    tms.resume()
    assert kept(torch, x, 5)


def subprocesses():
    from torch_memory_saver import configure_subprocess

    with configure_subprocess():
        subprocess.run([sys.executable, __file__, "child"], check=True)
    assert LIBRARY not in os.environ.get("LD_PRELOAD", "")


def started():
    """Is in a region from its start, with TMS_INIT_ENABLE."""
    torch, tms = setup()
    x = full(torch, 9)
    with tms.disable():
        y = full(torch, 8)
    kind = tms.status()["tags"][0]
    assert kind["tag"] == "default" and kind["backup"] == os.environ["WANT"], kind
    tms.pause()
    assert kept(torch, y, 8)
    tms.resume()
    assert os.environ["WANT"] == "none" or kept(torch, x, 9)


def engine():
    """Is what SGLang does: it hands over all tags, whether or not there are graphs under theirs."""
    torch, tms = setup()
    with tms.region(tag="weights", enable_cpu_backup=True):
        weights = full(torch, 3)
    with tms.region(tag="kv_cache", enable_cpu_backup=False):
        cache = full(torch, 4)
    before = used(torch)
    for tag in ("kv_cache", "weights", "cuda_graph"):
        tms.pause(tag=tag)
    assert used(torch) <= before - 16 * MB
    for tag in ("cuda_graph", "weights", "kv_cache"):
        tms.resume(tag=tag)
    assert used(torch) == before and kept(torch, weights, 3) and cache.is_cuda


def served(pipe):
    """Is the process of SGLang in which verl, through its engine, releases and resumes by lists of tags."""
    torch, tms = setup()
    assert tms.enabled and tms.hook_mode == "preload"
    with tms.region(tag="weights", enable_cpu_backup=False):
        weights = full(torch, 1, 16)
    with tms.region(tag="kv_cache", enable_cpu_backup=False):
        cache = full(torch, 2, 32)
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with tms.cuda_graph(tag="cuda_graph", cuda_graph=graph, pool=torch.cuda.graph_pool_handle(), stream=stream):
        out = torch.empty(4 * MB, dtype=torch.uint8, device="cuda")
    at, all_ = [t.data_ptr() for t in (weights, cache, out)], used(torch)
    pipe.send("ready")
    while True:
        word, *more = pipe.recv()
        if word == "end":
            return
        if word in ("pause", "resume"):
            for tag in more[0]:
                getattr(tms, word)(tag=tag)
            torch.cuda.synchronize()
        elif word == "update":
            weights.copy_(torch.full((16 * MB,), more[0], dtype=torch.uint8))
        elif word == "check":
            assert at == [t.data_ptr() for t in (weights, cache, out)] and kept(torch, weights, more[0]) and used(torch) == all_
        pipe.send(used(torch) / MB)


def colocated():
    """Is what verl does in a step, with its engine in a process of its own: weights come back first and are rewritten,
    the KV cache last; requests are sent again where the answer is late. The trainer uses expandable segments in between."""
    import multiprocessing

    import torch
    from torch_memory_saver import configure_subprocess

    here, there = multiprocessing.Pipe()
    with configure_subprocess():
        engine = multiprocessing.get_context("spawn").Process(target=served, args=(there,))
        engine.start()

    def do(*words):
        here.send(words)
        assert here.poll(60), words
        return here.recv()

    assert here.poll(60) and here.recv() == "ready"
    for step in range(3, 6):
        paused = do("pause", ["kv_cache", "weights", "cuda_graph"])
        torch.cuda.memory._set_allocator_settings("expandable_segments:True")
        activations = full(torch, step, 64)
        del activations
        torch.cuda.empty_cache()
        torch.cuda.memory._set_allocator_settings("expandable_segments:False")
        assert do("resume", ["weights"]) == do("resume", ["weights"]) >= paused + 16
        do("update", step)
        do("resume", ["kv_cache", "cuda_graph"])
        do("resume", ["kv_cache", "weights", "cuda_graph"])
        do("check", step)
    here.send(("end",))
    engine.join(60)
    assert engine.exitcode == 0, engine.exitcode


def trainer():
    """Is what slime does: all is in a region; what DeepEP takes from CUDA is not; weights are read where they are."""
    import ctypes

    import torch_memory_saver as package

    root = os.path.dirname(os.path.dirname(package.__file__))
    assert os.path.samefile(os.path.join(root, "torch_memory_saver_hook_mode_preload.abi3.so"), LIBRARY)
    torch, tms = setup()
    assert tms._impl is None
    tms.memory_margin_bytes = 1 * MB
    x = full(torch, 6)
    inside = tms._impl._binary_wrapper.cdll

    def taken():
        at, blocks = ctypes.c_void_p(), tms.status()["tags"][0]["blocks"]
        assert not ctypes.CDLL(None).cudaMalloc(ctypes.byref(at), ctypes.c_size_t(MB))
        return tms.status()["tags"][0]["blocks"] - blocks

    assert inside.tms_get_interesting_region() and taken() == 1
    inside.tms_set_interesting_region(False)
    assert not inside.tms_get_interesting_region() and taken() == 0
    inside.tms_set_interesting_region(True)
    assert inside.tms_get_interesting_region() and taken() == 1
    with tms.disable():
        assert taken() == 0
        inside.tms_set_interesting_region(False)
        inside.tms_set_interesting_region(inside.tms_get_interesting_region())
        assert taken() == 0
    inside.tms_set_interesting_region(True)
    assert taken() == 1

    def weights():
        return x if tms.get_cpu_backup(x, zero_copy=True) is None else tms.get_cpu_backup(x, zero_copy=True)

    assert weights().is_cuda
    tms.pause()
    with tms.disable():
        assert not weights().is_cuda and kept(torch, weights().cuda(), 6)
    tms.resume()
    assert kept(torch, weights(), 6)


def backend():
    torch, tms = setup()
    with tms.region("variable", enable_cpu_backup=True):
        full(torch, 1)
    with tms.region("argument", enable_cpu_backup=True, cpu_backup_backend="pinned"):
        full(torch, 1)
    assert [t["backup"] for t in tms.status()["tags"]] == ["pageable", "pinned"], tms.status()


def refused():
    torch, tms = setup()
    fails(lambda: tms.region().__enter__(), os.environ["WANT"])


ON = {"TMS_INIT_ENABLE": "1"}
CASES = [  # with the environment, and whether the library is preloaded: None for both ways
    (basic, {}, None), (tags, {}, None), (backups, {}, None), (copies, {}, None), (retained, {}, None), (regions, {}, None), (margin, {}, None), (modes, {}, None),
    (retained_by_variable, {"TMS_RETAIN_CPU_BACKUP": "1"}, None),
    (subprocesses, {}, False),
    (started, {**ON, "WANT": "none"}, True),
    (started, {"TMS_INIT_ENABLE": "yes", "TMS_INIT_ENABLE_CPU_BACKUP": "true", "WANT": "pinned"}, True),
    (started, {**ON, "TMS_INIT_ENABLE_CPU_BACKUP": "1", "TMS_INIT_CPU_BACKUP_BACKEND": "mmap", "WANT": "pageable"}, True),
    (started, {**ON, "TMS_INIT_ENABLE_DISK_BACKUP": "1", "TMS_DISK_BACKUP_DIR": "/tmp", "WANT": "file"}, True),
    (engine, {}, None),
    (colocated, {}, False),
    (trainer, {**ON, "TMS_INIT_ENABLE_CPU_BACKUP": "1"}, True),
    (backend, {"TMS_INIT_CPU_BACKUP_BACKEND": "mmap"}, None),
    (refused, {"TMS_INIT_ENABLE": "maybe", "WANT": "neither"}, None),
    (refused, {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", "WANT": "expandable_segments"}, None),
]


def main():
    failed = done = 0
    for case, env, preloaded in CASES:
        for preload in (False, True) if preloaded is None else (preloaded,):
            all_ = {**os.environ, **env, "PYTHONPATH": os.environ["PYTHONPATH"] + f":{MODULE}/stand_in"}
            if preload:
                all_["LD_PRELOAD"] = LIBRARY
            subprocess.run(["rm", "-rf", "disk"], check=True)
            run = subprocess.run([sys.executable, __file__, case.__name__], env=all_, capture_output=True, text=True)
            done += 1
            failed += run.returncode != 0
            print(f"{'failed' if run.returncode else 'ok':6}  {'preload' if preload else 'torch':7}  {case.__name__} {' '.join(f'{k}={v}' for k, v in env.items() if k != 'WANT')}", flush=True)
            if run.returncode:
                print(run.stdout[-2000:], run.stderr[-2000:])
    print(f"{done - failed} of {done} passed")
    return failed


if __name__ == "__main__":
    if len(sys.argv) > 1:
        globals()[sys.argv[1]]()
    else:
        sys.exit(1 if main() else 0)
