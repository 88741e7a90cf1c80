import assert from "node:assert/strict";
import { test } from "node:test";
import type { Site } from "../src/base/api.ts";
import { byFunction } from "../src/compare/runs.ts";

const site = (file: string | null, line: number, name: string, bytes: number[], missing = ""): Site => ({ key: `${file}${line}${name}`, file, line: file ? line : null, function: file ? name : null, missing, bytes, count: bytes.map(() => 1), survivors: 0, bytes_per_step: 0 } as Site);

test("a line that moved between two runs is one place, as compare --runs has it", () => {
  const rows = byFunction([site("/old/app/train.py", 26, "loss", [10, 0]), site("/new/app/train.py", 30, "loss", [0, 12]), site("/new/app/train.py", 31, "step", [0, 3]), site(null, 0, "", [5, 0], "before the recording"), site(null, 0, "", [7, 7], "autograd thread")]);
  assert.deepEqual(rows.map((r) => [r.file, r.line, r.missing, r.bytes]), [["/new/app/train.py", 30, "", [10, 12]], ["/new/app/train.py", 31, "", [0, 3]], [null, null, "before the recording", [5, 0]], [null, null, "autograd thread", [7, 7]]]);
});
