// Findings, the comparison of files, and runs under other settings.

import assert from "node:assert/strict";
import { pause } from "./browser.ts";
import { device, fitted } from "./checks.ts";
import { answer, folder, identity, leak, scenario, torn } from "./scenario.ts";
import { example, json } from "./server.ts";
import { ranksOfTheirOwn, steps } from "./snapshots.ts";

scenario("compare shows compare's numbers", leak, async ({ tab }) => {
  const want = json("compare", ...leak).groups[0];
  await tab.until("strandline.state().figures.compare", 20000);
  const got = (await tab.state()).figures.compare[0];
  assert.equal(got.files, want.files.length);
  assert.deepEqual(got.sites, want.sites.map((s: any) => ({ line: s.line, file: s.file, bytes: s.bytes, bytes_per_step: s.bytes_per_step, survivors: s.survivors })));
  await tab.until("document.querySelectorAll('#view tbody tr').length > 0");
  const first = await tab.eval<number[]>("[...document.querySelectorAll('#view tbody tr:first-child td[data-bytes]')].map(e => Number(e.dataset.bytes))");
  assert.deepEqual(first, [...want.sites[0].bytes, want.sites[0].bytes_per_step]);
  // All of the first file that lives on is of the allocations that compare follows to the end.
  const [{ bytes, event }] = (await tab.state()).figures.survivors[0];
  assert.equal(bytes[0][0], device(leak[0]!).requested_bytes);
  assert.ok(bytes[0][2] > 0 && bytes[0][2] <= bytes[0][1] && bytes[0][1] <= bytes[0][0]);
  assert.equal(event[0][2], device(leak[0]!).events, "the file before is the beginning of the later one");
}, { fragment: "#v=compare" });

for (const [file, word] of [["peak/step-2.pickle", "UNKNOWN"], ["logits/step-3.pickle.gz", "OK"]] as const) {
  scenario(`the card states the verdict where there are only notes: ${file}`, [example(file)], async ({ tab }) => {
    const { verdict, findings } = json("diagnose", example(file));
    await tab.until("document.querySelector('#verdict .word')");
    assert.equal(verdict, word.toLowerCase());
    assert.deepEqual(await tab.eval("[...document.querySelectorAll('#word, #verdict .chips .word')].map(e => e.dataset.word)"), [word, word]);
    const good = await tab.eval<string>("getComputedStyle(document.documentElement).getPropertyValue('--good')");
    assert.equal((await tab.eval<string>("(c => '#' + c.match(/\\d+/g).slice(0, 3).map(v => Number(v).toString(16).padStart(2, '0')).join(''))(getComputedStyle(document.querySelector('#word')).backgroundColor)")) === good.trim(), word === "OK", "good news are green, and nothing else is");
    const card = await tab.eval<string>("document.getElementById('verdict').textContent");
    const notes = findings.filter((f: any) => f.kind === (word === "OK" ? "peak" : "history"));
    for (const f of notes) assert.ok(card.includes(f.brief.title), `${f.brief.title} is in ${card}`);
  });
}

scenario("on arrival the card has the leak's line, bytes, course, confidence, stack and remedy, and no other line's stack", leak, async ({ tab }) => {
  const [worst] = json("diagnose", ...leak).findings;
  await tab.until("document.querySelector('#verdict .stack')");
  const card = await tab.eval<string>("document.getElementById('inspector').innerText");
  for (const part of ["LEAK", "w02_image_leak.py:39 normalise", "now 205 MiB", "88.9 → 145 → 205 MiB", "91% sure", worst.remedies[0].text, worst.basis]) assert.ok(card.includes(part), `${part} is in ${card}`);
  assert.equal(await tab.eval("document.querySelector('#verdict .what').innerText"), "w02_image_leak.py:39 normalise");
  // One stack is there, and it is that of the finding.
  const stacks = await tab.eval<string[][]>("[...document.querySelectorAll('#inspector .stack')].map(e => [...e.querySelectorAll('.where')].map(x => x.textContent))");
  assert.deepEqual(stacks, [worst.stack.map((f: any) => `${f.file.split("/").at(-1)}:${f.line}`)]);
  // Its band, its row, and its line in Compare have the color of the mark.
  const mark = await tab.eval<string>("(e => (document.body.append(e), e = [getComputedStyle(e).backgroundColor, e.remove()], e[0]))(Object.assign(document.createElement('span'), { className: 'sw s10' }))");
  const key = await tab.eval<string>(`strandline.bands().groups.find(g => g.line === ${worst.site.line} && g.function === ${JSON.stringify(worst.site.function)}).key`);
  const swatch = `getComputedStyle(document.querySelector("#view tr[data-site='${key}'] .sw")).backgroundColor`;
  assert.equal(await tab.eval(swatch), mark);
  const column = await tab.eval<any>("strandline.column(strandline.device().events - 1)");
  const band = column.entries.findIndex((e: any) => e.bytes > worst.bytes * 0.05 && e.bands === 1);
  assert.ok(band >= 0);
  const drawn = await tab.eval<string[]>("(c => (d => [...Array(c.height).keys()].map(y => 'rgb(' + [...d.slice(4 * y, 4 * y + 3)].join(', ') + ')'))(c.getContext('2d').getImageData(c.width - 12, 0, 1, c.height).data))(document.querySelector('#rail canvas'))");
  assert.ok(drawn.filter((x) => x === mark).length > 100, `${drawn.filter((x) => x === mark).length} pixels of the last column have the mark's color ${mark}`);
  await tab.click("[data-key='view compare']");
  await tab.until(`document.querySelector("#view tr[data-site='${key}']")`);
  assert.equal(await tab.eval(swatch), mark);
  assert.equal(await tab.eval("document.querySelector('#verdict .what').innerText"), "w02_image_leak.py:39 normalise", "the card stays");
  // Another finding is pinned by its flag: the card and the mark move.
  await tab.click("[data-key='view timeline']");
  await tab.settled();
  await tab.click("#rail [data-key='pin 1']");
  await tab.until("document.querySelector('#verdict .what').innerText === 'w02_image_leak.py:44 patches'");
  assert.notEqual(await tab.eval(swatch), mark);
  // And by the way from its evidence to the timeline.
  await tab.click("[data-key='view findings']");
  await tab.click("[data-key='finding 0']");
  await tab.click(".findings [data-key=show]");
  await tab.until("strandline.state().view === 'timeline' && document.querySelector('#verdict .what')?.innerText === 'w02_image_leak.py:39 normalise'");
  // Closed, it leaves its room to the picture, and the chip brings it back.
  await tab.key("Escape");
  await tab.settled();
  const narrow = await tab.eval<number>("document.getElementById('rail').clientWidth");
  await tab.click("[data-key='close card']");
  await tab.until("document.getElementById('inspector').hidden");
  assert.ok((await tab.eval<number>("document.getElementById('rail').clientWidth")) > narrow + 300);
  await tab.click("#word");
  await tab.until("!document.getElementById('inspector').hidden && document.querySelector('#verdict .stack')");
});

const made = steps(folder, 6);

scenario("growth per file is the judged one: what was made once does not grow", made, async ({ tab }) => {
  const { findings } = json("diagnose", ...made);
  const leaks = findings.find((f: any) => f.kind === "leak");
  assert.equal(leaks.bytes_per_step, 1 << 20);
  assert.equal(findings.find((f: any) => f.kind === "growth").site.line, 5, "and what was made once is a note");
  await tab.until("document.querySelectorAll('#view tbody tr').length === 2 && strandline.state().figures.findings", 60000);
  const cells = await tab.eval<string[][]>("[...document.querySelectorAll('#view tbody tr')].map(tr => [...tr.children].map(e => e.textContent))");
  const at = (await tab.eval<string[]>("[...document.querySelectorAll('#view thead th')].map(e => e.textContent)")).indexOf("growth per file");
  assert.deepEqual(cells.map((row) => [row[0], row[at]]), [["train.py:9 step", "+1 MiB"], ["train.py:5 step", "–"]]);
}, { fragment: "#v=compare" });

const long = steps(folder, 14);

scenario("more than twelve files are a strip of cells", long, async ({ tab }) => {
  await tab.until("document.querySelectorAll('#view tbody tr').length === 2 && strandline.state().figures.findings", 60000);
  const heads = await tab.eval<string[]>("[...document.querySelectorAll('#view thead th')].map(e => e.textContent)");
  assert.deepEqual(heads.slice(1, 4), ["01", "all 14", "14"]);
  const cells = await tab.eval<string[]>("[...document.querySelectorAll('#view tbody tr:first-child .heat i')].map(e => e.title)");
  assert.deepEqual([cells.length, cells[0], cells.at(-1)], [14, "made-01.json: 1 MiB", "made-14.json: 14 MiB"]);
}, { fragment: "#v=compare" });

const ranks = [0, 1].flatMap((r) => [4, 6].map((s) => example(`ranks/rank${r}-step-${s}.pickle`)));

scenario("ranks stand beside each other", ranks, async ({ tab }) => {
  await tab.until("document.querySelector('[data-key=process]')?.value === '-1'", 20000);
  await tab.until("/most different/.test(document.querySelector('#view thead th').textContent)");
  const rows = await tab.eval<number[][]>("[...document.querySelectorAll('#view tbody tr')].map(r => [...r.querySelectorAll('td[data-bytes]')].map(e => Number(e.dataset.bytes)))");
  assert.deepEqual([0, 1].map((i) => rows.reduce((n, r) => n + r[i]!, 0)), [device(ranks[1]!).requested_bytes, device(ranks[3]!).requested_bytes]);
  for (const [a, b, spread] of rows) assert.equal(spread, Math.abs(a! - b!));
}, { fragment: "#v=compare" });

const allRanks = [0, 1, 2, 3].flatMap((r) => [2, 4, 6].map((s) => example(`ranks/rank${r}-step-${s}.pickle`)));

scenario("each rank step by step, and all at the newest step, with the figures of compare", allRanks, async ({ tab }) => {
  const { groups } = json("compare", ...allRanks);
  const { findings } = json("diagnose", ...allRanks);
  await tab.until("document.querySelector('[data-key=process]')?.value === '-1'", 20000);
  type Row = [string, ...(number | null)[]];
  const table = (): Promise<Row[]> => tab.eval<Row[]>("[...document.querySelectorAll('#view tbody tr')].map(r => [r.children[0].title || r.children[0].textContent, ...[...r.querySelectorAll('td')].map(e => e.dataset.bytes === undefined ? null : Number(e.dataset.bytes))])");
  const figures = async (label: string): Promise<(number | null)[]> => (await table()).find(([name]) => name === label)!.slice(1) as (number | null)[];
  const label = (s: any): string => `${s.file.split("/").pop()}:${s.line} ${s.function}`;
  for (const [i, g] of groups.entries()) {
    for (const s of g.sites) assert.equal((await figures(label(s)))[i], s.bytes.at(-1), `${g.process}, ${label(s)}`);
  }
  for (const [i, g] of groups.entries()) {
    await tab.eval(`(e => { e.value = "${i}"; e.dispatchEvent(new Event("change")) })(document.querySelector("[data-key=process]"))`);
    await tab.until(`document.querySelector("[data-key=process]").value === "${i}" && /most growth/.test(document.querySelector("#view thead th").textContent)`);
    const counts = g.files.map((f: string) => device(f).events);
    // Those of the process before stay until these are drawn.
    await tab.until(`(s => s?.rows.length === ${g.files.length} && s.events === Math.max(...s.rows.map((r, n) => r.offset + [${counts}][n])))(strandline.state().figures.strips)`);
    assert.equal((await table()).length, g.sites.length);
    for (const s of g.sites) {
      const judged = findings.find((f: any) => f.severity !== "info" && f.process === g.process && f.site?.line === s.line && f.bytes_per_step);
      assert.deepEqual((await figures(label(s))).slice(0, g.files.length + 1), [...s.bytes, judged?.bytes_per_step ?? 0], `${g.process}, ${label(s)}`);
    }
    const heads = await tab.eval<string[]>("[...document.querySelectorAll('#view thead th')].map(e => e.textContent)");
    assert.deepEqual(heads.slice(1, g.files.length + 2), ["2", "4", "6", "growth per file"]);
    // Histories that go on are drawn on one axis: each snapshot stands where it was taken.
    const { rows } = (await tab.state()).figures.strips;
    assert.ok(rows.every((r: any, n: number) => n === 0 || r.offset + counts[n] > rows[n - 1].offset + counts[n - 1]), `${JSON.stringify(rows)} of ${counts}`);
  }
}, { fragment: "#v=compare" });

scenario("ranks with a device of their own stand beside each other, and long names lose their middle", ranksOfTheirOwn(folder), async ({ tab }) => {
  await tab.eval(`(p => { const draw = p.fillText; window.beyond = []; window.drawn = []; p.fillText = function (text, x, ...at) { const w = this.measureText(text).width; drawn.push(text); if (this.canvas.width && x - (this.textAlign === "right" ? w : this.textAlign === "center" ? w / 2 : 0) < -1) beyond.push(text); return draw.call(this, text, x, ...at); } })(CanvasRenderingContext2D.prototype)`);
  await tab.click("[data-key='view compare']");
  await tab.until("strandline.state().figures.strips?.rows.length === 2");
  await tab.key("x");
  await tab.key("x");
  await tab.until("drawn.some((t) => /^[ab]-run.*….*rank/.test(t)) && drawn.some((t) => /, device [01]$/.test(t))");
  assert.deepEqual(await tab.eval("beyond"), []);
  const [wide, room] = await tab.eval<[number, number]>("(e => [e.scrollWidth, e.clientWidth])(document.querySelector('#view .scroll'))");
  assert.ok(wide <= room, `the table is ${wide} wide, in ${room}`);
});

scenario("a finding of one of several ranks names it", ranks, async ({ tab }) => {
  const want = json("diagnose", ...ranks).findings;
  await tab.until("strandline.state().figures.findings", 20000);
  const got = await tab.eval<string[]>("[...document.querySelectorAll('.findings li .sev')].map(e => e.textContent)");
  assert.deepEqual(got.map((t) => /rank\d/.exec(t)?.[0]), want.map((f: any) => f.process));
}, { fragment: "#v=findings" });

scenario("findings are diagnose's, and lead to the evidence and back", leak, async ({ tab }) => {
  const want = json("diagnose", ...leak).findings;
  await tab.until("strandline.state().figures.findings", 20000);
  const got = (await tab.state()).figures.findings;
  assert.equal(await tab.eval("document.querySelector('[data-key=file]').selectedOptions[0].textContent"), "step-4.pickle", "the newest file is shown first");
  assert.deepEqual(got, want.map((f: any) => ({ kind: f.kind, bytes: f.bytes ?? null, title: f.title })));
  const at = (await tab.state()).link;
  await tab.until("document.querySelector(\"[data-key='finding 0']\")");
  await tab.click("[data-key='finding 0']");
  await tab.settled();
  const s = await tab.state();
  assert.equal(s.finding, 0);
  assert.ok(s.solo.length > 0, "the site of the leak is shown alone");
  const group = await tab.eval<any>(`strandline.bands().groups.find(g => g.key === ${JSON.stringify(s.solo[0])})`);
  assert.equal(identity(group), identity(want[0].site));
  await tab.click("[data-key=show]");
  await tab.settled();
  assert.equal((await tab.state()).view, "timeline");
  await tab.eval("history.go(-2)");
  await tab.until(`strandline.state().link === ${JSON.stringify(at)}`);
  // They are pinned to their places in the picture.
  await tab.click("[data-key='view timeline']");
  await tab.settled();
  await tab.click("[data-key='pin 1']");
  await tab.until("strandline.state().view === 'timeline' && strandline.state().finding === 1");
}, { fragment: "#v=findings" });

scenario("a failed request leads to the allocator as it was then", [example("out-of-memory/oom.pickle")], async ({ tab }) => {
  const [oom] = json("diagnose", example("out-of-memory/oom.pickle")).findings;
  assert.equal(oom.kind, "oom");
  assert.equal((await tab.state()).k, oom.evidence.event, "the cursor begins where memory ran out");
  await tab.until("document.querySelector(\"[data-key='show allocator']\")");
  await tab.click("[data-key='show allocator']");
  await tab.until(`strandline.state().figures.heap?.event === ${oom.evidence.event}`);
  const { heap } = (await tab.state()).figures;
  assert.deepEqual([heap.reserved, heap.allocated + heap.pending], [oom.evidence.reserved_bytes, oom.evidence.active_bytes]);
  // The events beside it lead on, and the remedy can be run.
  await tab.click(`[data-key='event ${oom.evidence.event - 1}']`);
  await tab.until(`strandline.state().figures.heap?.event === ${oom.evidence.event - 1}`);
  await tab.click("[data-key='view findings']");
  await tab.click("[data-key^='try ']");
  await tab.until("strandline.state().figures.runs?.[1]?.peak_reserved_bytes");
  const s = await tab.state();
  assert.deepEqual([s.view, s.sets], ["whatif", ["expandable_segments:True"]]);
  const want = json("simulate", example("out-of-memory/oom.pickle"), "--search").runs.find((r: any) => r.settings === "expandable_segments:True").devices[0];
  assert.deepEqual([s.figures.runs[1].peak_reserved_bytes, s.figures.runs[1].oom], [want.peak_reserved_bytes, null]);
}, { fragment: "#v=findings", dark: true });

const varied = example("varied-lengths/default.pickle.gz");

scenario("what if shows what simulate prints, and draws it to scale", [varied], async ({ tab, server }) => {
  const want = json("simulate", varied, "--set", "expandable_segments:True", "--set", "max_split_size_mb:128", "--capacity", "3GiB");
  const figures = (o: any, d: any): any => [o.settings ?? "", d.peak_reserved_bytes, d.peak_allocated_bytes, d.peak_stranded_bytes, d.oom?.event ?? null, d.driver_calls, d.alloc_retries, d.smallest_capacity_bytes];
  await tab.until(fitted(2));
  assert.equal((await tab.state()).figures.runs[1].settings, "expandable_segments:True", "the settings to try first are run unasked");
  assert.match(await tab.eval("document.querySelector('.fidelity').textContent"), /^Replayed exactly/);
  const field = async (key: string, text: string): Promise<void> => {
    await tab.eval(`(e => { e.focus(); e.select(); })(document.querySelector("[data-key='${key}']"))`);
    await tab.type(text);
    await tab.key("Enter");
    await tab.eval("document.activeElement.blur()");
  };
  await field("conf", "max_split_size_mb:128");
  await field("capacity", "3GiB");
  await tab.until(fitted(3, "x.capacity_bytes === 3221225472"));
  const s = await tab.state();
  const got = s.figures.runs;
  assert.deepEqual(got.slice(1).map((r: any) => figures(r, { ...r, smallest_capacity_bytes: r.fits })), want.runs.map((r: any) => figures(r, r.devices[0])));
  assert.equal(got[0].peak_reserved_bytes, want.devices[0].peak_reserved_bytes);
  assert.equal(got[0].peak_stranded_bytes, want.devices[0].peak_stranded_bytes);
  // The highest row of the curve's color is where its peak belongs.
  const row = await tab.eval<number>(`(() => {
    const c = document.querySelectorAll("#rail canvas")[1], g = c.getContext("2d"), { left, top, width, height } = strandline.state().picture.box;
    const want = getComputedStyle(document.documentElement).getPropertyValue("--s0").trim().match(/[0-9a-f]{2}/g).map(x => parseInt(x, 16));
    const px = g.getImageData(left, top, width, height).data;
    for (let i = 0; i < px.length; i += 4) if (px[i + 3] === 255 && want.every((v, j) => Math.abs(px[i + j] - v) < 3)) return Math.floor(i / 4 / width);
  })()`);
  const high = s.picture.box.height * (1 - got[1].peak_reserved_bytes / s.picture.axis);
  assert.ok(Math.abs(row - high) <= 2, `row ${row}, want ${high}`);
  // What is seen through a link is the same.
  await tab.until(`location.hash === ${JSON.stringify(s.link)}`);
  const other = await tab.browser.open(server.url + s.link);
  await other.until(fitted(3));
  assert.deepEqual((await other.state()).figures.runs, got);
  await other.close();
  await tab.click("[data-key='search']");
  await tab.until("strandline.state().figures.search", 30000);
  const best = json("simulate", varied, "--search", "--capacity", "3GiB");
  assert.deepEqual((await tab.state()).figures.search.map((r: any) => [r.settings, r.peak_reserved_bytes]), best.runs.map((r: any) => [r.settings, r.devices[0].peak_reserved_bytes]));
}, { fragment: "#v=whatif" });

scenario("what if takes the memory that an error shows, and shows which settings run out", [example("out-of-memory/oom.pickle")], async ({ tab }) => {
  const want = json("simulate", example("out-of-memory/oom.pickle"), "--set", "", "--capacity", String(json("simulate", example("out-of-memory/oom.pickle")).devices[0].assumed.capacity));
  await tab.until("strandline.state().figures.runs?.[1]?.oom");
  const [recorded, own] = (await tab.state()).figures.runs;
  assert.equal(own.oom.event, want.runs[0].devices[0].oom.event);
  assert.equal(recorded.oom.event, own.oom.event);
  await tab.click("[data-key='row recorded']");
  assert.equal((await tab.state()).k, own.oom.event);
}, { fragment: "#v=whatif&set=!", dark: true });

scenario("what if warns where the file's own run is not reproduced", [torn], async ({ tab }) => {
  const [d] = json("simulate", torn).devices;
  assert.equal(d.exact, false);
  await tab.until("strandline.state().figures.runs?.[1]?.peak_reserved_bytes");
  assert.match(await tab.eval("document.querySelector('.fidelity').textContent"), new RegExp(`^Not replayed exactly: ${d.driver_calls.reproduced} of ${d.driver_calls.recorded} calls`));
  assert.equal((await tab.state()).figures.runs[0].peak_reserved_bytes ?? null, null, "nothing is shown of a recorded run that is not known");
}, { fragment: "#v=whatif" });

scenario("the card names the worst finding, with a remedy to copy, and leads to its evidence", [example("out-of-memory/oom.pickle")], async ({ tab }) => {
  const [worst, ...others] = json("diagnose", example("out-of-memory/oom.pickle")).findings;
  await tab.until("document.querySelector('#verdict .word')");
  const card = await tab.eval<string>("document.getElementById('verdict').innerText");
  for (const part of ["OOM", worst.brief.title, worst.brief.fact, `w06b_oom_fragmented.py:${worst.site.line} main`, worst.remedies[0].text, "replayed: succeeds"]) assert.ok(card.includes(part), `${part} is in ${card}`);
  assert.equal(await tab.eval("document.querySelector(\"[data-key='view findings']\").textContent"), `Findings ${others.length + 1}`);
  await tab.eval("navigator.clipboard.writeText = (text) => ((window.copied = text), Promise.resolve())");
  await tab.click("#verdict .command [data-copy]");
  assert.equal(await tab.eval("copied"), `export ${worst.remedies[0].setting}`);
  await tab.click("#verdict [data-key=evidence]");
  await tab.until("strandline.state().view === 'findings'");
  assert.ok((await tab.eval<string>("document.querySelector('.findings article').innerText")).includes(worst.title));
  assert.ok(await tab.eval("document.getElementById('inspector').hidden"), "it is there once");
  assert.ok(!/_|\b(passing|echo)\b/.test(await tab.eval("[...document.querySelectorAll('.findings article dt')].map(e => e.textContent).join(' ')")), "evidence is in words");
});

scenario("two runs begin together, and are distinguished by their difference", [example("change/before.pickle.gz"), example("change/after.pickle.gz")], async ({ tab }) => {
  await tab.until("document.querySelector('[data-key=runs]')", 20000);
  assert.equal(await tab.eval("document.querySelector('[data-key=runs]').textContent"), "separate runs");
  const heads = await tab.eval<string[]>("[...document.querySelectorAll('#view thead th')].map(e => e.textContent)");
  assert.ok(heads.includes("difference") && !heads.includes("growth per file"), `${heads}`);
  // What has no stack is named by the cause, as in compare; what lives at peaks alone has a row.
  const changed = json("compare", "--runs", example("change/before.pickle.gz"), example("change/after.pickle.gz")).runs.sites;
  assert.deepEqual(changed.filter((s: any) => !s.file).map((s: any) => s.missing), ["autograd thread"]);
  await tab.until("strandline.state().figures.strips?.rows.length === 2");
  await tab.click("[data-key='at peaks']");
  await tab.until("document.querySelector('[data-key=\"at peaks\"]').ariaPressed === 'true'");
  const rows = await tab.eval<[string, number, number][]>("[...document.querySelectorAll('#view tbody tr')].map(tr => [tr.children[0].textContent, ...[...tr.querySelectorAll('td[data-bytes]')].slice(0, 2).map(e => Number(e.dataset.bytes))])");
  for (const s of changed) {
    const [, ...peaks] = rows.find(([name]) => (s.missing ? name === s.missing : name.endsWith(` ${s.function}`)))!;
    assert.ok(peaks[0] >= s.peak_before_bytes && peaks[1] >= s.peak_after_bytes, `${JSON.stringify(s)}: ${peaks}`);
  }
}, { fragment: "#v=compare" });

scenario("compare has axes, names what is under the pointer, and opens its file there", leak, async ({ tab }) => {
  await tab.until("strandline.state().figures.strips?.rows.length === 3 && strandline.state().figures.compare", 20000);
  await pause(300);
  const { rows, left, room, events } = (await tab.state()).figures.strips;
  const box = await tab.eval<{ x: number; y: number }>("(r => ({ x: r.left, y: r.top }))(document.querySelector('.rows canvas').getBoundingClientRect())");
  const row = rows[1];
  const at: [number, number] = [box.x + left + ((row.offset + 900) / events) * room, box.y + row.y + row.high * 0.9];
  await tab.mouse("mouseMoved", ...at);
  await tab.until("!document.getElementById('tooltip').hidden");
  assert.match(await tab.eval("document.querySelector('#tooltip .head').textContent"), /step-3/);
  const event = await tab.eval<number>("Number(document.getElementById('tooltip').dataset.event)");
  assert.ok(Math.abs(event - 900) <= 32, `the column shows event ${event}`);
  await tab.click("[data-key='at peaks']");
  const shown = await tab.eval<number[]>("[...document.querySelectorAll('#view tbody tr:first-child td[data-bytes]')].slice(0, 3).map(e => Number(e.dataset.bytes))");
  const site = await tab.eval<string>("document.querySelector('#view tbody tr').dataset.site");
  for (const [i, file] of leak.entries()) {
    const group = await tab.eval<any>(`${answer(`"api/bands?f=${rows[i].f}"`)}.then(b => b.groups.find(g => g.key === ${JSON.stringify(site)}))`);
    const live = json("inspect", file, "--at", String(group.peak.event)).at.sites.find((s: any) => identity(s) === identity(group));
    assert.equal(shown[i], live.bytes, file);
  }
  await tab.clickAt(...at);
  await tab.until("strandline.state().view === 'timeline'");
  await tab.settled();
  const s = await tab.state();
  assert.deepEqual([s.k, s.f], [event, row.f]);
}, { fragment: "#v=compare" });

scenario("the policy that keeps reserved memory under a size is drawn over the run", [varied], async ({ tab }) => {
  const { reclaim } = json("simulate", varied, "--keep-under", "3GiB");
  await tab.until("strandline.state().figures.kept");
  assert.equal((await tab.state()).figures.kept, reclaim.tried.find((t: any) => t.policy === reclaim.policy).devices[0].peak_reserved_bytes);
  assert.match(await tab.eval("document.getElementById('kept').textContent"), /--reclaim above=\d+MiB/);
}, { fragment: "#v=whatif&under=3GiB" });
