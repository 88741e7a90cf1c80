// Lines of a text and of source code, beside a finding.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { clean } from "./checks.ts";
import { browser, skip } from "./recorded.ts";
import { serve } from "./server.ts";

const folder = mkdtempSync(join(tmpdir(), "strandline-lines-"));
after(() => rmSync(folder, { recursive: true }));

test("the page of a log shows the line that says so", { skip, timeout: 60_000 }, async () => {
  const log = join(folder, "job.log");
  writeFileSync(log, "one\ntwo\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.00 GiB is free.\nfour\n");
  const server = await serve(log);
  const tab = await browser.open(server.url);
  try {
    await tab.until("document.querySelector('.excerpt:not([hidden]) pre b')");
    assert.match(await tab.eval("document.querySelector('.excerpt b').textContent"), /^ +3  torch.OutOfMemoryError: CUDA out of memory/);
    assert.deepEqual(await tab.eval("document.querySelector('.excerpt pre').textContent.trim().split('\\n').length"), 4);
    await clean(tab);
  } finally {
    await tab.close();
    await server.stop();
  }
});
