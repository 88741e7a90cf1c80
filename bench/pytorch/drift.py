#!/usr/bin/env python3
"""Print what a release of PyTorch has and strandline does not know: drift.py DIR...

DIR are environments of setup.sh. Read off the release itself: the options that its
parser takes, the actions and fields of its trace, the keys of a snapshot, the sizes by
which its allocator decides, the functions of its allocator and what it takes from the
driver. What strandline knows is read off its sources, and for names that no source
holds, off the lists below. Exit status 1 if something is unknown.
"""
import glob
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TORCH = os.path.join(HERE, "..", "..", "torch")

# Functions of CUDAAllocator that change no block, or whose effect the replay has.
KNOWN_FUNCTIONS = set("""
raw_alloc raw_alloc_with_stream raw_delete init initialized getMemoryFraction setMemoryFraction emptyCache enable
isEnabled cacheInfo getBaseAllocation recordStream getDeviceStats resetAccumulatedStats resetPeakStats snapshot
beginAllocateToPool endAllocateToPool releasePool getPoolUseCount createOrIncrefPool ensureExistsAndIncrefPool
setUseOnOOM setNoSplit checkPoolLiveAllocations getIpcDevPtr shareIpcHandle isHistoryEnabled recordHistory
recordAnnotation pushCompileContext popCompileContext setUserMetadata getUserMetadata attachOutOfMemoryObserver
attachAllocatorTraceTracker enablePeerAccess memcpyAsync getCheckpointState setCheckpointPoolState name allocate
allocateWithAddress raw_deleter copy_data is_simple_data_ptr getMempoolId getMemoryInfo getExpandableSegmentSizes
supportsUserMetadata annotateMemory getContextForPointer attachOomRejectionObserver Execute
markCaptureBegin markCaptureEnd
""".split())
# Constants whose values the simulation has (torch/allocator).
KNOWN_SIZES = {"kMinBlockSize": 512, "kSmallSize": 1 << 20, "kSmallBuffer": 2 << 20, "kMinLargeAlloc": 10 << 20,
               "kRoundLarge": 2 << 20, "kLargeBuffer": 20 << 20}

PROBE = r"""
import json, re, sys, glob, os, torch
set_ = getattr(torch._C, "_accelerator_setAllocatorSettings", None) or \
    torch._C._cuda_cudaCachingAllocator_set_allocator_settings
lib = os.path.join(os.path.dirname(torch.__file__), "lib")
words = set()
for name in "libc10.so", "libc10_cuda.so":
    with open(os.path.join(lib, name), "rb") as f:
        words |= {w.decode() for w in re.findall(rb"[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?=\0)", f.read())}
options = []
for word in sorted(words):
    try:
        set_(word + ":True")
        options.append(word)
    except Exception as e:
        if "Unrecognized" not in str(e):
            options.append(word)
set_("")
torch.cuda.memory._record_memory_history(stacks="python")
kept = [torch.empty(n << 20, device="cuda") for n in (1, 3, 30)]
del kept[1]
s = torch.cuda.memory._snapshot()
keys = {"snapshot": sorted(s), "settings": sorted(s["allocator_settings"]),
        "segment": sorted({k for x in s["segments"] for k in x}),
        "block": sorted({k for x in s["segments"] for b in x["blocks"] for k in b}),
        "event": sorted({k for t in s["device_traces"] for e in t for k in e})}
print(json.dumps({"torch": torch.__version__, "options": options, "keys": keys, "stats": sorted(torch.cuda.memory_stats())}))
"""


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def strings(text):
    return set(re.findall(r'"([^"]*)"', text))


def between(text, start, end):
    return text[text.index(start):].partition(end)[0]


def known():
    keys = read(os.path.join(TORCH, "snapshot", "keys.go"))
    model = read(os.path.join(TORCH, "snapshot", "model.go"))
    extras = read(os.path.join(TORCH, "snapshot", "recognize.go"))
    unknown = read(os.path.join(TORCH, "snapshot", "unknown.go"))
    return {
        "options": strings(between(read(os.path.join(TORCH, "allocator", "settings.go")), "var (\n\treleaseLock", "func differs"))
        | strings("".join(re.findall(r'hostSize\("[^"]+"', read(os.path.join(TORCH, "allocator", "settings.go"))))),
        "actions": strings(between(model, "actionNames = ", "\n}")),
        "keys": strings(between(keys, "keyNames = ", "\n}\n")) | strings(between(extras, "knownExtras = ", "\n}")),
        "settings": strings(between(unknown, "knownSettings = ", "\n}")),
    }


def headers(directory):
    """The headers of the allocator, which the wheel holds."""
    folder = glob.glob(os.path.join(directory, "python", "lib", "python*", "site-packages", "torch", "include", "c10"))[0]
    names = ("cuda/CUDACachingAllocator.h", "core/CachingDeviceAllocator.h", "core/AllocatorConfig.h",
             "cuda/CUDAAllocatorConfig.h")
    return "\n".join(read(os.path.join(folder, n)) for n in names if os.path.exists(os.path.join(folder, n)))


def drift(directory):
    """What a release has and strandline does not know, a sentence each."""
    out = subprocess.run([os.path.join(directory, "python", "bin", "python"), "-c", PROBE], capture_output=True,
                         text=True, env={**os.environ, "LD_LIBRARY_PATH": os.path.join(directory, "cuda")})
    if out.returncode:
        raise RuntimeError(out.stderr.strip().split("\n")[-1])
    has, know = json.loads(out.stdout), known()
    found = [f"option {o}" for o in has["options"] if o not in know["options"]]
    found += [f"key {record}.{k}" for record in ("snapshot", "segment", "block", "event")
              for k in has["keys"][record] if k not in know["keys"]]
    found += [f"setting {k}" for k in has["keys"]["settings"] if k not in know["settings"]]
    text = headers(directory)
    for body in re.findall(r"enum Action \{(.*?)\}", text, re.S):
        names = re.findall(r"^\s*([A-Z_]+)\b", re.sub(r"//.*", "", body), re.M)
        found += [f"action {n.lower()}" for n in names if n.lower() not in know["actions"]]
    for name in sorted(set(re.findall(r"virtual [\w:<>,\s*&]+?\b(\w+)\(", text))):
        if name not in KNOWN_FUNCTIONS:
            found.append(f"function {name}")
    for name, value in re.findall(r"constexpr size_t (k\w+) = ([\d' ]+);", text):
        if KNOWN_SIZES.get(name) != int(re.sub(r"[' ]", "", value)):
            found.append(f"constant {name} = {value}")
    return has["torch"], found


def main():
    bad = False
    for directory in sys.argv[1:]:
        try:
            release, found = drift(directory)
        except (RuntimeError, IndexError, OSError) as e:
            release, found = directory, [f"cannot be read: {e}"]
        print(f"{release}: {len(found)} unknown")
        for line in found:
            print(f"  {line}")
        bad = bad or bool(found)
    sys.exit(bad)


if __name__ == "__main__":
    main()
