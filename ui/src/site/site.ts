// The static site: a script before the page's own, which finds its door to a worker. The
// page of snapshots begins by asking for files, which may be a recording; the page of
// plans needs none.

import { byId, h } from "../base/dom.ts";
import { drop } from "./drop.ts";
import { Local } from "./local.ts";

const name = document.querySelector<HTMLScriptElement>("script[src='app.js'], script[src='plan.js']")?.getAttribute("src");
if (!window.strandlineDoor) { // else this is the page of a recording, in place of the one that read it
  const local = new Local();
  window.strandlineDoor = local.ask;
  if (name === "app.js") drop(local);
  else if (name === "plan.js") plan(local);
  else location.replace("./"); // recordings are dropped there
}

function plan(local: Local): void {
  document.querySelector("#top h1")!.after(h("a", { href: "./", title: "See where the memory of a run went" }, "snapshots"));
  const banner = byId("banner");
  banner.textContent = "Loading the planner …";
  banner.hidden = false;
  local.start().then(
    () => local.plan(),
    (e: Error) => local.lose(`The planner cannot be loaded: ${e.message}.`),
  );
}
