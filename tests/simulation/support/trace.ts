/** What happened, line by line, for people to read and for two runs to be compared. */
import type { EventLoop } from "./event_loop.ts";

/** One line. */
export interface TraceLine {
  readonly atMs: number;
  readonly who: string;
  readonly what: string;
}

/** The lines of one run. */
export class Trace {
  /** Whether anything is noted. */
  readonly on: boolean;
  readonly lines: TraceLine[] = [];
  readonly #loop: EventLoop;

  constructor(loop: EventLoop, on: boolean) {
    this.#loop = loop;
    this.on = on;
  }

  /** Notes a line. */
  add(who: string, what: string, atMs = this.#loop.nowMs): void {
    if (this.on) this.lines.push({ atMs, who, what });
  }

  /** All of them as text. */
  get text(): string {
    return this.lines.map(({ atMs, who, what }) =>
      `${atMs.toFixed(3).padStart(12)}  ${who.padEnd(10)} ${what}`
    ).join("\n");
  }
}
