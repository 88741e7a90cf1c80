// Where the static site begins: snapshots are dropped on it, or picked.

import { byId, fill, h } from "../base/dom.ts";
import { plural } from "../base/format.ts";
import type { Local, Picked } from "./local.ts";
import { configOf, planOf } from "./model.ts";

/** Asks for files until there are some, and gives them to the engine. */
export function drop(engine: Local): void {
  const status = h("p", { role: "status" }, "Loading the reader …");
  const choose = (label: string, folder: boolean): Node => {
    const input = h("input", { type: "file", class: "unseen", tabindex: "-1", "aria-hidden": "true", multiple: true, webkitdirectory: folder, onchange: () => void open([...input.files!].map((file) => ({ path: file.webkitRelativePath || file.name, file, named: !folder }))) });
    return h("span", {}, input, h("button", { type: "button", "data-key": folder ? "folder" : "files", onclick: () => input.click() }, label));
  };
  const screen = h(
    "main",
    { id: "drop", "aria-labelledby": "drop-title" },
    h("h2", { id: "drop-title" }, "Drop memory snapshots here"),
    h("p", {}, "Files, or a folder with steps or ranks; or one recording of strandline trace; or a model's config.json, to plan for. Logs, tables and profiles are judged without a picture. They are read in this browser and are sent nowhere."),
    h("p", { class: "choose" }, choose("Choose files", false), choose("Choose a folder", true)),
    status,
    h("p", {}, h("a", { href: "plan.html" }, "Plan the memory of a run"), " before there is one."),
    h("p", { class: "muted" }, "A snapshot is what PyTorch writes:"),
    h("pre", {}, "torch.cuda.memory._record_memory_history(max_entries=1_000_000)\n…\ntorch.cuda.memory._dump_snapshot(\"snapshot.pickle\")"),
  );
  let opened = false;
  const loaded = engine.start().then(
    () => !opened && fill(status),
    (e: Error) => {
      fill(status, `The reader cannot be loaded: ${e.message}`);
      status.className = "danger";
      throw e;
    },
  );
  loaded.catch(() => {});

  const open = async (picked: Picked[]): Promise<void> => {
    if (opened) return;
    if (!picked.length) return fill(status, "There is no file in that folder.");
    const watch = await named(picked, /^\^\*M\x18\n\0{3}strandline/);
    if (watch) return fill(status, `${watch.path} is the recording of a watch, which only the program shows: strandline view ${watch.path}`);
    const trace = await named(picked, /^(\{"schema":"strandline\.recording\/|]\*M\x18\n\0{3}strandline)/);
    if (trace && picked.length > 1) return fill(status, `${trace.path} is the recording of a trace, which is shown on its own: drop it alone.`);
    const model = trace ? null : await configOf(picked);
    opened = true;
    if (model) return planOf(model);
    if (trace) {
      fill(status, "Loading the reader for the recording …");
      return loaded.then(() => engine.record(trace), () => {});
    }
    fill(status, `Loading the reader for ${plural(picked.length, "file")} …`);
    loaded.then(() => {
      engine.open(apart(picked));
      screen.remove();
      byId("main").hidden = byId("tabs").hidden = false;
      byId("files").after(h("button", { type: "button", id: "other", title: "Start again with other files", onclick: () => location.assign(location.pathname) }, "other files"));
    }, () => {});
  };

  byId("main").hidden = byId("tabs").hidden = true;
  byId("main").before(screen);
  addEventListener("dragover", (e) => {
    e.preventDefault();
    screen.classList.add("over");
  });
  addEventListener("dragleave", () => screen.classList.remove("over"));
  addEventListener("drop", (e) => {
    e.preventDefault(); // or the browser leaves the page for the file
    screen.classList.remove("over");
    if (!opened) void dropped(e.dataTransfer!).then(open);
  });
}

/** The files of a drop, those of folders too. */
export async function dropped(data: DataTransfer): Promise<Picked[]> {
  // Entries are available only until the event is over.
  const entries = [...data.items].map((item) => item.webkitGetAsEntry()).filter((e) => e !== null);
  const out: Picked[] = [];
  for (const e of entries) await walk(e, true, out);
  return out;
}

async function walk(entry: FileSystemEntry, named: boolean, out: Picked[]): Promise<void> {
  if (entry.isFile) {
    const file = await new Promise<File>((done, failed) => (entry as FileSystemFileEntry).file(done, failed));
    out.push({ path: entry.fullPath.replace(/^\//, ""), file, named });
  } else if (named || !entry.name.startsWith(".")) {
    const reader = (entry as FileSystemDirectoryEntry).createReader();
    for (;;) {
      // A reader gives some at a time.
      const some = await new Promise<FileSystemEntry[]>((done, failed) => reader.readEntries(done, failed));
      if (!some.length) return;
      some.sort((a, b) => (a.name < b.name ? -1 : 1));
      for (const e of some) await walk(e, false, out);
    }
  }
}

/** The first of the files that were named that begins so. */
async function named(picked: Picked[], begins: RegExp): Promise<Picked | undefined> {
  for (const p of picked) if (p.named && begins.test(await p.file.slice(0, 32).text())) return p;
  return undefined;
}

/** Gives files of the same path numbers: the engine distinguishes them by it. */
function apart(picked: Picked[]): Picked[] {
  const seen = new Map<string, number>();
  return picked.map((p) => {
    const n = (seen.get(p.path) ?? 0) + 1;
    seen.set(p.path, n);
    return n === 1 ? p : { ...p, path: `${p.path} (${n})` };
  });
}
