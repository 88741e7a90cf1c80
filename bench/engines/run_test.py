"""Tries the judge of run.py on answers that are right and on wrong ones: python3 bench/engines/run_test.py"""
import importlib.util
import os
import unittest

spec = importlib.util.spec_from_file_location("engines", os.path.join(os.path.dirname(os.path.abspath(__file__)), "run.py"))
engines = importlib.util.module_from_spec(spec)
spec.loader.exec_module(engines)
LEAK, CLEAN = (engines.scenarios.Scenario("plain", "plain.py losses", leak=leak) for leak in (True, False))


def finding(file="/x/plain.py", line=90, fact="kept by kept[...] in main() (plain.py:90)", fix="remove tensors from kept", caller=0, function="main", own=0, before=()):
    stack = [*before, frame("/site-packages/loss.py", 42, "loss"), *[frame("/x/other.py", n, "f") for n in range(own)], *[frame("/x/plain.py", n, function) for n in (caller, 91) if caller]]
    return {"stack": stack, "kind": "leak", "severity": "problem", "title": "grows", "site": file and frame(file, line, "loss"), "brief": {"fact": fact}, "remedies": [{"text": fix}]}


def frame(file, line, function):
    return {"file": file, "line": line, "function": function}


def word(scenario, *findings, verdict="leak", **more):
    got = {"doc": {"verdict": verdict, "findings": findings}, "status": 0, "steps": [[40, 40, 40]], "noticed": 40, "errors": "", "marks": ["plain.py", [90]]}
    return engines.judge(scenario, {**got, **more})[0]


class Judge(unittest.TestCase):
    def test_right(self):
        self.assertEqual(word(LEAK, finding()), "right")
        self.assertEqual(word(LEAK, finding("/site-packages/loss.py", 42)), "right")  # allocates what line 90 keeps
        self.assertEqual(word(LEAK, finding("/site-packages/loss.py", 42, "", caller=90)), "right")  # the screen ends its callers with it
        self.assertEqual(word(LEAK, finding("/site-packages/loss.py", 42, "", caller=90, own=2)), "right")
        self.assertEqual(word(LEAK, finding("/site-packages/loss.py", 42, "", caller=90, function="")), "right")  # check knows lines alone
        self.assertEqual(word(CLEAN, verdict="ok"), "right")

    def test_holder(self):
        listed = engines.scenarios.Scenario("plain", "plain.py losses", holder=r"seen\.value")
        for path, want in ("model.seen.value[...]", "right"), ("model.seen.other[...]", "WRONG"):
            self.assertEqual(word(listed, finding("/site-packages/aggregation.py", 492, f"kept by {path} (aggregation.py:492)")), want)

    def test_unknown(self):
        self.assertEqual(word(LEAK, finding(None, fact="")), "unknown")
        self.assertEqual(word(LEAK, verdict="unknown"), "unknown")
        self.assertEqual(word(CLEAN, verdict="unknown"), "unknown")

    def test_wrong(self):
        for name, got in {
            "another line": word(LEAK, finding(line=91)),
            "another holder": word(LEAK, finding(fact="kept by x (plain.py:91)")),
            "another holder to mend": word(LEAK, finding(fix="remove tensors from x at /x/plain.py:91")),
            "one of two lines": word(LEAK, finding(fact="kept by x (plain.py:90 or 91)")),
            "a framework's line alone": word(LEAK, finding("/site-packages/loss.py", 42, "")),
            "another caller": word(LEAK, finding("/site-packages/loss.py", 42, "", caller=12)),
            "a module that calls": word(LEAK, finding("/site-packages/loss.py", 42, "", caller=90, function="<module>")),
            "a caller behind three of the program": word(LEAK, finding("/site-packages/loss.py", 42, "", caller=90, own=3)),
            "a line that the place calls": word(LEAK, finding("/site-packages/loss.py", 42, "", before=[frame("/x/plain.py", 90, "hook")])),
            "another line that the marked one calls": word(LEAK, finding(line=91, fact="", caller=90)),
            "a second problem": word(LEAK, finding(), finding(line=12, fact="")),
            "none": word(LEAK, verdict="ok"),
            "an alarm": word(CLEAN, finding()),
            "an alarm without a problem": word(CLEAN, verdict="oom"),
            "a program that failed": word(CLEAN, verdict="ok", status=1),
            "steps that are missing": word(CLEAN, verdict="ok", steps=[[39, 40, 39]]),
            "steps that were not noticed": word(CLEAN, verdict="ok", noticed=39),
        }.items():
            self.assertEqual(got, "WRONG", name)


if __name__ == "__main__":
    unittest.main()
