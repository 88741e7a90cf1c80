// The sources keep their shape: small files, and folders that need each other
// one way only.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";

const files = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((f) => f.endsWith(".ts"));
const text = new Map(files.map((f) => [f, readFileSync(join("src", f), "utf8")]));
const imports = (f: string): string[] => [...text.get(f)!.matchAll(/^import [^"]*"(\.[^"]+)";$/gm)].map((m) => join(dirname(f), m[1]!));

test("no file of the page is longer than 600 lines", () => {
  assert.ok(files.length > 40, `${files.length} files were found`);
  const written = files.filter((f) => !text.get(f)!.startsWith("// Made from"));
  assert.deepEqual(written.filter((f) => text.get(f)!.split("\n").length > 600), []);
});

test("no file of the page needs itself by way of others", () => {
  const done = new Set<string>();
  const visit = (f: string, path: string[]): void => {
    assert.ok(!path.includes(f), `${[...path.slice(path.indexOf(f)), f].join(" needs ")}`);
    if (done.has(f)) return;
    for (const to of imports(f)) visit(to, [...path, f]);
    done.add(f);
  };
  for (const f of files) visit(f, []);
});

test("text in pictures is written by the one function that makes it safe", () => {
  const safe = ["picture/canvas.ts", "base/save.ts", "rail/rail.ts"]; // the last two write what elements show, or print it themselves
  assert.deepEqual(files.filter((f) => !safe.includes(f) && /\.(fill|stroke)Text\(/.test(text.get(f)!)), []);
});

test("base needs no other folder, and picture needs only base", () => {
  const folder = (f: string): string => f.split("/")[0]!;
  const may: Record<string, string[]> = { base: ["base"], picture: ["base", "picture"] };
  for (const f of files) for (const to of imports(f)) if (may[folder(f)]) assert.ok(may[folder(f)]!.includes(folder(to)), `${f} needs ${to}`);
});
