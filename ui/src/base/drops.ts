// Files that are dropped on a page: they are read in place of its own or beside them.

import { link, Refused, secretHeader } from "./ask.ts";
import { h } from "./dom.ts";

/** A file that the reader chose, or that lay in a folder that he chose. */
export interface Picked {
  path: string;
  file: File;
  named: boolean; // by the reader himself
}

declare global {
  interface Window {
    strandlineOpen?: (picked: Picked[]) => Promise<void>; // of a page without a server: a script before the page's own makes it
  }
}

/** Opens what is dropped on the page from now on, unless it shows but one thing. say shows how that goes, or why it is not opened. */
export function takeDrops(say: (text: string) => void, takes = !link.saved): void {
  addEventListener("dragover", (e) => e.preventDefault());
  addEventListener("drop", (e) => {
    e.preventDefault(); // or the browser leaves the page for the file
    const { files } = e.dataTransfer!;
    if (!takes && !window.strandlineOpen) return say(elsewhere([...files].map((f) => f.name)));
    dropped(e.dataTransfer!)
      .then((picked) => {
        if (!picked.length) throw new Error("There is no file in that folder.");
        say(`Opening ${named(picked).join(" ")} …`);
        return (window.strandlineOpen ?? hand)(picked);
      })
      .catch((e: Error) => say(e.message));
  });
}

/** The way back to where files are asked for, once some are open. */
export const otherFiles = (): Node | null =>
  window.strandlineOpen && !document.getElementById("drop") ? h("button", { type: "button", id: "other", title: "Start again with other files", onclick: () => location.assign(location.pathname) }, "other files") : null;

const named = (picked: Picked[]): string[] => [...new Set(picked.map((p) => (p.named ? p.path : p.path.split("/")[0]!)))];

const elsewhere = (names: string[]): string => `This page shows what strandline was started with. To see ${names.length === 1 ? "this one" : "these"}: strandline view ${names.join(" ")}`;

/** Hands files to the program, which reads them, and shows the first of them. */
async function hand(picked: Picked[]): Promise<void> {
  const body = new FormData();
  for (const p of picked) body.append(`${p.named ? "named" : "inside"}:${p.path}`, p.file, "file");
  const answer = await fetch("api/drop", { method: "POST", headers: await secretHeader(), body }).catch(() => {
    throw new Error("The program does not take the files: it may have been stopped, or they are too large.");
  });
  const reply = (await answer.json().catch(() => ({}))) as { f: number; error?: string };
  if (!answer.ok) throw new Refused((answer.status !== 405 && reply.error) || elsewhere(named(picked)), answer.status);
  history.replaceState(null, "", `${location.pathname}#f=${reply.f}`);
  location.reload();
}

/** The files of a drop, those of folders too. */
async function dropped(data: DataTransfer): Promise<Picked[]> {
  // Entries are available only until the event is over.
  const entries = [...data.items].map((item) => item.webkitGetAsEntry()).filter((e) => e !== null);
  const out: Picked[] = [];
  for (const e of entries) await walk(e, true, out);
  return out;
}

async function walk(entry: FileSystemEntry, named: boolean, out: Picked[]): Promise<void> {
  if (entry.isFile) {
    const file = await new Promise<File>((done, failed) => (entry as FileSystemFileEntry).file(done, failed));
    out.push({ path: entry.fullPath.replace(/^\//, ""), file, named });
  } else if (named || !entry.name.startsWith(".")) {
    const reader = (entry as FileSystemDirectoryEntry).createReader();
    for (;;) {
      // A reader gives some at a time.
      const some = await new Promise<FileSystemEntry[]>((done, failed) => reader.readEntries(done, failed));
      if (!some.length) return;
      some.sort((a, b) => (a.name < b.name ? -1 : 1));
      for (const e of some) await walk(e, false, out);
    }
  }
}
