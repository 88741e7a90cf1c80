// Where the static site begins: snapshots are dropped on it, or picked.

import { byId, fill, h } from "../base/dom.ts";
import { plural } from "../base/format.ts";
import type { Picked } from "../base/drops.ts";
import type { Local } from "./local.ts";
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
    h("p", {}, "Files, or a folder with steps or ranks; or a recording of strandline trace or watch; or a model's config.json, to plan for. Logs, tables and profiles are judged without a picture. They are read in this browser and are sent nowhere."),
    h("p", { class: "choose" }, choose("Choose files", false), choose("Choose a folder", true)),
    status,
    h("p", {}, h("a", { href: "plan.html" }, "Plan the memory of a run"), " before there is one."),
    h("p", { class: "muted" }, "A snapshot is what PyTorch writes:"),
    h("pre", {}, "torch.cuda.memory._record_memory_history(max_entries=1_000_000)\n…\ntorch.cuda.memory._dump_snapshot(\"snapshot.pickle\")"),
  );
  const loaded = engine.start().then(
    () => fill(status),
    (e: Error) => {
      status.className = "danger";
      throw new Error(`The reader cannot be loaded: ${e.message}`);
    },
  );
  loaded.catch((e: Error) => fill(status, e.message));

  const open = async (picked: Picked[]): Promise<void> => {
    try {
      if (!picked.length) throw new Error("There is no file in that folder.");
      const model = await configOf(picked);
      if (model) return planOf(model);
      fill(status, `Loading the reader for ${plural(picked.length, "file")} …`);
      await loaded;
      await engine.open(apart(picked));
      screen.remove();
      byId("main").hidden = byId("tabs").hidden = byId("banner").hidden = false;
    } catch (e) {
      fill(status, (e as Error).message);
    }
  };

  byId("main").hidden = byId("tabs").hidden = true;
  byId("main").before(screen);
  window.strandlineOpen = (picked) => (screen.isConnected ? open(picked) : engine.open(apart(picked)));
  addEventListener("dragover", () => screen.classList.add("over"));
  for (const end of ["dragleave", "drop"]) addEventListener(end, () => screen.classList.remove("over"));
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
