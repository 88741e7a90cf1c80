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

/** Sets the theme now and whenever it changes, and tells of it. */
export function theme(changed: () => void): void {
  const set = (chosen = remembered()): void => {
    document.documentElement.dataset.theme = chosen ?? (wantsDark.matches ? "dark" : "light");
    changed();
  };
  wantsDark.addEventListener("change", () => set());
  byId("theme").addEventListener("click", () => set(remembered(document.documentElement.dataset.theme === "dark" ? "light" : "dark")));
  set();
}
