// The form: a field for each flag, in groups. What a field is comes from the command.

import { fill, h, own } from "../base/dom.ts";
import type { Asked } from "./state.ts";
import type { Field, Form, Mode } from "./wire.ts";

type Group = [title: string, fields: [flag: string, label: string][], folded?: boolean];

const machine: Group = ["GPUs", [["gpu", "GPU"], ["gpus", "how many"], ["capacity", "memory of each"]]];
const step: Group = ["Step", [["batch", "batch"], ["seq", "sequence length"], ["accumulate", "forwards a step"], ["checkpointing", "checkpointing"], ["offload", "offloaded"]]];
const adapters: Group = ["Adapters and more", [["lora", "LoRA rank"], ["lora-targets", "LoRA matrices"], ["lora-base", "frozen weights"], ["loss-chunks", "loss in parts"], ["interleaved", "stages of a rank"], ["compile", "compiled"], ["cpu-experts", "experts in the host"]], true];

export const groups: Record<Mode, Group[]> = {
  serve: [
    ["Model", [["model", "model"], ["quant", "weights in"]]],
    machine,
    ["Engine", [["engine", "engine"], ["engine-version", "version"], ["mem-fraction", "memory fraction"], ["eager", "without CUDA graphs"]]],
    ["Division", [["tp", "TP"], ["pp", "PP"], ["ep", "EP"], ["dp", "DP attention"]]],
    ["Requests", [["max-model-len", "context"], ["kv-dtype", "KV cache in"], ["max-num-seqs", "batch, at most"], ["max-batched-tokens", "tokens of a pass"]]],
    ["Load", [["requests", "requests at once"], ["prompt-tokens", "prompt, tokens"], ["output-tokens", "answer, tokens"], ["images", "images of each"], ["image-size", "their size"]], true],
    ["llama.cpp", [["gpu-layers", "layers on GPUs"], ["n-cpu-moe", "layers of experts in the host"], ["flash-attn", "flash attention"]], true],
    ["More", [["nodes", "nodes"], ["block-size", "tokens of a block"], ["cpu-experts", "experts in the host"], ["mtp", "layers for MTP"]], true],
  ],
  train: [
    ["Model", [["model", "model"]]],
    machine,
    ["Trainer", [["trainer", "set-up"], ["optimizer", "optimizer"]]],
    step,
    ["Division", [["tp", "TP"], ["pp", "PP"], ["cp", "CP"], ["shard", "sharded among"]]],
    adapters,
  ],
  rl: [
    ["Model", [["model", "model"]]],
    machine,
    ["Rollout", [["rollout", "engine"], ["engine-version", "version"], ["rollout-tp", "TP"], ["quant", "weights in"], ["mem-fraction", "memory fraction"], ["max-model-len", "context"], ["eager", "without CUDA graphs"]]],
    ["Trainer", [["trainer", "set-up"], ["optimizer", "optimizer"], ["reference", "a reference model"], ["critic", "a critic"]]],
    step,
    ["Rollouts", [["prompts", "prompts a step"], ["group", "answers to each"], ["prompt-tokens", "prompt, tokens"], ["response-tokens", "answer, tokens"]], true],
    ["Hand-overs", [["host-link", "to the host, GB/s"], ["sync-link", "between GPUs, GB/s"], ["disk", "of disk, GB/s"]], true],
    ["Division of the trainer", [["train-tp", "TP"], ["train-pp", "PP"], ["cp", "CP"], ["shard", "sharded among"]], true],
    adapters,
  ],
};

/** What an empty choice means, by flag. */
const unset: Record<string, string> = { quant: "as it is", "kv-dtype": "auto", optimizer: "adamw", gpu: "any" };

/** Whether an error names a flag: --rollout-tp, or TP. */
export const names = (text: string, flag: string): boolean => new RegExp(`--${flag}(?![\\w-])`).test(text) || (/(^|-)[a-z]p$/.test(flag) && new RegExp(`\\b${flag.slice(-2).toUpperCase()} \\d`).test(text));

export class PlanForm {
  private controls = new Map<string, HTMLInputElement | HTMLSelectElement>();
  private mode: Mode | null = null;

  constructor(
    private readonly el: HTMLElement,
    private readonly form: Form,
    private readonly changed: (f: Field, value: string) => void,
  ) {
    el.addEventListener("submit", (e) => e.preventDefault());
  }

  /** Shows what is asked for. A field that is being typed in stays as it is. */
  show(asked: Asked): void {
    if (asked.mode !== this.mode) this.build(asked);
    for (const [name, c] of this.controls) {
      if (c === document.activeElement) continue;
      const value = asked.flags[name] ?? this.standard(name);
      if (c instanceof HTMLInputElement && c.type === "checkbox") c.checked = value === "true";
      else {
        if (c instanceof HTMLSelectElement && ![...c.options].some((o) => o.value === value)) c.append(h("option", { value }, value));
        c.value = value;
      }
    }
  }

  /** Writes into empty fields what was taken for them. */
  taken(values: Record<string, string>): void {
    for (const [name, c] of this.controls) if (c instanceof HTMLInputElement) c.placeholder = values[name] ?? (this.standard(name) || "auto");
  }

  /** Marks the fields that an error names. */
  wrong(text: string): void {
    for (const [name, c] of this.controls) {
      if (names(text, name)) c.setAttribute("aria-invalid", "true");
      else c.removeAttribute("aria-invalid");
    }
  }

  focus(name: string): void {
    const c = this.controls.get(name);
    c?.focus();
    if (c instanceof HTMLInputElement) c.select();
  }

  /** What a field without a value shows; 0 and -1 are for the command to choose. */
  private standard(name: string): string {
    const value = this.field(name).default;
    return value === "0" || value === "-1" ? "" : value;
  }

  private field(name: string): Field {
    return this.form.modes[this.mode!].find((f) => f.name === name)!;
  }

  private build(asked: Asked): void {
    this.mode = asked.mode;
    this.controls.clear();
    fill(
      this.el,
      groups[asked.mode].map(([title, fields, folded]) => {
        const rows = fields.map(([name, label]) => this.row(this.field(name), label));
        if (!folded) return [h("h2", {}, title), rows];
        const open = fields.some(([name]) => name in asked.flags);
        return h("details", { open }, h("summary", {}, title), rows);
      }),
    );
  }

  private row(f: Field, label: string): HTMLElement {
    const control = own(this.control(f));
    this.controls.set(f.name, control);
    const help = `--${f.name}: ${f.help}`;
    if (f.kind === "bool") return h("label", { class: "field check", title: help }, control, label);
    return h("label", { class: f.name === "model" ? "field text" : "field", title: help }, h("span", {}, label), control, f.name === "model" ? this.models(f) : null);
  }

  private control(f: Field): HTMLInputElement | HTMLSelectElement {
    const changed = (e: Event): void => this.changed(f, (e.target as HTMLInputElement | HTMLSelectElement).value);
    const key = `flag ${f.name}`;
    if (f.kind === "bool") return h("input", { type: "checkbox", "data-key": key, onchange: (e) => this.changed(f, String((e.target as HTMLInputElement).checked)) });
    if (f.name === "model") return h("input", { type: "text", list: "models", "data-key": key, spellcheck: "false", oninput: changed });
    if (f.choices.length > 0) {
      const options = f.choices.includes(f.default) ? f.choices : [f.default, ...f.choices];
      return h("select", { "data-key": key, onchange: changed }, options.map((v) => h("option", { value: v }, v === "" ? unset[f.name] ?? "default" : v)));
    }
    if (f.kind === "string") return h("input", { type: "text", "data-key": key, spellcheck: "false", placeholder: "auto", oninput: changed });
    return h("input", { type: "number", min: 0, step: f.kind === "float64" ? 0.01 : 1, "data-key": key, placeholder: "auto", oninput: changed });
  }

  private models(f: Field): HTMLElement {
    return h("datalist", { id: "models" }, [...(this.form.given ? [this.form.given] : []), ...f.choices].map((v) => h("option", { value: v })));
  }
}
