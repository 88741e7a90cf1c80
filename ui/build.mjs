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
files.push({ name: "plan.html", bytes: await readFile(here("src/plan/plan.html")) });
const frame = await readFile(here("src/page/page.html"), "utf8"); // of the pages of snapshots and of both kinds of recordings
for (const [page, script, style, search, axis] of [["index", "app", "", "Search sites", "events"], ["recording", "recording", "recording.css", "Search stacks", "time"], ["watch", "watch", "watch.css", "Search", "time"]]) {
  const words = { script, search, axis, style: style && `<link rel="stylesheet" href="${style}">\n` };
  files.push({ name: `${page}.html`, bytes: Buffer.from(frame.replace(/\{\{(\w+)\}\}/g, (_, word) => words[word])) });
}

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
