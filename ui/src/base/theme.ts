// Dark or light, as the reader's system has it or as he chose.

import { byId } from "./dom.ts";

const wantsDark = matchMedia("(prefers-color-scheme: dark)");

/** The theme that the reader chose. Where the page may keep nothing, as in a frame, there is none. */
function remembered(chosen?: string): string | null {
  try {
    if (chosen) localStorage.setItem("strandline-theme", chosen);
    return localStorage.getItem("strandline-theme");
  } catch {
    return chosen ?? null;
  }
}

/** Reports that a pixel of the page has become another number of the screen's, as on another monitor or by zoom. */
function sharp(changed: () => void): void {
  const now = matchMedia(`(resolution: ${devicePixelRatio}dppx)`);
  now.addEventListener("change", () => {
    dispatchEvent(new Event("resize"));
    changed();
    sharp(changed);
  }, { once: true });
}

/** Sets the theme now and whenever it changes, and reports it. */
export function theme(changed: () => void): void {
  const set = (chosen = remembered()): void => {
    document.documentElement.dataset.theme = chosen ?? (wantsDark.matches ? "dark" : "light");
    changed();
  };
  wantsDark.addEventListener("change", () => set());
  byId("theme").addEventListener("click", () => set(remembered(document.documentElement.dataset.theme === "dark" ? "light" : "dark")));
  set();
  sharp(changed);
  // Paper is white. Not all browsers report both the medium and the event.
  const medium = matchMedia("print");
  let printing = false;
  const turn = (paper: boolean): void => {
    if (paper === printing) return;
    printing = paper;
    if (!paper) set();
    else {
      document.documentElement.dataset.theme = "light";
      changed();
    }
    dispatchEvent(new CustomEvent("paper", { detail: paper }));
  };
  medium.addEventListener("change", () => turn(medium.matches));
  addEventListener("beforeprint", () => turn(true));
  addEventListener("afterprint", () => turn(medium.matches));
}
