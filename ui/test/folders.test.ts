// The folders of the page's source import each other one way, as the packages of the
// program do (layers_test.go).
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

test("no folder imports itself by way of others", () => {
  const folders = readdirSync("src", { withFileTypes: true }).filter((e) => e.isDirectory()).map((e) => e.name);
  const imports = new Map(folders.map((folder) => {
    const sources = readdirSync(`src/${folder}`).filter((n) => n.endsWith(".ts")).map((n) => readFileSync(`src/${folder}/${n}`, "utf8"));
    return [folder, new Set(sources.flatMap((text) => [...text.matchAll(/from "\.\.\/(\w+)\//g)].map((m) => m[1]!)))];
  }));
  assert.ok(imports.get("page")!.has("rail"), "the imports are found");
  const done = new Set<string>();
  const visit = (folder: string, way: string[]): void => {
    assert.ok(!way.includes(folder), `${[...way, folder].join(" → ")}`);
    if (done.has(folder)) return;
    for (const next of imports.get(folder) ?? []) visit(next, [...way, folder]);
    done.add(folder);
  };
  for (const folder of folders) visit(folder, []);
});
