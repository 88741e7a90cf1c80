"""Tries the judge of services.py on answers that are right and on wrong ones: python3 bench/engines/answers_test.py"""
import unittest

from answers import Want, falsified, judge

CLEAN, LEAK, FILLS = Want(), Want(pid=7, line=("keeper.py", [11])), Want(bound="cache-ram")


def finding(file="/x/keeper.py", line=11, severity="problem", kind="leak", **more):
    return {"kind": kind, "severity": severity, "title": "grows", "process": "pid 7 (python)", "site": {"file": file, "line": line, "function": "f"}, **more}


def watch(*findings):
    return {"samples": 41, "processes": [{"pid": 7}], "findings": list(findings)}


def soak(verdict, *missing):
    return {"verdict": verdict, "missing": list(missing), "pid": 7, "waves": [{}]}


RIGHT = {
    "a leak": (watch(finding()), LEAK),
    "a package's line": (watch(finding("/y/site-packages/p.py", 3, brief={"fact": "kept by x (keeper.py:11)"})), LEAK),
    "a clean watch": (watch(), CLEAN),
    "a clean soak": (soak("ok"), CLEAN),
    "the bound in a warning": (watch(finding(severity="warning", detail=["up to 8 GiB (`--cache-ram`)"])), FILLS),
    "the bound in a soak": (soak("unknown", "up to 8 GiB (`--cache-ram`)"), FILLS),
}
OTHERS = {
    "no document": (None, CLEAN),
    "an empty document": ({}, CLEAN),
    "a watch without samples": (dict(watch(), samples=0), CLEAN),
    "a watch of another process": (dict(watch(), processes=[{"pid": 8}]), CLEAN),
    "a soak without waves": (dict(soak("ok"), waves=[]), CLEAN),
    "an alarm": (watch(finding()), CLEAN),
    "an alarm without a problem": (soak("leak"), CLEAN),
    "a warning": (watch(finding(severity="warning", kind="growth")), CLEAN),
    "silence of a cache that fills": (watch(), FILLS),
    "a verdict of a cache that fills": (soak("ok"), FILLS),
    "a warning that names no bound": (watch(finding(severity="warning")), FILLS),
    "silence of a leak": (watch(), LEAK),
    "a line of another file, and the holder": (watch(finding("/x/other.py", brief={"fact": "kept by x (keeper.py:11)"}, evidence={"held_by": [{"file": "/x/keeper.py", "line": 11}]})), LEAK),
    "another line, and the holder": (watch(finding(line=12, brief={"fact": "kept by x (keeper.py:11)"})), LEAK),
    "a holder that the screen does not name": (watch(finding("/y/site-packages/p.py", 3, evidence={"held_by": [{"file": "/x/keeper.py", "line": 11}]})), LEAK),
    "a second problem": (watch(finding(), finding("/x/keeper.py", 12)), LEAK),
    "another process": (watch(finding(process="pid 8 (python)")), LEAK),
}


class Judge(unittest.TestCase):
    def test_right(self):
        for name, (doc, want) in RIGHT.items():
            self.assertEqual(judge(doc, want, 7)[0], "right", name)
            for near in falsified(doc, want, 7):
                self.assertNotEqual(judge(*near)[0], "right", (name, near))

    def test_others(self):
        for name, (doc, want) in OTHERS.items():
            self.assertNotEqual(judge(doc, want, 7)[0], "right", name)


if __name__ == "__main__":
    unittest.main()
