// Scenarios on the pages of recordings, in a real Chromium: at the end of each nothing is
// on the console, and axe finds nothing.

import { after, before, test } from "node:test";
import { Browser, chromium, type Tab } from "./browser.ts";
import { clean, shoot } from "./checks.ts";
import { serve, type Server } from "./server.ts";

export const skip = chromium ? false : "Chromium is missing";

export let browser: Browser;
before(async () => {
  if (!skip) browser = await Browser.start();
});
after(async () => {
  if (!skip) await browser.close();
});

interface Look {
  width?: number;
  height?: number;
  dark?: boolean;
}

type Scenario = (name: string, file: () => string, act: (tab: Tab, url: string, file: string, server: Server) => Promise<void>, look?: Look) => void;

/** Makes scenarios on a page that is ready once an expression holds. */
export const scenarios = (page: string, settled: string, timeout: number): Scenario => (name, file, act, look = {}) => {
  test(name, { skip, timeout }, async () => {
    const path = file();
    const running = await serve(path);
    const tab = await browser.open(running.url, look.width, look.height, look.dark);
    try {
      await tab.until(settled);
      await act(tab, running.url, path, running);
      await clean(tab);
    } finally {
      await shoot(tab, `${page} ${name}`);
      await tab.close();
      await running.stop();
    }
  });
};
