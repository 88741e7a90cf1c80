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
// All pages have one frame; that of plans has neither files nor a picture, but a main part of its own.
const frame = await readFile(here("src/page/page.html"), "utf8");
const main = await readFile(here("src/plan/plan.html"), "utf8");
const view = { title: "view", view: "view", what: "table", tabs: "Views", main: "", word: "" };
for (const [page, words] of Object.entries({
  index: { ...view, script: "app", search: "Search sites", axis: "events" },
  recording: { ...view, script: "recording", style: "recording", search: "Search stacks", axis: "time" },
  watch: { ...view, script: "watch", style: "watch", search: "Search", axis: "time" },
  plan: { title: "plan", view: "answer", what: "plan", tabs: "What is planned", main, word: '\n  <span class="muted">plan</span>', script: "plan", style: "plan" },
})) {
  const style = words.style ? `<link rel="stylesheet" href="${words.style}.css">\n` : "";
  const html = frame.replace(/\{\{#own\}\}([^]*?)\{\{\/own\}\}/g, (_, part) => (words.main ? "" : part)).replace(/\{\{(\w+)\}\}/g, (_, word) => ({ ...words, style })[word]);
  files.push({ name: `${page}.html`, bytes: Buffer.from(html) });
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
