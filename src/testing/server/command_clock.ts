/**
 * The clock of a server in memory.
 *
 * @module
 */
import type { Clock } from "../../time/clock.ts";

/**
 * A wall clock that stands still while a command runs, as in Redis. So a script cannot find a key,
 * and then find that the key has expired.
 */
export class CommandClock {
  readonly #clock: Pick<Clock, "wallMs">;
  #heldMs: number | undefined;

  /** @param clock The clock that it reads. */
  constructor(clock: Pick<Clock, "wallMs">) {
    this.#clock = clock;
  }

  /** The milliseconds since the Unix epoch; during a command, those at its start. */
  wallMs(): number {
    return this.#heldMs ?? this.#clock.wallMs();
  }

  /** Runs a command. */
  during<T>(command: () => T): T {
    this.#heldMs = this.#clock.wallMs();
    try {
      return command();
    } finally {
      this.#heldMs = undefined;
    }
  }
}
