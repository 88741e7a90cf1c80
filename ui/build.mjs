// Builds the page into ../face/web/assets, which the Go program embeds, compressed.
// `node build.mjs --check` builds nothing: it fails if the files there are not
// what the sources give.
import { build } from "esbuild";
import { readFile, writeFile, mkdir } from "node:fs/promises";
import { gunzipSync, gzipSync } from "node:zlib";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const out = here("../face/web/assets/");

const result = await build({
  entryPoints: ["page/app.ts", "page/app.css", "plan/plan.ts", "plan/plan.css", "recording/recording.ts", "recording/recording.css", "watch/watch.ts", "watch/watch.css", "saved/saved.ts", "site/site.ts"].map((name) => here(`src/${name}`)),
  outdir: out,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome109", "firefox115", "safari16"],
  charset: "utf8",
  legalComments: "none",
  write: false,
});
const files = result.outputFiles.map((f) => ({ name: f.path.split("/").pop(), bytes: Buffer.from(f.contents) }));
for (const path of ["page/index.html", "plan/plan.html"]) files.push({ name: path.split("/").pop(), bytes: await readFile(here(`src/${path}`)) });
const recorded = await readFile(here("src/picture/recorded.html"), "utf8"); // the pages of both kinds of recordings
for (const [page, search] of [["recording", "Search stacks"], ["watch", "Search"]]) files.push({ name: `${page}.html`, bytes: Buffer.from(recorded.replaceAll("{{page}}", page).replace("{{search}}", search)) });

const check = process.argv.includes("--check");
await mkdir(out, { recursive: true });
const sizes = { page: 0, plan: 0, recording: 0, watch: 0, saved: 0, site: 0 }; // each of the pages, and what others have before them, packed
for (const { name, bytes } of files) {
  const packed = gzipSync(bytes, { level: 9 });
  sizes[Object.keys(sizes).find((page) => name.startsWith(`${page}.`)) ?? "page"] += packed.length;
  if (!check) {
    await writeFile(`${out}${name}.gz`, packed);
    continue;
  }
  const there = await readFile(`${out}${name}.gz`).then(gunzipSync).catch(() => Buffer.alloc(0));
  if (!there.equals(bytes)) {
    console.error(`face/web/assets/${name}.gz is not built from ui/src: run "npm run build" in ui/`);
    process.exitCode = 1;
  }
}
for (const [name, gzip] of Object.entries(sizes)) {
  console.log(`${name}: ${(gzip / 1024).toFixed(1)} KiB gzip`);
  if (gzip > 75 * 1024) {
    console.error(`${name} is larger than 75 KiB gzip`);
    process.exitCode = 1;
  }
}
