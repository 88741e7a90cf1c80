import assert from "node:assert/strict";
import { test } from "node:test";
import { filtered, outliersFirst, type Ranked } from "../src/wall/order.ts";

const row = (text: string, peak: number, severity: Ranked["severity"] = null, place = 0): Ranked => ({ text, peak, severity, place });

test("outliers come first: findings by severity and in their order, then peaks far from the middle", () => {
  const rows = [row("a", 100), row("b", 101), row("c", 400), row("d", 100, "info"), row("e", 100, "problem", 1), row("f", 0), row("g", 99), row("h", 1, "problem", 0)];
  assert.equal(outliersFirst(rows).map((r) => r.text).join(""), "hedfcabg");
});

test("rows are filtered by severity and by a search", () => {
  const rows = [row("rank0 leak", 1, "problem"), row("rank1", 1), row("rank2 peak", 1, "info")];
  const texts = (...of: Parameters<typeof filtered> extends [unknown, ...infer R] ? R : never): string[] => filtered(rows, ...of).map((r) => r.text);
  assert.deepEqual(texts("all", ""), ["rank0 leak", "rank1", "rank2 peak"]);
  assert.deepEqual(texts("problem", ""), ["rank0 leak"]);
  assert.deepEqual(texts("none", ""), ["rank1"]);
  assert.deepEqual(texts("all", "RANK[12]"), ["rank1", "rank2 peak"]);
  assert.deepEqual(texts("all", "("), ["rank0 leak", "rank1", "rank2 peak"], "no expression");
});
