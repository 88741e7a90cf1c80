import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { bytes, bytesOrDash, count, delta, duration, growth, percent, plural } from "../src/base/format.ts";
import { printable } from "../src/base/dom.ts";
import { contrast, mix, parse, textOn, wash, type RGB } from "../src/picture/palette.ts";
import { byteStep, byteTick, clamp, levelFor, niceStep, pixelAt, ticks, zoom } from "../src/base/scale.ts";
import { decode, encode, initial } from "../src/session/store.ts";

interface Case {
  of: number;
  whole?: number;
  reads: string;
}

test("numbers read as the command writes them", () => {
  const cases = JSON.parse(readFileSync("../units/testdata/numbers.json", "utf8")) as Record<"bytes" | "counts" | "shares" | "microseconds", Case[]>;
  const same = (list: Case[], write: (c: Case) => string): void => {
    assert.ok(list.length > 5);
    for (const c of list) assert.equal(write(c), c.reads.replace(/^-/, "\u2212"), `${c.of}`);
  };
  same(cases.bytes, (c) => bytes(c.of));
  same(cases.counts, (c) => count(c.of));
  same(cases.shares, (c) => percent(c.of, c.whole!));
  same(cases.microseconds, (c) => duration(c.of));
});

test("what is not known and what is nothing is a dash; differences have a sign", () => {
  assert.equal(bytes(null), "–");
  assert.equal(bytesOrDash(0), "–");
  assert.equal(percent(0, 5), "–");
  assert.equal(delta(1024), "+1 KiB");
  assert.equal(plural(1, "file"), "1 file");
  assert.equal(plural(0, "file"), "0 files");
  assert.equal(plural(1200, "process", "processes"), "1,200 processes");
});

test("names cannot turn a line around", () => {
  assert.equal(printable("a\u202egpj.pickle\u2066\u200f"), "a\ufffdgpj.pickle\ufffd\ufffd");
  assert.equal(printable("tab\tand\nline, \x1b[2J, \x9b"), "tab\tand\nline, \ufffd[2J, \ufffd");
  for (const kept of ["日本語", "שלום", "e\u0301", "1\u202f216", "−2 ← 🚀"]) assert.equal(printable(kept), kept);
});

test("a bucket is one to two pixels wide, until it is one event", () => {
  for (const [places, pixels] of [[1216335, 1276], [20662, 1276], [5e6, 700], [1276, 1276], [1277, 1276]] as const) {
    const width = pixels / (places / 2 ** levelFor(places, pixels));
    assert.ok(width >= 1 && width < 2, `${places} on ${pixels}: ${width}`);
  }
  assert.equal(levelFor(300, 1276), 0);
});

test("windows stay inside the file, and zoom keeps the place under the pointer", () => {
  assert.deepEqual(clamp([-5, 5], 100, 4), [0, 10]);
  assert.deepEqual(clamp([95, 120], 100, 4), [75, 100]);
  assert.deepEqual(clamp([50, 51], 100, 4), [48.5, 52.5]);
  assert.deepEqual(clamp([0, 500], 3, 4), [0, 3]);
  const w = zoom([100, 300], 150, 0.5);
  assert.deepEqual(w, [125, 225]);
  assert.equal((150 - w[0]) / (w[1] - w[0]), 0.25);
  assert.equal(pixelAt(50, [0, 100], 10), 5);
});

test("ticks are round", () => {
  assert.equal(niceStep(20662, 11), 2000);
  assert.deepEqual(ticks(18150, 18450, 100), [18200, 18300, 18400]);
  assert.equal(byteTick(byteStep(24.1 * 2 ** 30, 7)), "4 GiB");
  assert.equal(byteTick(0), "0");
});

test("a state goes through the URL and back", () => {
  const s = { ...initial, view: "sites" as const, f: 2, d: 1, u: "allocated" as const, x: "us" as const, y: "active" as const, win: [18150, 18450.5] as [number, number], k: 18239, solo: ["9f86d081884c"], q: "/forward$", segment: "0x7a00", range: [1, 5] as [number, number], of: "range" as const, sets: ["", "expandable_segments:True,roundup_power2_divisions:[256:1,>:4]"], capacity: "79 GiB", fraction: "0.9", empty: "every=10steps", lane: "unused" as const, search: true };
  assert.deepEqual(decode(encode(s)), s);
  assert.deepEqual(decode(encode({ ...initial, sets: [] })).sets, []);
  assert.equal(encode(initial), "");
});

test("a URL that makes no sense changes nothing", () => {
  assert.deepEqual(decode("#v=nonsense&k=abc&w=9_1&x=parsecs&y=-4&s=zz.9f86d081884c%22&unknown=1&seg=javascript:1"), initial);
});

for (const [theme, marker] of [["light", ":root {"], ["dark", ':root[data-theme="dark"] {']] as const) {
  test(`colors of the ${theme} theme can be distinguished from the page, and read`, () => {
    const css = readFileSync("src/page/app.css", "utf8");
    const block = css.slice(css.indexOf(marker), css.indexOf("}", css.indexOf(marker)));
    const color = (name: string) => parse(new RegExp(`--${name}: (#[0-9a-f]{6})`).exec(block)![1]!);
    const page = color("page");
    for (const text of ["ink", "muted", "accent", "danger", "reserved", "warning", "good"])
      for (const ground of ["page", "panel"]) assert.ok(contrast(color(text), color(ground)) >= 4.5, `${text} on ${ground}`);
    for (let i = 0; i < 10; i++) {
      const slot = color(`s${i}`);
      assert.ok(contrast(slot, page) >= 2.95, `slot ${i} on the page: ${contrast(slot, page)}`);
      for (const fill of [slot, mix(slot, page, wash)]) assert.ok(contrast(textOn(fill), fill) >= 4.4, `text on slot ${i}: ${contrast(textOn(fill), fill)}`);
    }
  });
}

/** A color as a deuteranope sees it, in linear light (Machado, Oliveira and Fernandes, 2009), and as an average eye does. */
const seen = ({ r, g, b }: RGB, deuteranope: boolean): number[] => {
  const lin = [r, g, b].map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  const eye = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]];
  const [R, G, B] = deuteranope ? eye.map((row) => Math.max(0, Math.min(1, row.reduce((sum, k, i) => sum + k * lin[i]!, 0)))) : lin;
  const cone = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]].map((m) => Math.cbrt(m[0]! * R! + m[1]! * G! + m[2]! * B!));
  return [[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099], [0.0259040371, 0.7827717662, -0.808675766]].map((m) => m.reduce((sum, k, i) => sum + k * cone[i]!, 0));
};

for (const [theme, marker] of [["light", ":root {"], ["dark", ':root[data-theme="dark"] {']] as const) {
  test(`colors of the ${theme} theme differ for deuteranopes`, () => {
    const css = readFileSync("src/page/app.css", "utf8");
    const block = css.slice(css.indexOf(marker), css.indexOf("}", css.indexOf(marker)));
    const names = [...Array.from({ length: 10 }, (_, i) => `s${i}`), "mark", "neutral"];
    const of = (name: string) => parse(new RegExp(`--${name}: (#[0-9a-f]{6})`).exec(block)![1]!);
    for (const deuteranope of [false, true]) {
      names.forEach((a, i) => names.slice(i + 1).forEach((b) => {
        const [x, y] = [seen(of(a), deuteranope), seen(of(b), deuteranope)];
        const far = Math.hypot(...x.map((v, k) => v - y[k]!));
        assert.ok(far >= 0.1, `${a} and ${b} are ${far.toFixed(3)} apart`); // in OKLab, where 0.02 is just seen
      }));
    }
  });
}

test("growth is shown in the unit of its end", () => {
  assert.equal(growth(0, 2 ** 30), "0 → 1 GiB");
  assert.equal(growth(1.02 * 2 ** 30, 3.61 * 2 ** 30), "1.02 → 3.61 GiB");
  assert.equal(growth(512 * 2 ** 20, 2 ** 31), "512 MiB → 2 GiB");
  assert.equal(growth(100, 200), "100 → 200 B");
});
