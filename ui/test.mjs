// Runs the unit tests: node knows no TypeScript of its own in all versions
// that we support, so they are bundled first.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const which = process.argv[2] ?? "test";
const out = mkdtempSync(join(tmpdir(), "strandline-page-"));
try {
  const names = readdirSync(join(here, which)).filter((n) => n.endsWith(".test.ts"));
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
  const args = ["--enable-source-maps", "--test", "--test-concurrency=1", ...names.map((n) => join(out, n.replace(/ts$/, "mjs")))];
  process.exitCode = spawnSync(process.execPath, args, { stdio: "inherit", cwd: here }).status ?? 1;
} finally {
  rmSync(out, { recursive: true, force: true });
}
