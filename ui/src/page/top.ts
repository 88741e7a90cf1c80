// The top of the page of snapshots, and the toolbar above the picture.

import { chip, choice, choices, select } from "../base/controls.ts";
import { byId, fill, h, printable, swatch } from "../base/dom.ts";
import { otherFiles } from "../base/drops.ts";
import { count, deviceName } from "../base/format.ts";
import { badge, tabs, type Tab } from "../base/frame.ts";
import { coverages, groupings } from "../base/names.ts";
import { measureName } from "../base/terms.ts";
import type { State, View } from "../session/store.ts";
import { switchX } from "../rail/moves.ts";
import { page, scene, store, toggleBanner } from "./elements.ts";

const names: Record<View, string> = { job: "Job", wall: "Overview", timeline: "Timeline", allocator: "Allocator", sites: "Sites", compare: "Compare", whatif: "What if", findings: "Findings" };

/** The views that this session has something for. */
export function views(): Tab[] {
  const files = page.session?.files ?? [];
  const judged = files.some((x) => x.state === "judged") && files.every((x) => x.state === "judged" || x.state === "failed"); // there is no picture
  const allocates = page.device?.torch_version !== ""; // not of another tool's profiles
  const has = (v: View): boolean => (v === "job" ? !!page.session?.job : v === "wall" ? files.length > 1 : v === "compare" ? files.length > 1 && !judged : v === "findings" || (!judged && (allocates || (v !== "allocator" && v !== "whatif"))));
  return (Object.keys(names) as View[]).filter(has).map((key) => ({ key, name: names[key], n: key === "findings" ? page.findings.length : 0 }));
}

export const nameOf = (v: View): string => names[v];

export const go = (v: string): void => store.set({ view: v as View }, true);

/** What of the state is of one file and device. */
export const ofFile = { win: null, k: null, range: null, alloc: null, a: null, b: null, segment: null } as const;

export function drawTop(): void {
  const { session, file, device, s } = page;
  const all = s.view === "wall" || s.view === "job"; // of no single file
  const title = (all ? "" : file?.name) || session?.title || "";
  document.title = title ? `${printable(title)} – strandline` : "strandline";
  const files = session?.files ?? [];
  const order = session?.order.length === files.length ? session.order : files.map((f) => f.f);
  fill(
    byId("files"),
    files.length > 1 && !all
      ? select("file", page.f, order.map((f) => [f, files.find((x) => x.f === f)?.name ?? String(f)]), (f) => store.set({ f, ...ofFile }, true), "file")
      : h("span", { title: all ? undefined : file?.path }, title),
    session?.skipped?.length ? h("span", { class: "muted wide", title: session.skipped.map((x) => `${x.path}: ${x.why}`).join("\n") }, `${count(session.skipped.length)} skipped`) : null,
    file && file.devices.length > 1 && !all ? select("device", page.d ?? 0, file.devices.map((d) => [d, deviceName(d)]), (d) => store.set({ d, ...ofFile }, true), "device") : null,
    session?.replaced ? chip("newer", "show newer snapshots", "More were written: show them, and stay at what is looked at", () => location.reload()) : session?.live ? h("span", { class: "live", title: "strandline record still writes to this folder. Newer snapshots are shown when they are there." }, "live") : null,
    otherFiles(),
  );
  const kind = file?.partial ? "damaged" : (device?.coverage.kind ?? "");
  if (device) badge(kind, coverages[kind]!, file?.partial ?? device.coverage.text, toggleBanner);
  byId("coverage").hidden = !device;
  const held = byId("held");
  held.hidden = !device?.held;
  if (device?.held) held.title = device.held.text;
  tabs(views(), s.view, go);
}

const ys = ["reserved", "active", "window"] as const;

/** Turns the axis of bytes to the next of what it can reach to. */
export const nextAxis = (): void => store.set({ y: ys[(ys.indexOf(page.s.y as "active") + 1) % 3]! }, true);

export function drawTools(): void {
  const { device, file, s } = page;
  const el = byId("tools");
  if (!device || device.events === 0 || s.view === "wall" || s.view === "job") return fill(el); // there is no picture
  const time = s.x === "us" && !!device.time;
  const whatIf = s.view === "whatif";
  const line = (of: string, text: string): Node => h("span", {}, h("i", { class: of }), text);
  fill(
    el,
    h("label", {}, "group by ", select("g", s.g, device.groupings.map((g) => [g, groupings[g] ?? g]), (g) => store.set({ g, solo: [] }, true))),
    choices("x ", [choice("x ev", "events", !time, () => time && switchX(scene)), choice("x us", "time", time, () => !time && switchX(scene), device.time ? null : (device.time_why ?? "this file has no times"))]),
    choices("as high as ", ys.filter((y) => y !== "active" || !page.segments).map((y) => choice(`y ${y}`, y === "active" ? "peak" : y === "window" ? "what is seen" : "peak reserved", s.y === y, () => store.set({ y }, true)))),
    choices("bands of ", [
      choice("u requested", "requested", page.u === "requested", () => measure("requested")),
      choice("u allocated", "active", page.u === "allocated", () => measure("allocated"), file?.blocks === "ready" ? null : (device.measures_why ?? "The sizes of blocks are still being worked out.")),
      choice("u reserved", "segments", !!page.segments, () => measure("reserved"), device.held ? "This saved page has no history of segments." : null, { title: "What took reserved memory from the driver" }),
    ], true),
    device.held ? null : choice("each", "each allocation", s.each, () => store.set({ each: !s.each }, true), whatIf ? "The runs are drawn as sums" : null),
    s.solo.length ? chip("solo", [swatch(page.group(s.solo[0]!)?.slot ?? -1), s.solo.length === 1 ? `only ${page.group(s.solo[0]!)?.label ?? "a site of another file"}` : `only ${count(s.solo.length)} sites`, h("span", { class: "muted" }, "×")], "Show all sites again (Esc)", () => store.set({ solo: [] }, true)) : null,
    h("span", { id: "window" }),
    h("span", { class: "legend", "aria-hidden": "true" }, line("", `${measureName[page.u]}, highest`), line("low", "lowest"), page.segments ? null : line("res", whatIf ? "reserved, as recorded" : "reserved"), whatIf ? null : [line("kept", "kept"), page.ghost ? line("ghost", "reserved, if freed") : null]),
  );
  drawWindow();
}

/** Turns to another measure: parts of segments are other things than allocations, and not in all groupings. */
function measure(u: State["u"]): void {
  store.set({ u, alloc: null, g: u === "reserved" && /^(purpose|pool|annotation)$/.test(page.s.g) ? "line" : page.s.g }, true);
}

/** Shows what part of the file the picture covers. */
export function drawWindow(): void {
  const el = document.getElementById("window");
  const { device, s } = page;
  if (!el || !device) return;
  const { win, level, bound } = scene.seen;
  const end = bound ? ", no finer in this saved page" : "";
  const per = count(2 ** level);
  if (s.x === "us" && device.time) fill(el, `${s.win === null ? "all" : "part"} of the time · 1 column = ${per} µs${end}`);
  else fill(el, "events ", h("b", {}, `${count(Math.floor(win[0]))} – ${count(Math.ceil(win[1]))}`), ` of ${count(device.events)} · 1 column = ${per} ${level === 0 ? "event" : "events"}${end}`);
}
