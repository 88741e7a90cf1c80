#!/usr/bin/env python3
"""Measures what `strandline watch` itself takes, beside top and atop where they are installed.

    bench/watch/cost.py --strandline ./strandline [--processes 200] [--seconds 180] [--change 1]
        [--each 60] [--terminal]

Needs no GPU: the library of the driver (NVML) is host/gpu/nvml/testdata/fake.c, built here
with gcc, and counts 8 devices on which all processes hold memory. With --change 1 every
process takes 64 KiB more each second, and every few minutes gives them back; with 0 they
are idle. Prints the processor time of one core and the resident memory of each program,
as the kernel counts them, from 20 seconds after they start. With --each it prints, so
often, what the watch took since it started, for runs of an hour; with --terminal the watch
draws on a terminal of 50 lines.
"""
import argparse
import mmap
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
KIB, MIB = 1 << 10, 1 << 20
DEVICES, TOTAL, HELD, PIECE, MOST = 8, 80 << 30, 256 * MIB, 64 * KIB, 32 * MIB
TICK = os.sysconf("SC_CLK_TCK")


def hold(change):
    """What each process does, until its parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    memory = mmap.mmap(-1, MOST, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    parent, at, touched = os.getppid(), 0, bytes(PIECE)
    while os.getppid() == parent:
        time.sleep(1)
        if change:
            memory[at : at + PIECE] = touched
            at += PIECE
        if at == MOST:
            memory.madvise(mmap.MADV_DONTNEED)
            at = 0


def start(processes, change):
    pids = []
    for _ in range(processes):
        pid = os.fork()
        if pid == 0:
            try:
                hold(change)
            finally:
                os._exit(0)
        pids.append(pid)
        time.sleep(1 / processes)  # else all would wake at once
    return pids


def driver(folder, pids):
    """Builds the library, and the text that says what it counts."""
    library = os.path.join(folder, "libnvidia-ml.so.1")
    source = os.path.join(HERE, "../../host/gpu/nvml/testdata/fake.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", library, source], check=True)
    with open(os.path.join(folder, "devices"), "w") as f:
        f.write("version 550.1\n")
        for i in range(DEVICES):
            held = [f"process compute {pid} {HELD}\n" for pid in pids[i::DEVICES]]
            used = len(held) * HELD + 500 * MIB
            f.write(f"device GPU-{i} NVIDIA_H100 {TOTAL} {used} {TOTAL - used} {500 * MIB}\n")
            f.writelines(held)
    return dict(os.environ, LD_LIBRARY_PATH=folder, FAKE_NVML=f.name)


def family(pid):
    """The process and those that it started: the library is loaded in one of its own."""
    out = [pid]
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as f:
            for child in f.read().split():
                out += family(int(child))
    return out


def spent(pid):
    """Seconds of processor time of a process and its children."""
    total = 0
    for one in family(pid):
        with open(f"/proc/{one}/stat") as f:
            fields = f.read().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICK


def resident(pid, key):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(key)) / 1024


def terminal():
    """A terminal that somebody reads: its end for a program."""
    reader, writer = pty.openpty()
    termios.tcsetwinsize(writer, (50, 180))

    def read():
        while os.read(reader, 1 << 16):
            pass

    threading.Thread(target=read, daemon=True).start()
    return writer


def follow(program, seconds, each):
    """Waits, and prints so often what a program took since it started."""
    began = time.monotonic()
    while (took := time.monotonic() - began) < seconds and program.poll() is None:
        time.sleep(min(each or seconds, seconds - took))
        if each:
            took = time.monotonic() - began
            print(f"{took:6.0f} s {100 * spent(program.pid) / took:5.2f} % of a core, {resident(program.pid, 'VmRSS'):4.1f} MiB, "
                  f"load average {os.getloadavg()[0]:.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--strandline", required=True)
    parser.add_argument("--processes", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=180)
    parser.add_argument("--change", type=int, choices=[0, 1], default=1)
    parser.add_argument("--each", type=int, default=0)
    parser.add_argument("--terminal", action="store_true")
    o = parser.parse_args()
    others = [c for c in (["top", "-b", "-d", "1"], ["atop", "1"]) if shutil.which(c[0])]
    with tempfile.TemporaryDirectory() as folder:
        pids = start(o.processes, o.change)
        environment = driver(folder, pids)
        record = os.path.join(folder, "watch.strandline")
        commands = [[o.strandline, "watch", "--out", record], *others]
        programs = []
        for c in commands:
            shown = terminal() if o.terminal and not programs else subprocess.DEVNULL
            programs.append(subprocess.Popen(c, env=environment, stdin=shown, stdout=shown, stderr=subprocess.DEVNULL))
        time.sleep(20)
        before, began = [spent(p.pid) for p in programs], time.monotonic()
        follow(programs[0], o.seconds, o.each)
        took = time.monotonic() - began
        for command, program, was in zip(commands, programs, before):
            if program.poll() is not None:
                print(f"{os.path.basename(command[0]):12} ended with status {program.returncode}")
                continue
            print(f"{os.path.basename(command[0]):12} {100 * (spent(program.pid) - was) / took:5.2f} % of a core, "
                  f"{resident(program.pid, 'VmRSS'):4.0f} MiB, at most {resident(program.pid, 'VmHWM'):4.0f}")
        print(f"load average {os.getloadavg()[0]:.1f}, the recording has {os.path.getsize(record) / KIB:.0f} KiB")
        status = programs[0].poll()
        for program in programs:
            program.send_signal(signal.SIGINT)
            try:
                program.wait(10)
            except subprocess.TimeoutExpired:
                program.kill()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
    return 0 if status is None else 1


if __name__ == "__main__":
    sys.exit(main())
