// Memory of the GPU's driver: who holds it, where it was taken, and what the
// devices reported.

import { note } from "../base/controls.ts";
import { fill, h } from "../base/dom.ts";
import { bytes, bytesOrDash, count, time } from "../base/format.ts";
import { markSlot } from "../picture/palette.ts";
import { table, type Column, type Row } from "../base/table.ts";
import { at, doc, pinned, query, root, s, set } from "./model.ts";
import type { RecordingGPUDevice as Device } from "../base/api.ts";

interface Taker extends Row {
  bytes: number;
  count: number;
  memory: string;
  owner?: string;
}

export const memoryWords: Record<string, string> = { device: "device", managed: "managed", pinned: "pinned host memory", foreign: "handles of other processes" };

export function gpu(): void {
  const g = doc.summary.gpu;
  const { slice, column } = at(s.k);
  const owners: Taker[] = doc.owners.map((o, i) => ({ key: `${o.owner} ${o.memory}`, label: o.owner, slot: -1, bytes: slice.owners[i]!.bytes[column]!, count: slice.owners[i]!.count[column]!, memory: memoryWords[o.memory] ?? o.memory })).sort((a, b) => b.bytes - a.bytes);
  const named = doc.findings[pinned()]?.stacks ?? [];
  const places: Taker[] = doc.gpu.map((x, i) => ({ key: String(i), label: x.label, slot: named.includes(x.id) ? markSlot : x.slot, selected: s.gpu === i, bytes: x.live_bytes, count: x.live_count, memory: memoryWords[x.memory] ?? x.memory, owner: x.owner }));
  const columns: Column<Taker>[] = [
    { name: "held", of: (r) => r.bytes, show: (r) => bytesOrDash(r.bytes), bytes: true },
    { name: "pieces", of: (r) => r.count, show: (r) => count(r.count) },
    { name: "memory", of: () => 0, show: (r) => r.memory },
  ];
  const inner = table<Taker>({ name: "place", rows: places.filter((p) => p.count > 0 && (!query || query.test(`${p.label} ${p.owner}`))), columns: [...columns, { name: "by", of: () => 0, show: (r) => r.owner ?? "" }], onrow: (r) => set({ gpu: s.gpu === Number(r.key) ? null : Number(r.key) }, true) });
  inner.querySelector("caption")!.className = "";
  inner.querySelector("caption")!.textContent = doc.judged_seconds === null ? "" : `Where it was allocated: held at ${time(doc.judged_seconds)}`;
  fill(
    root,
    h("div", { class: "bar" }, h("span", {}, `held by owner at ${time(slice.of.seconds[column]!)}`)),
    h(
      "div",
      { class: "gpu", tabindex: "0", role: "group", "aria-label": "Memory of the GPU's driver" },
      g && !g.libraries?.length ? note("No process has loaded libcuda, so no GPU memory could be observed.") : null,
      owners.length ? table<Taker>({ name: "owner", rows: owners, columns }) : note("Nothing was taken from the GPU's driver and kept."),
      places.some((p) => p.count > 0) ? inner : null,
      (g?.devices ?? []).map(device),
    ),
  );
}

/** What the memory of a device is, when the driver was last asked. */
function device(d: Device): HTMLElement {
  const parts = d.parts ?? [];
  const has = (part: string): boolean => parts.some((p) => p.part === part);
  const words: Record<string, (p: (typeof parts)[number]) => string> = {
    pytorch: (p) => `PyTorch: reserved${p.allocated_bytes === undefined ? "" : `, ${bytes(p.allocated_bytes)} of it allocated; ${bytes(p.since_bytes)} taken since the trace began`}`,
    traced: (p) => `${p.owner}, since the trace began${has("pytorch") ? ", outside PyTorch" : ""}`,
    earlier: () => "the processes' contexts and earlier allocations",
    unseen: () => "came since without a watched call: code of kernels, graphs, pools",
    others: (p) => `${p.count} other ${p.count === 1 ? "process" : "processes"}`,
    remainder: () => (has("earlier") ? "the remainder: the driver's own, and processes that it does not name" : "the remainder: contexts, allocations before the trace, other processes"),
  };
  const used = d.used_bytes === null ? "as far as it is known" : `${bytes(d.used_bytes)} used${d.total_bytes === null ? "" : ` of ${bytes(d.total_bytes)}`}`;
  return h(
    "table",
    {},
    h("caption", {}, `GPU memory${d.names?.length ? ` of ${d.names.length === 1 ? "device" : "devices"} ${d.names.join(", ")}` : ""} at ${time(d.at_seconds)}: ${used}`),
    h("tbody", {}, parts.map((p) => h("tr", {}, h("th", { scope: "row" }, words[p.part]?.(p) ?? p.part), h("td", { "data-bytes": p.bytes }, bytes(p.bytes))))),
    d.notes?.length ? h("tfoot", {}, d.notes.map((n) => h("tr", {}, h("td", { colspan: 2, class: "left muted" }, n)))) : null,
  );
}
