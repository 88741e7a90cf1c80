// The page of `strandline plan --page`: a form, and the plan of what it contains. All
// figures are the program's.

import { Store } from "../base/address.ts";
import { textLink } from "../base/controls.ts";
import { ask, json, link, type Params } from "../base/ask.ts";
import { byId, command as toPaste, fill, h } from "../base/dom.ts";
import { takeDrops } from "../base/drops.ts";
import { bytes, count, plural } from "../base/format.ts";
import { announce, banner, tabs } from "../base/frame.ts";
import { listen, showKeys, type Key } from "../base/keys.ts";
import { barTable } from "./bars.ts";
import { PlanForm } from "./form.ts";
import { command, decode, encode, first, modes, set, turn, type Asked } from "./state.ts";
import { moments, timelines, verdictClass } from "./step.ts";
import { counts, modelWords, requests, sizes, times } from "./words.ts";
import type { Form, Mode, ServePlan, Solved, StepPlan, TrainPlan, Verdict } from "./wire.ts";
import { theme } from "../base/theme.ts";

const answer = byId("answer");
const tooltip = byId("tooltip");

let form: Form;
let fields: PlanForm;
let store: Store<Asked>; // what is asked for
let shown: Asked | null = null; // what the answer is of
let plan: ServePlan | TrainPlan | StepPlan | null = null;
let solved: Solved | null = null;
let turns = 0;

// ---- asking

/** Takes another set-up. A step is one to which Back returns; typing makes none. */
function take(next: Asked, step = false): void {
  if (encode(next) !== store.link) store.set(next, step);
}

/** A document of the command, which may be that there is no plan. */
async function planned<T>(params: Params): Promise<T> {
  const doc = await json<T & { error?: string }>("plan", params);
  if (doc.error !== undefined) throw new Error(doc.error);
  return doc;
}

/** Asks for the plan. Answers to what is no longer asked for are dropped. */
async function refresh(): Promise<void> {
  const turn = ++turns;
  const asked = store.now;
  const { solve, ...flags } = asked.flags;
  const params = { mode: asked.mode, ...flags };
  try {
    const [now, best] = await Promise.all([
      planned<ServePlan & TrainPlan & StepPlan>({ ...params, formats: asked.mode === "serve" ? "true" : undefined }),
      solve ? planned<Solved>({ ...params, solve }) : null,
    ]);
    if (turn !== turns) return;
    [plan, solved, shown] = [now, best, asked];
    fields.wrong("");
    banner("");
    drawAnswer();
    announce(() => answer.querySelector(".verdict")?.textContent ?? undefined);
  } catch (e) {
    if (turn !== turns) return;
    const { message } = e as Error;
    fields.wrong(message);
    if (!link.lost) banner(message);
    answer.classList.add("stale");
  }
}

// ---- the frame

function draw(): void {
  const asked = store.now;
  document.title = `${asked.flags.model ?? "plan"} – strandline plan`;
  tabs(Object.entries(modes).map(([key, name]) => ({ key, name })), asked.mode, (mode) => go(mode as Mode));
  fields.show(asked);
}

const left: Partial<Record<Mode, Asked>> = {}; // what each mode was left with

/** Goes to another mode: to what was asked there, with the model and the GPUs of now. */
function go(mode: Mode): void {
  const asked = store.now;
  if (mode === asked.mode) return;
  left[asked.mode] = asked;
  const there = turn(asked, mode, form.modes);
  take(left[mode] ? { mode, flags: { ...left[mode].flags, ...Object.fromEntries(Object.entries(there.flags).filter(([n]) => ["model", "gpu", "gpus", "capacity"].includes(n))) } } : there, true);
}

/** A text with a button that copies it. */
const toCopy = (title: string, text: string, key: string): HTMLElement => h("div", {}, h("h3", {}, title), toPaste(text, key, title));

// ---- the answer

function drawAnswer(): void {
  if (!plan || !shown) return;
  tooltip.hidden = true;
  answer.classList.remove("stale");
  if (shown.mode === "serve") drawServe(plan as ServePlan, shown);
  else if (shown.mode === "train") drawTrain(plan as TrainPlan, shown);
  else drawStep(plan as StepPlan, shown);
}

function verdict(v: Verdict, ...more: (Node | string)[]): HTMLElement {
  return h("p", { class: "verdict", "data-verdict": v }, h("b", { class: verdictClass[v] }, v), ...more);
}

function head(title: string, more: string): HTMLElement {
  return h("header", {}, h("h2", {}, title), h("span", { class: "muted" }, more));
}

function figures(list: [name: string, value: string, more: string][]): HTMLElement {
  return h("dl", { class: "figures" }, list.map(([name, value, more]) => h("div", {}, h("dt", {}, name), h("dd", {}, h("b", {}, value), h("span", { class: "muted" }, more)))));
}

function notes(list: string[]): HTMLElement | null {
  return list.length ? h("div", {}, h("h3", {}, "Assumptions"), h("ul", { class: "notes" }, list.map((n) => h("li", {}, n)))) : null;
}

function sources(list: [string, string][]): HTMLElement {
  return h("div", {}, h("h3", {}, "What the figures rest on"), h("dl", { class: "sources" }, list.map(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])));
}

/** What a plan reports in addition to the GPU's memory, where it does. */
function beside({ offload, host, images, load }: ServePlan): [string, string, string][] {
  const out: [string, string, string][] = [];
  if (offload) out.push(["layers on GPUs", `${offload.gpu_layers} of ${offload.layers}`, offload.host_expert_layers ? `without the experts of ${offload.host_expert_layers}` : "the output one of them"]);
  if (host) out.push(["host memory", sizes(host.reduce((n, c) => n + c.low_bytes, 0), host.reduce((n, c) => n + c.high_bytes, 0)), host.filter((c) => c.high_bytes).map((c) => c.name).join(", ")]);
  if (images) out.push(["images of a request", plural(images.request_tokens, "token"), `${bytes(images.kv_bytes)} of KV cache; the encoder takes ${sizes(images.encoder_low_bytes, images.encoder_high_bytes)} for ${count(images.encoded_at_once)} at once`]);
  if (load) out.push(["as asked for", `${requests(load.at_once)} at once`, `${plural(load.requests, "request")} need ${bytes(load.kv_bytes)} of KV cache${load.answer_us ? `; an answer takes ${times(load.answer_us)}` : ""}`]);
  return out;
}

function drawServe(p: ServePlan, a: Asked): void {
  const { kv, parallel, latency } = p;
  const own = p.model.context_tokens;
  const beyond = own !== null && kv.longest_tokens[0] >= own;
  const fraction = `, ${p.engine.startsWith("sglang") ? "mem_fraction_static" : "gpu_memory_utilization"} ${Number(p.memory_fraction.toPrecision(3))}`;
  const local = p.offload; // llama.cpp and Ollama have no fraction, and no choice in how layers are divided
  const cuts = local ? [] : (["tp", "pp", "ep", "dp"] as const).filter((n) => parallel[n] > 1).map((n) => `${n.toUpperCase()} ${parallel[n]}`);
  fields.taken({ tp: String(parallel.tp), pp: String(parallel.pp), ep: String(parallel.ep), dp: String(parallel.dp), "max-model-len": count(kv.length_tokens), "block-size": String(kv.block_tokens), "mem-fraction": local ? "none" : String(Number(p.memory_fraction.toPrecision(3))), "gpu-layers": local ? String(local.gpu_layers) : "", nodes: parallel.nodes === null ? "" : String(parallel.nodes), capacity: bytes(p.gpu.total_bytes), "engine-version": "newest" });
  fill(
    answer,
    head(p.model.name, modelWords(p.model)),
    verdict(p.verdict, ` ${p.engine} on ${[`${parallel.gpus} × ${p.gpu.name}`, ...cuts].join(", ")}`, p.verdict === "fits" ? "" : `; what is short: ${p.binding}`),
    barTable(p.components, p.gpu.total_bytes, `The GPU that has least to spare: ${bytes(p.gpu.total_bytes)}${local ? "" : fraction}`),
    figures([
      ["tokens in the KV cache", counts(kv.tokens), `${bytes(Math.round(kv.bytes_per_token))} a token${kv.window_bytes_per_token ? `, ${bytes(Math.round(kv.window_bytes_per_token))} more in a window of ${count(kv.window_tokens)}` : ""}${kv.state_bytes ? `, ${bytes(kv.state_bytes)} a request` : ""}`],
      ["requests at once", requests(kv.requests), `of ${plural(kv.length_tokens, "token")}`],
      ["longest context", beyond ? count(own) : counts(kv.longest_tokens), beyond ? "the model's own limit" : "tokens, of one request alone"],
      ...beside(p),
      ...(latency ? ([["first token", times(latency.first_token_us), `after a prompt of ${count(latency.prompt_tokens)}`], ["each token", times(latency.token_us), `with ${latency.batch} requests; ${latency.bound} is the limit`]] as [string, string, string][]) : []),
    ]),
    toCopy("Flags to paste", p.flags.join(" "), "copy flags"),
    p.formats ? formats(p.formats, a) : null,
    best(a, ["context", "requests", "fraction", "gpus"]),
    notes(p.notes),
    sources([...p.components.map((c): [string, string] => [c.name, c.source ?? ""]), ...(latency ? [["times", `a roofline; ${latency.assumed}`] as [string, string]] : [])]),
    toCopy("The same in a terminal", command(a, form.modes[a.mode]), "copy command"),
  );
}

/** The set-up with other formats of the weights; a click takes one. */
function formats(list: NonNullable<ServePlan["formats"]>, a: Asked): HTMLElement {
  const quant = form.modes.serve.find((f) => f.name === "quant")!;
  return h(
    "table",
    { class: "small" },
    h("caption", {}, "Weights in other formats"),
    h("thead", {}, h("tr", {}, ["format", "weights", "tokens in the KV cache", ""].map((t, i) => h("th", { scope: "col" }, t || h("span", { class: "unseen" }, i ? "verdict" : ""))))),
    h("tbody", {}, list.map((f) => h("tr", {}, h("th", { scope: "row" }, textLink(`format ${f.format}`, f.format, () => take(set(a, quant, f.format)))), h("td", {}, bytes(f.weights_bytes)), h("td", {}, counts(f.tokens)), h("td", { class: verdictClass[f.verdict] }, f.verdict)))),
  );
}

const questions: Record<string, string> = { context: "the longest context", requests: "the most requests", fraction: "the largest memory fraction", gpus: "the fewest GPUs", batch: "the largest batch", seq: "the longest sequence" };

/** Looks for the most that fits, as given and with changes. */
function best(a: Asked, list: string[]): HTMLElement {
  const field = form.modes[a.mode].find((f) => f.name === "solve")!;
  const choose = h("select", { "data-key": "solve", "aria-label": "Look for", onchange: (e) => take(set(store.now, field, (e.target as HTMLSelectElement).value)) }, h("option", { value: "" }, "choose"), list.map((q) => h("option", { value: q, selected: a.flags.solve === q }, questions[q] ?? q)));
  return h(
    "div",
    {},
    h("h3", {}, "What is the most that fits? ", choose),
    solved
      ? h(
          "table",
          { class: "small", "data-solved": solved.question },
          h("thead", {}, h("tr", {}, ["set-up", questions[solved.question] ?? solved.question, "what binds"].map((t) => h("th", { scope: "col" }, t)))),
          h("tbody", {}, solved.answers.map((s) => h("tr", {}, h("th", { scope: "row" }, s.setup), h("td", { "data-value": s.value ?? "" }, s.value === null ? "–" : Number.isInteger(s.value) ? count(s.value) : String(Number(s.value.toPrecision(3)))), h("td", { class: "left" }, s.binding)))),
        )
      : null,
  );
}

function drawTrain(p: TrainPlan, a: Asked): void {
  const most = p.moments[p.largest]!;
  fields.taken({ capacity: bytes(p.gpu.total_bytes), shard: "all" });
  fill(
    answer,
    head(p.model.name, modelWords(p.model)),
    verdict(p.verdict, ` ${p.trainer} on ${p.gpus} × ${p.gpu.name}: a peak of ${sizes(p.peak.low_bytes, p.peak.high_bytes)}, and ${sizes(p.outside.low_bytes, p.outside.high_bytes)} outside PyTorch, of ${bytes(p.gpu.total_bytes)}`),
    barTable(most.components, p.gpu.total_bytes, `Active at the largest moment: ${most.name}`),
    h("section", { class: "moments", "aria-labelledby": "moments" }, h("h3", { id: "moments" }, "Active at the moments at which a step may peak"), moments(p.moments, p.largest, p.gpu.total_bytes, tooltip)),
    p.host_bytes ? h("p", {}, `In the host's memory: ${bytes(p.host_bytes)} for each GPU.`) : null,
    best(a, ["batch", "seq", "gpus"]),
    notes(p.notes),
    sources([["peak", p.peak.source ?? ""], ["outside", p.outside.source ?? ""]]),
    toCopy("The same in a terminal", command(a, form.modes[a.mode]), "copy command"),
  );
}

function drawStep(p: StepPlan, a: Asked): void {
  const vllm = a.flags.rollout === "vllm";
  fields.taken({ capacity: bytes(p.total_bytes), shard: "all", "max-model-len": "as trained", "engine-version": "newest", "mem-fraction": "default" });
  const fits = p.ways.filter((w) => w.verdict === "fits");
  fill(
    answer,
    head(`One step of ${a.flags.model}`, `${a.flags.gpus ?? 1} × ${a.flags.gpu ?? "GPU"}, ${a.flags.trainer ?? "fsdp"} and ${a.flags.rollout ?? "sglang"}`),
    verdict(fits.length ? "fits" : p.ways.some((w) => w.verdict === "may fit") ? "may fit" : "does not fit", fits.length ? ` in ${fits.length} of ${p.ways.length} ways of sharing the GPU: ${fits.map((w) => w.name).join(", ")}` : " in any way of sharing the GPU"),
    timelines(p, vllm ? "gpu_memory_utilization" : "mem_fraction_static", tooltip),
    p.host_bytes ? h("p", {}, `Ways that offload need up to ${bytes(p.host_bytes)} of the host's memory for each GPU.`) : null,
    notes(p.notes),
    toCopy("The same in a terminal", command(a, form.modes[a.mode]), "copy command"),
  );
}

// ---- keys

function keyTable(): Key[] {
  return [
    ...Object.keys(modes).map((mode, i) => ({ keys: [String(i + 1)], show: i ? "" : "1  2  3", does: "serve, train, RL step", act: () => go(mode as Mode) })),
    { keys: ["m", "/"], show: "m  /", does: "the model", act: () => fields.focus("model") },
    { keys: ["g"], show: "g", does: "the GPU", act: () => fields.focus("gpu") },
    { keys: ["c"], show: "c", does: "copy the flags, or the command", act: () => (answer.querySelector<HTMLElement>("[data-key='copy flags']") ?? answer.querySelector<HTMLElement>("[data-key='copy command']"))?.click() },
    { keys: ["r"], show: "r", does: "start over", act: () => take({ mode: store.now.mode, flags: first[store.now.mode] }, true) },
    { keys: ["Escape"], show: "Esc", does: "leave the field", act: () => (document.activeElement as HTMLElement | null)?.blur() },
    { keys: ["?"], show: "?", does: "these keys", act: help },
  ];
}

function help(): void {
  showKeys(keyTable(), "They act while no field has the focus. In a field of numbers, ↑ and ↓ count. The address holds the set-up.");
}

// ---- all together

async function begin(): Promise<void> {
  theme(() => {});
  byId("help").addEventListener("click", help);
  link.changed = () => banner(link.lost ? `${link.why} What is here stays.` : "");
  takeDrops(banner, false);
  form = (await (await ask("form")).json()) as Form;
  store = new Store({ encode, decode: (hash) => decode(hash, form.modes) });
  fields = new PlanForm(byId("form"), form, (f, value) => take(set(store.now, f, value)));
  store.on(() => {
    draw();
    void refresh();
  });
  listen(keyTable);
  history.replaceState(null, "", store.link);
  draw();
  await refresh();
}

window.strandline = { state: () => ({ asked: store.now, shown, plan, solved, settled: shown === store.now }) };
begin().catch((e: Error) => banner(e.message));
