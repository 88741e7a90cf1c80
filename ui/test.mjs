// Runs the unit tests: node knows no TypeScript of its own in all versions
// that we support, so they are bundled first.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const [which = "test", ...rest] = process.argv.slice(2);
const only = rest.filter((a) => !a.startsWith("--")); // only the tests of these files
const options = rest.filter((a) => a.startsWith("--")); // of node, such as --test-name-pattern=NAME
const out = mkdtempSync(join(tmpdir(), "strandline-page-"));
try {
  const names = readdirSync(join(here, which)).filter((n) => n.endsWith(".test.ts") && (!only.length || only.includes(n)));
  await build({
    entryPoints: names.map((n) => join(here, which, n)),
    outdir: out,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    sourcemap: "inline",
    logLevel: "warning",
  });
  const passes = (list) => {
    const args = ["--enable-source-maps", "--test", "--test-concurrency=1", ...options, ...list.map((n) => join(out, n.replace(/ts$/, "mjs")))];
    return spawnSync(process.execPath, args, { stdio: "inherit", cwd: here }).status === 0;
  };
  if (which !== "e2e") {
    process.exitCode = passes(names) ? 0 : 1;
  } else {
    // Scenarios in a browser have two attempts, as all tests that watch processes:
    // docs/decisions/0028.
    for (const n of names.filter((n) => !passes([n]))) {
      console.log(`${n} failed, once more`);
      if (passes([n])) console.log(`flaky: ${n} passed only the second time`);
      else process.exitCode = 1;
    }
  }
} finally {
  rmSync(out, { recursive: true, force: true });
}
