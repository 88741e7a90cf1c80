// A question that a page puts once, and its answer.

import { fresh } from "./ask.ts";

export class Once<T> {
  answer: T | null = null;
  error = "";
  private asked = false;

  constructor(
    private readonly name: string,
    private readonly came: (v: T) => void,
    private readonly failed: () => void,
  ) {}

  /** Asks, unless it was asked before. */
  ask(): void {
    if (this.asked) return;
    this.asked = true;
    fresh<T>(this.name).then((v) => this.came((this.answer = v)), (e: Error) => {
      this.error = e.message;
      this.failed();
    });
  }
}
