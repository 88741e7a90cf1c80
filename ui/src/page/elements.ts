// The parts of the page of snapshots that are always there.

import { link } from "../base/ask.ts";
import { byId } from "../base/dom.ts";
import { announce as say, banner as show } from "../base/frame.ts";
import { plural } from "../base/format.ts";
import { Rail } from "../rail/rail.ts";
import { Page } from "../session/page.ts";

export const page = new Page();
export const { store } = page;
export const announce = (text: string): void => say(() => text);
export const rail = new Rail(page, byId("rail"), byId("tooltip"), announce, (e) => e.status !== 0 && refused(e));
export const { scene } = rail;
export const view = byId("view");

let said = "";
let refusal = "";

/** Says something in the banner; again, it is taken back. */
export function banner(text: string): void {
  said = text;
  drawBanner();
}

export const toggleBanner = (text: string): void => banner(said === text ? "" : text);

/** Shows what the engine has no answer to, until the reader turns to something else. */
export const refused = (e: Error): void => banner((refusal = e.message));

export function drop(): void {
  if (said && said === refusal) banner("");
}

export function drawBanner(): void {
  const file = page.file;
  const out: string[] = [];
  if (link.lost) out.push(`${link.why} What is here stays.`);
  else if (said) out.push(said);
  if (page.unknownSites > 0) out.push(`${plural(page.unknownSites, "site")} of the link ${page.unknownSites === 1 ? "is" : "are"} not in this file.`);
  if (page.strange) out.push("The link is of a file that is not open here.");
  const { coverage } = page.device ?? {};
  if (coverage?.kind === "damaged") out.push(file?.partial ? `Read in part: ${coverage.text}` : coverage.text.replace(/^t/, "T"));
  else if (file?.partial) out.push(`Read in part: ${file.partial}`);
  show(out.join(" · "), link.lost);
}
