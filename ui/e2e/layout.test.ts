// Sizes, colors, paper, and accessibility.

import assert from "node:assert/strict";
import { pause } from "./browser.ts";
import { clean, device, forceColors, openShows, styles } from "./checks.ts";
import { last, leak, point, scenario } from "./scenario.ts";
import { example } from "./server.ts";

scenario("a narrow window has no horizontal scroll", [last], async ({ tab }) => {
  assert.equal(await tab.eval("document.documentElement.scrollWidth <= innerWidth && document.getElementById('top').scrollWidth <= innerWidth"), true);
}, { width: 1000 });

scenario("half as wide it keeps the name of the file and all buttons", [last], async ({ tab }) => {
  for (const view of ["timeline", "allocator", "sites", "whatif", "findings"]) {
    await tab.click(`[data-key='view ${view}']`);
    await tab.settled();
    assert.equal(await tab.eval("document.documentElement.scrollWidth <= innerWidth"), true, view);
    assert.deepEqual(await tab.eval(`["#files > *", "#tabs [aria-current]", "#help"].map(s => document.querySelector(s).getBoundingClientRect()).map(r => r.width > 20 && r.right <= innerWidth)`), [true, true, true], view);
  }
}, { width: 700 });

scenario("nothing overlaps or scrolls sideways at 900 pixels, whatever the view", leak, async ({ tab }) => {
  await tab.eval(`(p => { const draw = p.fillText; window.beyond = []; p.fillText = function (text, x, ...at) { const w = this.measureText(text).width, end = x + (this.textAlign === "right" ? 0 : this.textAlign === "center" ? w / 2 : w); if (this.canvas.width && end > this.canvas.width / devicePixelRatio + 1) beyond.push(text); return draw.call(this, text, x, ...at); } })(CanvasRenderingContext2D.prototype)`);
  for (const view of ["timeline", "allocator", "sites", "compare", "whatif", "findings"]) {
    await tab.click(`[data-key='view ${view}']`);
    await tab.settled();
    await pause(400);
    const wrong = await tab.eval<string[]>(`[...document.querySelectorAll("body *")].filter(e => e.offsetParent && !e.closest(".unseen, .skip, #tooltip, .name > *")).flatMap(e => { const r = e.getBoundingClientRect(); const how = getComputedStyle(e).overflowX; return (r.width && r.right > innerWidth + 1) || ((how === "auto" || how === "scroll") && e.scrollWidth > e.clientWidth + 1) ? [e.tagName + "#" + e.id + "." + e.className] : []; })`);
    assert.deepEqual(wrong, [], view);
    const top = await tab.eval<[number, number][]>(`[...document.querySelectorAll("#top > *")].filter(e => e.offsetParent && !e.closest("#tabs")).map(e => e.getBoundingClientRect()).filter(r => r.top < 40).map(r => [r.left, r.right]).sort((a, b) => a[0] - b[0])`);
    for (const [i, r] of top.slice(1).entries()) assert.ok(r[0] >= top[i]![1] - 0.5, `${view}: ${JSON.stringify(top)}`);
    const pins = await tab.eval<[string, number, number][]>(`[...document.querySelectorAll("#rail .pin, #rail .flag")].map(e => [e.textContent, e.getBoundingClientRect()]).flatMap(([a, r], i, all) => all.slice(i + 1).filter(([, o]) => r.left < o.right - 1 && o.left < r.right - 1 && r.top < o.bottom - 1 && o.top < r.bottom - 1).map(([b]) => a + " and " + b))`);
    assert.deepEqual(pins, [], `${view}: flags over each other`);
    assert.deepEqual(await tab.eval("beyond"), [], `${view}: texts that the picture cuts off`);
  }
}, { width: 900 });

for (const width of [1101, 1400]) {
  scenario(`the runs of What if can be removed without scrolling at ${width} pixels`, [example("out-of-memory/oom.pickle")], async ({ tab }) => {
    await tab.until("document.querySelector('.runs [data-key^=\"drop \"]')");
    assert.deepEqual(await tab.eval("(e => [e.scrollWidth, document.querySelector('.runs td.good').textContent])(document.querySelector('.runs'))"), [await tab.eval("document.querySelector('.runs').clientWidth"), "fits"]);
  }, { width, fragment: "#v=whatif" });
}

const graph = ["iter-20.pickle","iter-40.pickle","iter-60.pickle"].map((n) => example(`autograd-graph/${n}`));

scenario("the pin of single allocations is at their middle, and points to them", [example("out-of-memory/oom.pickle")], async ({ tab }) => {
  await tab.until("document.querySelector('#rail .pin.warning')");
  const [pin, all] = await tab.eval<DOMRect[]>("['#rail .pin.warning', '#rail [data-figure=gutter-kept]'].map(s => document.querySelector(s).getBoundingClientRect().toJSON())");
  assert.ok(pin!.top > all!.top && pin!.top < all!.top + 60, `${pin!.top}, what is kept ends at ${all!.top}`);
}, { width: 900 });

scenario("a link to a view that one file does not have opens the timeline, in its whole width", [last], async ({ tab }) => {
  const { room } = await tab.eval<{ room: number }>("({ room: document.querySelector('#rail canvas').width })");
  await tab.eval("location.hash = '#v=compare'");
  await tab.until("strandline.state().view === 'timeline'");
  await tab.settled();
  assert.equal(await tab.eval("document.querySelector('#rail canvas').width"), room);
});

scenario("the finding of the peak's lines stands beside its flag", graph, async ({ tab }) => {
  await tab.until("document.querySelector('#rail .pin.problem')");
  await tab.settled();
  const [flag, pin] = await tab.eval<DOMRect[]>("['#rail .flag', '#rail .pin.problem'].map(s => document.querySelector(s).getBoundingClientRect().toJSON())");
  assert.ok(pin!.top >= flag!.bottom - 1 || pin!.left >= flag!.right - 1 || pin!.right <= flag!.left + 1 || pin!.bottom <= flag!.top + 1, JSON.stringify([flag, pin]));
}, { width: 1400 });

scenario("forced colors keep swatches, and show which view is open", [last], async ({ tab }) => {
  await forceColors(tab);
  await pause(200);
  assert.ok(new Set(await styles(tab, "tbody .sw", "backgroundColor")).size > 3);
  await openShows(tab);
  for (const view of ["allocator", "sites", "whatif", "findings", "timeline"]) {
    await tab.click(`[data-key='view ${view}']`);
    await tab.settled();
    await pause(300);
    await clean(tab);
  }
});

scenario("a printed sheet has the verdict, the picture, the whole table and no controls", leak, async ({ tab }) => {
  await tab.send("Emulation.setEmulatedMedia", { media: "print" });
  await pause(200);
  const seen = (selector: string): Promise<boolean> => tab.eval(`[...document.querySelectorAll(${JSON.stringify(selector)})].some(e => e.offsetParent)`);
  for (const part of ["#verdict .stack", "#rail .sheet", "#view tbody tr:last-child", "#cursor"]) assert.ok(await seen(part), part);
  for (const part of ["#tabs", "#right", "#rail .box", "#tools button", "#view .bar .end", "#inspector .acts"]) assert.ok(!(await seen(part)), part);
  const [sheet, room] = await tab.eval<[number, number]>(`["#rail .sheet", "#main"].map(s => document.querySelector(s).getBoundingClientRect().width)`);
  assert.ok(Math.abs(sheet - room) < 1, `the picture takes ${sheet} of ${room} pixels`);
  const [end, table, below] = await tab.eval<number[]>(`[["#inspector", "bottom"], ["#view tbody", "top"], ["#rail", "bottom"]].map(([s, edge]) => document.querySelector(s).getBoundingClientRect()[edge])`);
  assert.ok(below! <= end! && end! <= table!, `what is at the cursor, which ends at ${end}, stands between the picture, to ${below}, and the table, from ${table}`);
  const { scrolls, inked } = await tab.eval<any>(`({ scrolls: [...document.querySelectorAll("#main *")].filter(e => e.scrollHeight > e.clientHeight + 2 && ["auto", "scroll", "hidden"].includes(getComputedStyle(e).overflowY) && !e.closest(".unseen, th")).map(e => e.className), inked: new Set(document.querySelector("#rail .sheet").getContext("2d").getImageData(0, 200, 600, 1).data).size })`);
  assert.deepEqual(scrolls, []);
  assert.ok(inked > 10, "the picture is drawn");
  const { data } = await tab.send("Page.printToPDF", { preferCSSPageSize: true, printBackground: true });
  assert.ok(data.length > 20_000, `the sheet has ${data.length} characters`);
  // Afterwards the page is as it was, and where there is no picture there is none on the sheet.
  await tab.send("Emulation.setEmulatedMedia", { media: "screen" });
  await tab.settled();
  assert.deepEqual([await seen("#rail .sheet"), await seen("#rail .box")], [false, true]);
  assert.equal((await tab.eval<any>(`strandline.column(${device(last).peak_requested_event})`)).max, device(last).peak_requested_bytes);
  await tab.click("[data-key='view compare']");
  await tab.until("document.querySelector('.rows canvas')");
  await tab.send("Emulation.setEmulatedMedia", { media: "print" });
  assert.equal(await seen("#rail .sheet"), false);
}, { dark: true });

for (const dark of [false, true]) {
  scenario(`no view has a violation of accessibility, ${dark ? "dark" : "light"}`, leak, async ({ tab }) => {
    for (const view of ["timeline", "allocator", "sites", "compare", "whatif", "findings"]) {
      await tab.click(`[data-key='view ${view}']`);
      await tab.settled();
      await pause(300);
      await clean(tab);
    }
    // What is pinned, the picture as a table, a site alone, a pattern that is none.
    await tab.click("[data-key='view timeline']");
    await tab.clickAt(...(await point(tab, device(last).peak_requested_event, device(last).peak_requested_bytes * 0.3)));
    await tab.until("document.getElementById('pinned')");
    await clean(tab);
    await tab.key("z");
    await tab.key("t");
    await tab.until("strandline.state().figures.twin");
    await clean(tab);
    await tab.key("t");
    await tab.key("/");
    await tab.type("(");
    await tab.until("document.getElementById('search').getAttribute('aria-invalid') === 'true'");
    tab.problems.splice(0, tab.problems.length, ...tab.problems.filter((p) => !/400 \(Bad Request\)/.test(p)));
    await clean(tab);
    await tab.key("Escape");
    await tab.key("?");
    await clean(tab);
    await tab.key("Escape");
    await tab.key("e");
    await clean(tab);
    await tab.key("Escape");
  }, { dark });
}

scenario("where room is short a name loses its middle, not its end", [last], async ({ tab }) => {
  const name = await tab.eval<any>(`(e => { const width = (part) => parseFloat(getComputedStyle(e, part).width); const [begin, end] = [width("::before"), width("::after")]; e.style.width = "120px"; return { text: e.textContent, drawn: e.dataset.begin + e.dataset.end, cut: width("::before") < begin, end: width("::after") === end && end > 0, title: e.parentElement.title }; })(document.querySelector("#view tbody .cut"))`);
  assert.deepEqual([name.cut, name.end, name.title, name.drawn], [true, true, name.text, name.text]);
  // What is read aloud, found and copied is the name in one piece.
  const { nodes } = await tab.send("Accessibility.getFullAXTree");
  assert.ok(nodes.some((n: any) => n.role?.value === "rowheader" && n.name?.value === name.text), `a row is called ${name.text}`);
}, { width: 900 });

for (const width of [390, 768, 1280, 2560]) {
  scenario(`parts of the page stand beside each other at ${width} pixels`, [last], async ({ tab }) => {
    await tab.until("document.querySelector('#verdict .stack')");
    for (const view of ["timeline", "allocator", "findings"]) {
      await tab.click(`[data-key='view ${view}']`);
      await tab.settled();
      assert.ok(await tab.eval("document.documentElement.scrollWidth <= innerWidth"), `${view} scrolls sideways`);
      const over = await tab.eval<string[]>(`(boxes => boxes.flatMap(([a, r], i) => boxes.slice(i + 1).filter(([, o]) => r.left < o.right - 1 && o.left < r.right - 1 && r.top < o.bottom - 1 && o.top < r.bottom - 1).map(([b]) => a + " and " + b)))(["#top", "#verdict", "#detail", "#tools", "#rail", "#view"].map(s => [s, document.querySelector(s)]).filter(([, e]) => e.checkVisibility() && e.clientHeight).map(([s, e]) => [s, e.getBoundingClientRect()]))`);
      assert.deepEqual(over, [], view);
      const wide = await tab.eval<number>("Math.max(0, ...[...document.querySelectorAll('#view table')].map(e => e.clientWidth))");
      assert.ok(wide <= 1100, `${view}: a table of ${wide} pixels`);
    }
  }, { width });
}
