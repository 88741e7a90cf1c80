// The course of one key, as it is asked for: the whole, and finer columns where the window
// leaves some out.

import { fresh, Latest, link, type Refused } from "../base/ask.ts";
import { banner, drawing } from "../base/frame.ts";
import type { Span } from "../base/scale.ts";
import { Course } from "./bands.ts";
import type { Levels } from "../base/api.ts";

export class Follower {
  whole: Course | null = null; // over all of time
  course: Course | null = null; // of what is seen of it
  asking = false; // the course is not that of the last answer yet
  private readonly finer = new Latest(60);
  private turn = 0;
  private shown = ""; // the key and the version of the course
  private again = 0;
  private win: Span | null = null;

  /** Asks for the course of a key, where it is not that of now. */
  look(key: string | null | undefined, version: number, win: Span | null): void {
    this.win = win;
    if (!win) this.course = this.whole;
    if (!key) {
      this.whole = this.course = null;
      this.shown = "";
      return;
    }
    const want = `${key} ${version}`;
    if (want === this.shown) return this.window();
    if (this.whole && this.whole.of.key !== key) this.whole = this.course = null;
    this.shown = want;
    const mine = ++this.turn;
    this.asking = true;
    fresh<Levels>("levels", { s: key }).then(
      (answer) => {
        if (mine !== this.turn) return;
        this.asking = false;
        this.whole = new Course(answer);
        if (!this.course || !this.win) this.course = this.whole;
        this.window();
        drawing.ask();
      },
      (e: Refused) => {
        if (mine !== this.turn) return;
        this.asking = false;
        this.shown = "";
        if (link.saved) banner("This saved page has the courses of the largest subjects only.");
        else if (e.status === 404) drawing.ask(); // it was dropped meanwhile
        else if (e.status === 403) this.shown = want; // the program is another run's, and never answers this page
        else this.again = window.setTimeout(() => this.look(key, version, this.win), 1000);
      },
    );
    clearTimeout(this.again);
  }

  private window(): void {
    this.finer.cancel();
    const { win, whole } = this;
    const merged = whole?.of.samples.some((n) => n > 1) ?? false;
    if (!win || !whole || !merged || link.saved) {
      this.course = whole;
      return;
    }
    const { key } = whole.of;
    const [from, to] = [Math.max(0, Math.floor(win[0]) - 1), Math.max(0, Math.ceil(win[1]) + 1)];
    this.finer.ask(
      () => fresh<Levels>("levels", { s: key, from, to }),
      (answer) => {
        if (this.whole?.of.key !== key || !answer.from.length) return;
        this.course = new Course(answer);
        drawing.ask();
      },
    );
  }
}
