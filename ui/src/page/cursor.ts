// What follows the cursor and the search: the event, the pinned allocation, the sites that match.

import { fresh, json, Latest, link, Refused } from "../base/ask.ts";
import { bytes, count, plural } from "../base/format.ts";
import { searched } from "../base/frame.ts";
import { measureName } from "../base/terms.ts";
import type { Alloc, Event } from "../base/wire.ts";
import { announce, banner, page, refused } from "./elements.ts";

const askEvent = new Latest(30);
let eventOf = "";
let allocKey = "";

export function follow(): void {
  const { s, device } = page;
  if (!device || page.d === undefined) return;
  const of = `${page.f} ${page.d} ${page.u}`;
  if (of !== eventOf) page.event = null; // that of another file may have the same number
  eventOf = of;
  if (device.events > 0) {
    askEvent.once(`${of} ${page.k}`, () => json<Event>("event", { f: page.f, d: page.d, u: page.u, k: page.k }), (e) => {
      page.event = e;
      page.figures.active = e.live;
      page.figures.reserved = e.reserved;
      page.notify("event");
      announce(`${e.event < 0 ? "before the first event" : `event ${count(e.event)}`}, ${measureName[page.u]} ${bytes(e.live)}, reserved ${bytes(e.reserved)}`);
    });
  }
  const ak = s.alloc === null ? "" : `${page.f} ${page.d} ${page.file?.blocks} ${page.segments} ${s.alloc}`; // its block is known once the replay is done
  if (ak === allocKey) return;
  allocKey = ak;
  if (page.pinned?.alloc !== s.alloc) page.pinned = null;
  if (s.alloc === null) return page.notify("pinned");
  fresh<Alloc>("alloc", { f: page.f, d: page.d, u: page.segments, i: s.alloc }).then(
    (a) => {
      if (ak !== allocKey) return;
      page.pinned = a;
      page.notify("pinned");
    },
    (e: Error) => link.saved && refused(e),
  );
}

const askFind = new Latest(120);
let findKey = "";

/** Asks for the sites that match the search. */
export function find(): void {
  const { s, bands } = page;
  searched(s.q, page.searchError);
  if (!bands) return;
  const key = `${page.f} ${page.d} ${s.g} ${s.q}`;
  if (key === findKey) return;
  findKey = key;
  const done = (found: Set<string> | null, error: string | null): void => {
    // An invalid pattern leaves the last result as it was.
    if (!error) page.found = found;
    page.searchError = error;
    searched(page.s.q, error);
    banner(error ? `Search: ${error}` : "");
    page.notify("found");
  };
  if (!s.q) {
    askFind.cancel();
    return done(null, null);
  }
  askFind.ask(
    () => fresh<{ keys: string[] }>("find", { ...page.base, q: s.q }),
    (v) => {
      page.figures.found = v.keys.length;
      done(new Set(v.keys), null);
      announce(plural(v.keys.length, "site matches", "sites match"));
    },
    (e) => done(null, e instanceof Refused ? e.message : "the search failed"),
  );
}
