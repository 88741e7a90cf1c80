"""Judges the answers of services.py."""
import json
import os
import re
import sys

from screen import called_in, installed, named_in

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cases"))
from run import findings_of  # noqa: E402

DOUBTS = ("leak", "heap-leak", "python-objects", "growth", "unexplained")  # kinds of warnings that a leak may have


class Want:
    """What each problem must name: a line, or what holds the memory where no line is named, a process by its number and words. One names the pool by words of its title. Without any of them, no problem. With device, figures of one. With bound, a warning that names it."""

    def __init__(self, line=None, holder=None, pid=None, process=None, title=None, device=False, bound=None):
        self.line, self.holder, self.pid, self.process, self.title, self.device, self.bound = line, holder, pid, process, title, device, bound

    def leak(self):
        return any((self.line, self.pid, self.process, self.title))

    def names(self, f):
        held = self.holder and not f.get("site") and self.holder in ((f.get("brief") or {}).get("fact") or "")
        if self.line and not held and not self.at(f):
            return False
        if self.pid and not re.search(rf"\bpid ?{self.pid}\b", f.get("process") or f.get("title", "")):
            return False
        if self.process and self.process not in (f.get("process") or f.get("title", "")):
            return False
        return True

    def at(self, f):
        """Whether the first screen names the line and no other of its file. A package may allocate for it."""
        file, lines = self.line
        here = named_in(f, file) or called_in(f, file)
        site = (f.get("site") or {}).get("file") or file
        return bool(here) and here <= set(lines) and (os.path.basename(site) == file or installed(site))

    def pool(self, problems):
        """One names the pool: tensors that are kept have objects in main memory, too."""
        return not self.title or any(re.search(self.title, f.get("title", "")) for f in problems)

    def others(self):
        """Answers that are wrong here."""
        yield Want() if self.leak() else Want(title=".")
        if self.line:
            yield Want(line=(self.line[0], [10 ** 6]))
        if self.pid:
            yield Want(pid=str(self.pid) + "1")
        if self.process:
            yield Want(process=self.process + "X")
        if self.title:
            yield Want(title="no title has this")
        if self.bound:
            yield Want(bound="no such bound")


def saw(doc, pid):
    """Whether a document judges something, and of the process that was asked."""
    judged = doc.get("verdict") or doc.get("samples") or doc.get("rss_bytes")
    asked = [doc.get("pid"), *(p.get("pid") for p in doc.get("processes") or [])]
    return bool(judged and (doc.get("runs") or doc.get("waves") or doc.get("processes"))) and (not pid or int(pid) in asked)


def saw_device(doc):
    """Whether a watch or a soak has figures of a device."""
    return bool(doc.get("devices") or any(w.get("devices") for w in doc.get("waves") or []))


def judge(doc, want, pid=None, said=""):
    """right, unknown or WRONG, and why. The process pid was asked."""
    if doc is None:
        return "WRONG", "no document: " + said
    if "error" in doc:
        return "WRONG", doc["error"]
    if not saw(doc, pid):
        return "WRONG", "it has seen nothing of the server"
    if want.device and not saw_device(doc):
        return "WRONG", "it has seen no device"
    found = findings_of(doc)
    problems = [f for f in found if f["severity"] == "problem"]
    warnings = [f for f in found if f["severity"] == "warning"]
    verdict, missing = doc.get("verdict"), [m for of in (doc, *(doc.get("runs") or [])) for m in of.get("missing") or []]
    if want.leak():
        other = [f["title"] for f in problems if not want.names(f)]
        if other or problems and not want.pool(problems):
            return "WRONG", "elsewhere: " + (other or [f["title"] for f in problems])[0]
        if problems:
            return "right", problems[0]["title"]
        warnings = [f for f in warnings if f["kind"] in DOUBTS]
        if verdict != "unknown" and not warnings:
            return "WRONG", "no problem"
    elif problems or verdict not in (None, "ok", "unknown"):
        return "WRONG", problems[0]["title"] if problems else verdict
    if verdict in (None, "ok") and not warnings:
        return ("WRONG", "the bound is not named") if want.bound else ("right", verdict or "no problem")
    if want.bound and warnings + missing and all(want.bound in json.dumps(x) for x in warnings + missing):
        return "right", "the bound is named: " + want.bound
    return "unknown", warnings[0]["title"] if warnings else (missing or ["no verdict"])[-1]


def falsified(doc, want, pid):
    """Answers and plants near a right answer, none of which is right."""
    def with_findings(found, **more):
        runs = [dict(r, findings=[], missing=[]) for r in doc.get("runs") or []]
        return dict(doc, findings=found, runs=runs, judged=[], **more)
    for other in want.others():
        yield doc, other, pid
    found = findings_of(doc)
    elsewhere = {"kind": "leak", "severity": "problem", "title": "elsewhere", "process": "another", "site": {"file": "/x/other.py", "line": 1, "function": "f"}}
    yield {}, want, pid
    yield with_findings(found + [elsewhere]), want, pid
    if pid:
        yield doc, want, f"{pid}1"
    if want.bound or want.leak():
        yield with_findings([], verdict="ok", missing=[]), want, pid
    else:
        yield with_findings(found + [dict(elsewhere, kind="growth", severity="warning")]), want, pid
        yield dict(doc, verdict="unknown"), want, pid
    if want.line:
        yield with_findings([dict(f, site=elsewhere["site"]) for f in found]), want, pid
        yield with_findings([dict(f, site={"file": want.line[0], "line": 10 ** 6, "function": "f"}) for f in found]), want, pid
