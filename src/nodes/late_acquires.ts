/**
 * Acquisitions whose answers never came.
 *
 * A client that gave up on a command does not know whether the server will still execute it, and no
 * order helps: the command may be in a proxy, or on its way through another connection. So the
 * release that undoes it is repeated with growing delays until the TTL is over, and as soon as an
 * answer does come. A key that is set late exists at most about as long again as it was late.
 *
 * Nothing is deleted before the lock is released: an extension may have set the key again, and the
 * node counts.
 *
 * @module
 */
import { setLatest } from "../bounded_map.ts";
import { QUEUE_LENGTH_MAX } from "../redis/connection.ts";
import type { QuorumRequest } from "../quorum/quorum_node.ts";
import type { Release } from "../redis_node/scripts/script.ts";
import type { TimerWheel } from "../time/timer_wheel.ts";

/** The first delay between two releases, in milliseconds; doubled each time. */
const DELAY_MS = 100;
/** A value that may be set late. */
interface LateValue {
  /** Until when it is undone again, by the monotonic clock. */
  untilMs: number;
  /** Its release, once that was sent. */
  release: Release | undefined;
}

/**
 * The acquisitions of one node without an answer: as many as it has under way at most; one more
 * drops the oldest, whose TTL takes over.
 */
export class LateAcquires {
  readonly #wheel: TimerWheel;
  readonly #release: (release: Release) => void;
  readonly #values: Map<string, LateValue> = new Map();

  /**
   * @param wheel Where delays wait.
   * @param release Sends a release.
   */
  constructor(wheel: TimerWheel, release: (release: Release) => void) {
    this.#wheel = wheel;
    this.#release = release;
  }

  /**
   * An acquisition was sent, and is no longer waited for.
   *
   * @param request What it was for.
   * @param over Resolves when the client's call is over, which may have set the keys only then;
   * missing if it is.
   */
  add({ value, ttlMs }: QuorumRequest, over: Promise<unknown> | undefined): void {
    // a key that its server lost is set again, with the same value
    const late = this.#values.get(value) ?? { untilMs: 0, release: undefined };
    setLatest(this.#values, value, late, QUEUE_LENGTH_MAX);
    late.untilMs = Math.max(late.untilMs, this.#wheel.clock.monotonicMs() + ttlMs);
    over?.then(() => {
      if (late.release) this.#release(late.release);
    });
  }

  /** A release was sent, or could not be: if its value may be set later, it is sent again. */
  onRelease(release: Release): void {
    const late = this.#values.get(release.value);
    if (!late || late.release) return;
    const { keys, value, replaces, mode, keptMs } = release;
    late.release = { keys, value, replaces, mode, keptMs }; // the ticket goes with the first one
    this.#repeat(late, late.release, DELAY_MS);
  }

  #repeat(late: LateValue, release: Release, delayMs: number): void {
    const leftMs = late.untilMs - this.#wheel.clock.monotonicMs();
    if (leftMs <= 0) return void this.#values.delete(release.value);
    this.#wheel.after(Math.min(delayMs, leftMs), () => {
      if (this.#values.get(release.value) !== late) return;
      this.#release(release);
      this.#repeat(late, release, 2 * delayMs);
    });
  }
}
