#!/usr/bin/env python3
"""Build substitutes of the libraries that a PyTorch wheel needs and does not hold.

usage: substitutes.py SITE OUT

SITE is the folder into which the wheel was unpacked. Every library that the wheel's
own need and that neither the wheel nor the system has gets a substitute in OUT: a
function for each symbol that the wheel takes from it, under the version that the
wheel asks for. So a new release needs no new list. Functions of the sources beside
this script answer properly; all others return 0.
"""
import os
import re
import struct
import subprocess
import sys
from collections import defaultdict

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = {"libcuda": ["driver.c", "memory.c", "functions.c", "shared.c"], "libcudart": ["cudart.c", "capture.c"], "libnvidia-ml": ["nvml.c"]}
OPENED = ["libcuda.so.1", "libnvidia-ml.so.1"]  # by PyTorch itself, whatever it links
NVML = re.compile(rb"\bnvml[A-Z]\w+")  # of which it looks functions up by name
FLAGS = ["-O1", "-fPIC", "-shared", "-w"]


class Library:
    """The dynamic symbols of an ELF file: what it needs, takes and gives."""

    def __init__(self, path):
        self.needed, self.taken, self.given, self.named = [], [], set(), set()
        with open(path, "rb") as f:
            if "libc10_cuda" in path:
                self.named = {name.decode() for name in NVML.findall(f.read())}
                f.seek(0)
            head = f.read(64)
            if head[:5] != b"\x7fELF\x02":
                return
            offset, = struct.unpack_from("<Q", head, 0x28)
            entry, count = struct.unpack_from("<HH", head, 0x3A)
            f.seek(offset)
            table = f.read(entry * count)
            sections = [struct.unpack_from("<IIQQQQIIQQ", table, i * entry) for i in range(count)]

            def data(section):
                f.seek(section[4])
                return f.read(section[5])

            def first(kind):
                return next((s for s in sections if s[1] == kind), None)

            symbols, dynamic, needs, versions = map(first, (11, 6, 0x6FFFFFFE, 0x6FFFFFFF))
            if symbols is None:
                return
            texts = data(sections[symbols[6]])

            def text(at):
                return texts[at:texts.index(b"\0", at)].decode()

            for tag, value in struct.iter_unpack("<qQ", data(dynamic)):
                if tag == 1:
                    self.needed.append(text(value))
            versions = data(versions) if versions else None
            names = self.versions(data(needs), needs[7], text) if needs else {}
            for i, (name, info, _, section, _, _) in enumerate(struct.iter_unpack("<IBBHQQ", data(symbols))):
                if not name:
                    continue
                if section:
                    self.given.add(text(name))
                    continue
                version = struct.unpack_from("<H", versions, 2 * i)[0] & 0x7FFF if versions else 0
                self.taken.append((text(name), *names.get(version, (None, None)), info >> 4 == 2))

    @staticmethod
    def versions(blob, count, text):
        """The version and the library of each number of a version."""
        out, at = {}, 0
        for _ in range(count):
            _, entries, file, aux, step = struct.unpack_from("<HHIII", blob, at)
            entry = at + aux
            for _ in range(entries):
                _, _, number, name, following = struct.unpack_from("<IHHII", blob, entry)
                out[number & 0x7FFF] = text(name), text(file)
                entry += following
            at += step
        return out


def libraries(site):
    """The wheel's libraries, by file name."""
    out = {}
    for folder, _, files in os.walk(os.path.join(site, "torch")):
        for name in files:
            if ".so" in name:
                out[name] = Library(os.path.join(folder, name))
    return out


def system():
    """The libraries of the system, by soname."""
    text = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in text.splitlines() if "=>" in line}


def absent(own):
    """The sonames that a substitute is needed for, with their symbols and versions."""
    here = system()
    missing = {n for lib in own.values() for n in lib.needed if n not in own and n not in here}
    missing |= {n for n in OPENED if n not in here}
    out = {soname: {} for soname in sorted(missing)}
    given = set().union(*(lib.given for lib in own.values()))
    for lib in own.values():
        out["libnvidia-ml.so.1"].update(dict.fromkeys(lib.named))
        for symbol, version, soname, weak in lib.taken:
            if version is None and symbol not in given and not weak:
                soname = owner(symbol, out)
            if soname in out:
                out[soname][symbol] = version
    return out


def stem(soname):
    return soname.partition(".so")[0]


def owner(symbol, sonames):
    """The library of a symbol without a version: that whose name it begins with."""
    found = [s for s in sonames if symbol.lower().lstrip("p_").startswith(stem(s)[3:].partition("_")[0].lower())]
    if found:
        return max(found, key=len)
    return "libcuda.so.1" if re.match(r"cu[A-Z]", symbol) else None


def build(soname, symbols, out, cuda):
    """Compile one substitute."""
    base = os.path.join(out, "gen", soname)
    with open(base + ".c", "w") as f:
        for symbol in sorted(symbols):
            answer = 3 if symbol.startswith("nvml") else 0  # not supported
            f.write(f'__attribute__((weak, visibility("default"))) int {symbol}(void) {{ return {answer}; }}\n')
    subprocess.run(["gcc", "-O1", "-fPIC", "-w", "-c", base + ".c", "-o", base + ".o"], check=True)
    command = ["gcc", *FLAGS, f"-Wl,-soname,{soname}", f"-DCUDA={cuda}"]
    versions = {v for v in symbols.values() if v}
    if len(versions) > 1:
        sys.exit(f"{soname}: the wheel asks for several versions: {', '.join(sorted(versions))}")
    if versions:
        with open(base + ".map", "w") as f:
            f.write("%s { global: *; };\n" % versions.pop())
        command.append(f"-Wl,--version-script={base}.map")
    name = stem(soname)
    command += [os.path.join(HERE, s) for s in SOURCES.get(name, ["mathlibs.c"])]
    command += [f"-DLIB_{name[3:].upper().replace('-', '_')}"]
    if name in ("libcudart", "libnvidia-ml"):
        # PyTorch looks the driver up among the libraries already loaded.
        command += ["-Wl,--no-as-needed", os.path.join(out, "libcuda.so.1")]
    subprocess.run([*command, base + ".o", "-o", os.path.join(out, soname), "-lpthread", "-ldl"], check=True)


def main():
    site, out = sys.argv[1:]
    os.makedirs(os.path.join(out, "gen"), exist_ok=True)
    wanted = absent(libraries(site))
    runtime = next((s for s in wanted if s.startswith("libcudart.so.")), None)
    if runtime is None:
        sys.exit("this wheel is not one for CUDA: it needs no libcudart")
    cuda = int(runtime.rpartition(".")[2])
    for soname in sorted(wanted, key=lambda s: stem(s) != "libcuda"):
        build(soname, wanted[soname], out, cuda)
    print(f"CUDA {cuda}: {len(wanted)} substitutes, {sum(map(len, wanted.values()))} symbols")


main()
