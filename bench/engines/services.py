#!/usr/bin/env python3
"""Tries commands on a running vLLM server and on actors of Ray, and prints a table.

    bench/engines/services.py [OPTIONS] vllm --url URL --pid N --log FILE --keep FILE
    bench/engines/services.py [OPTIONS] ray --python PATH
    bench/engines/services.py [OPTIONS] llama --server PATH --python PATH

    --strandline PATH  the program to try (default: built from this checkout)
    --seconds N        how long a watch and a trace take (default 40)

The server runs with the middleware keeper.Keeper of programs/ (`--middleware`), which keeps something of
each request while the file KEEP of its environment exists: --keep is that file, --log the server's output.
Ray is started here, with two actors of which one keeps what it is sent. So is llama-server (cmake's target of that
name in llama.cpp, as in the source archive of llama-cpp-python); PATH has the package gguf, which makes its model.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cases"))
from run import built, findings_of, run_json, text_of  # noqa: E402


class Table:
    """Tries a command, and prints whether its problems are those that are planted."""

    def __init__(self, options):
        self.options = options
        self.folder = tempfile.mkdtemp(prefix="services-")
        self.wrong = 0

    def ask(self, name, command, says="", has=None, bounded=False):
        """Problems must match says, and there must be one; without it there must be none. A document must contain has. Of
        a cache that still fills, unknown is right."""
        began = time.time()
        doc, done = run_json([self.options.strandline, *command], dict(os.environ), self.folder)
        problems = [f for f in findings_of(doc) if f["severity"] == "problem"]
        other = [f["title"] for f in problems if not says or not re.search(says, text_of(f) + json.dumps(f))]
        if doc and "error" in doc:
            word, why = "WRONG", doc["error"]
        elif doc is None:
            word, why = "WRONG", "no document: " + (done.stderr.strip().splitlines() or ["nothing said"])[-1]
        elif other:
            word, why = "WRONG", other[0]
        elif says and not problems:
            word, why = "unknown" if doc.get("verdict") == "unknown" else "WRONG", "no problem"
        elif not says and not bounded and doc.get("verdict") == "unknown":
            word, why = "unknown", (doc.get("missing") or ["no verdict"])[-1]
        elif has and not re.search(has, json.dumps(doc)):
            word, why = "WRONG", "without " + has
        else:
            word, why = "right", problems[0]["title"] if problems else doc.get("verdict") or has or "no problem"
        self.wrong += word == "WRONG"
        print(f"{name:18} cpu  {word:8} {time.time() - began:4.0f} s  {why[:160]}", flush=True)
        return doc


def sending(url, question):
    """Sends what question gives, numbered from 1, until the result is set."""
    done = threading.Event()

    def send():
        i = 0
        while not done.is_set():
            i += 1
            try:
                urllib.request.urlopen(urllib.request.Request(url, json.dumps(question(i)).encode(), {"Content-Type": "application/json"}), timeout=60).read()
            except OSError:
                time.sleep(0.5)
    threading.Thread(target=send, daemon=True).start()
    return done


def load(url):
    """Sends one prompt again and again."""
    return sending(url + "/v1/completions", lambda _: {"model": "tiny", "prompt": "hello", "max_tokens": 2, "temperature": 0})


def vllm(table, o):
    duration = f"{o.seconds}s"
    table.ask("vllm-log", ["plan", "--json", "--check", o.log], has=r"vllm")
    soak = ["soak", "--json", "--url", o.url + "/v1", "--requests", str(o.requests), "--input", "24", "--output", "4", "--pid", str(o.pid)]
    for leak in (False, True):
        kind = "-kept" if leak else ""
        if leak:
            open(o.keep, "w").close()
        table.ask("vllm-soak" + kind, soak, says=r"host memory|kept" if leak else "")
        for command in ("watch", "trace"):
            done = load(o.url)
            says = {"watch": "anonymous memory", "trace": r"keeper\.py"}[command] if leak else ""
            table.ask(f"vllm-{command}{kind}", [command, "--json", "--pid", str(o.pid), "--duration", duration], says=says)
            done.set()
    os.remove(o.keep)


def ray(table, o):
    seconds = 3 * o.seconds + 60
    slow = dict.fromkeys(("RAY_raylet_start_wait_time_s", "RAY_gcs_server_request_timeout_seconds", "RAY_gcs_rpc_server_reconnect_timeout_s"), "600")
    actors = subprocess.Popen([o.python, os.path.join(HERE, "programs", "actors.py"), str(seconds)], stdout=subprocess.PIPE, text=True, env=dict(os.environ, **slow))
    keeps, other = actors.stdout.readline().split()
    try:
        table.ask("ray-watch", ["watch", "--json", "--pid", str(actors.pid), "--duration", f"{o.seconds}s"], says="anonymous memory", has="Buffer")
        table.ask("ray-trace-kept", ["trace", "--json", "--pid", keeps, "--duration", f"{o.seconds}s"], says=r"actors\.py")
        table.ask("ray-trace-clean", ["trace", "--json", "--pid", other, "--duration", f"{o.seconds}s"])
        table.ask("ray-logs", ["diagnose", "--json", os.path.realpath("/tmp/ray/session_latest/logs")])
    finally:
        actors.terminate()
        actors.wait()


def prompts(url):
    """Sends distinct prompts."""
    return sending(url + "/completion", lambda i: {"prompt": " ".join(str(259 + (i * 7919 + k * 31) % 250) for k in range(300)), "n_predict": 2})


def llama(table, o):
    """A cache of prompts that is off, that fills within a watch, and that does not."""
    model, port = os.path.join(table.folder, "tiny.gguf"), 8931
    subprocess.run([o.python, os.path.join(HERE, "programs", "tinygguf.py"), model], check=True)
    for name, mib, has in (("off", 0, None), ("full", 128, None), ("fills", 8192, "cache-ram")):
        server = subprocess.Popen([o.server, "-m", model, "--port", str(port), "-c", "2048", "-np", "1", "--cache-ram", str(mib), "-t", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        done = prompts(f"http://127.0.0.1:{port}")
        try:
            time.sleep(8)
            for command in ("watch", "trace"):
                table.ask(f"llama-{command}-{name}", [command, "--json", "--pid", str(server.pid), "--duration", f"{o.seconds}s"], has=has if command == "watch" else None, bounded=name == "fills")
        finally:
            done.set()
            server.terminate()
            server.wait()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--strandline")
    parser.add_argument("--seconds", type=int, default=40)
    parser.add_argument("--requests", type=int, default=60)
    parser.add_argument("--url", default="http://127.0.0.1:8765")
    parser.add_argument("--pid", type=int)
    parser.add_argument("--log")
    parser.add_argument("--keep")
    parser.add_argument("--python")
    parser.add_argument("--server")
    parser.add_argument("what", choices=["vllm", "ray", "llama"])
    options = parser.parse_args()
    options.strandline = options.strandline or built()
    table = Table(options)
    {"vllm": vllm, "ray": ray, "llama": llama}[options.what](table, options)
    return 1 if table.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
