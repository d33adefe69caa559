/**
 * What happened when: which worker was inside, which node was out, and what else happened.
 *
 * @module
 */
import { systemClock } from "../../time/clock.ts";

/** What a worker or a node is at a time. */
export type State = "idle" | "waiting" | "inside" | "up" | "killed" | "hung";

/** A row of the timeline is in one state from here to the next change. */
interface Change {
  readonly atMs: number;
  readonly state: State;
}

/** Something that gets a line of its own. */
export interface Note {
  /** Milliseconds from the start. */
  readonly atMs: number;
  readonly text: string;
}

/** A record of one run. */
export class Timeline {
  readonly #startMs = systemClock.monotonicMs();
  /** What happened, in order. */
  readonly notes: Note[] = [];
  /** How often the counter was written. */
  writes = 0;
  readonly #rows = new Map<string, Change[]>();
  #endMs: number | undefined;

  /** How long it lasts by now, or lasted, in milliseconds. */
  get lengthMs(): number {
    return (this.#endMs ?? systemClock.monotonicMs()) - this.#startMs;
  }

  /** From now on it grows no longer. */
  end(): void {
    this.#endMs = systemClock.monotonicMs();
  }

  /** A row is in `state` from now on. */
  change(row: string, state: State): void {
    const changes = this.#rows.get(row) ?? [];
    changes.push({ atMs: this.lengthMs, state });
    this.#rows.set(row, changes);
  }

  /** Notes something down. */
  note(text: string): void {
    this.notes.push({ atMs: this.lengthMs, text });
  }

  /** The state of a row at a time. */
  stateAt(row: string, atMs: number): State {
    let state: State = "idle";
    for (const change of this.#rows.get(row) ?? []) {
      if (change.atMs > atMs) break;
      state = change.state;
    }
    return state;
  }

  /** The most rows that were ever inside at one time. */
  insideAtOnce(): number {
    const steps: { atMs: number; step: number }[] = [];
    for (const changes of this.#rows.values()) {
      let inside = false;
      for (const { atMs, state } of changes) {
        if (inside !== (state === "inside")) steps.push({ atMs, step: inside ? -1 : 1 });
        inside = state === "inside";
      }
    }
    steps.sort((a, b) => a.atMs - b.atMs || a.step - b.step); // who leaves makes room first
    let now = 0, most = 0;
    for (const { step } of steps) most = Math.max(most, now += step);
    return most;
  }
}
