// The static site: a script before the page's own, which finds its transport to a worker. The
// page of snapshots begins by asking for files, which may be a recording; the page of
// plans needs none, and takes a model's config.json.

import { byId, h } from "../base/dom.ts";
import { takeDrops, type Picked } from "../base/drops.ts";
import { drop } from "./drop.ts";
import { Local } from "./local.ts";
import { configOf, dropped, planOf } from "./model.ts";

const name = document.querySelector<HTMLScriptElement>("script[src='app.js'], script[src='plan.js']")?.getAttribute("src");
if (!window.strandlineTransport) { // else this is the page of a recording, in place of the one that read it
  const local = new Local();
  window.strandlineTransport = local.ask;
  if (name === "app.js") drop(local);
  else if (name === "plan.js") plan(local);
  else location.replace("./"); // files are dropped there
}

function plan(local: Local): void {
  const banner = byId("banner");
  const take = async (picked: Picked[]): Promise<void> => {
    const model = await configOf(picked);
    if (model) return planOf(model);
    banner.textContent = `${picked.map((p) => p.path).join(", ")} is not the config.json of a model; snapshots are dropped on the page of snapshots.`;
    banner.className = "error";
    banner.hidden = false;
  };
  const input = h("input", { type: "file", class: "unseen", tabindex: "-1", "aria-hidden": "true", accept: ".json", onchange: () => void take([...input.files!].map((file) => ({ path: file.name, file, named: true }))) });
  document.querySelector("#top h1")!.after(h("a", { href: "./", title: "See where the memory of a run went" }, "snapshots"));
  byId("right").prepend(input, h("button", { type: "button", class: "link", "data-key": "own model", title: "Or drop it on this page: it is read in this browser and sent nowhere", onclick: () => input.click() }, "your config.json"));
  window.strandlineOpen = take;
  takeDrops(() => {});
  banner.textContent = "Loading the planner …";
  banner.hidden = false;
  local.start().then(
    () => local.plan(dropped()),
    (e: Error) => local.lose(`The planner cannot be loaded: ${e.message}.`),
  );
}
