/**
 * Faked time for lock clients and servers in memory.
 *
 * @module
 */
import type { TimerHandle } from "../../time/clock.ts";
import { nextTick, realPause } from "../../time/tick.ts";
import { check, NUMBER, rangeError } from "../../validate.ts";
import { connect } from "../../transport/default.ts";
import { switchBack, switchTo } from "./clock_switch.ts";
import { ManualClock, type ManualTimer } from "./manual_clock.ts";
import { closeEcho, roundTrip, trafficCount } from "./traffic.ts";

/** Default of the time within which a promise must settle, in milliseconds. */
const SETTLE_WITHIN_MS = 3_600_000;
/** Rounds without traffic after which nothing is on the way any more. */
const QUIET_ROUNDS = 3;
/**
 * How long the real clock runs between two looks at a promise that waits for no timer of the fake
 * one, in milliseconds.
 */
const REAL_PAUSE_MS = 5;
/**
 * How many such looks there are before the promise is given up: together they take a second or
 * longer.
 */
const REAL_PAUSES_MAX = 200;
/**
 * Most rounds that one wait for quiet takes: a program that sends without end must not stop the
 * time.
 */
const ROUNDS_MAX = 10_000;

/**
 * The time of all lock clients and servers in memory, in a test's hands. {@linkcode startFakeClock}
 * starts it.
 */
export interface FakeClock extends Disposable {
  /**
   * Moves time ahead. Every timer on the way fires at its time, and before the next one the
   * commands and replies that follow from it arrive, also over TCP, if the servers are in this
   * process.
   *
   * @param ms The time in milliseconds, a finite number of at least 0.
   * @returns A promise that resolves when everything that was due has happened.
   * @throws {RangeError} If `ms` is out of range.
   * @throws {Error} If the clock was restored.
   */
  tick(ms: number): Promise<void>;

  /**
   * Moves time ahead from timer to timer until a promise has settled, no further. Use it for calls
   * that wait: unlike {@linkcode tick} it also handles their rejection. If no timer is left, it
   * gives the promise a second of real time, in which code may read a file or ask a server of
   * another process.
   *
   * @param promise The promise.
   * @param limitMs The longest time to move in milliseconds, at least 0; an hour (3 600 000) by
   * default.
   * @returns What the promise resolves to.
   * @throws {unknown} What the promise rejects with.
   * @throws {RangeError} If `limitMs` is out of range.
   * @throws {Error} If the promise has not settled after this time, or no timer is left before, and
   * not within a second of real time either; or the clock was restored.
   */
  tickUntil<T>(promise: Promise<T>, limitMs?: number): Promise<T>;

  /** Gives clients and servers the time of the runtime back. Idempotent. */
  restore(): void;

  /** Does what {@linkcode restore} does, at the end of `using`. */
  [Symbol.dispose](): void;
}

/**
 * Stops the time of every lock client, Redis client and server in memory of this process, those
 * that exist and those that are created later, until {@linkcode FakeClock.restore}. From now on
 * their time passes in {@linkcode FakeClock.tick} alone: `ttlMs`, `waitMs`, `nodeTimeoutMs`,
 * extensions, `lock.signal`, `lock.remainingMs()` and the expiry of keys.
 *
 * The clock begins at the present. It replaces no global function, so `Date` and `setTimeout` of
 * the code under test stay real, or faked by a test framework, and timers of such a framework can
 * be used beside it. Servers outside of this process, and clients of another copy of the package,
 * keep their own time: do not use the clock with them.
 *
 * While nobody moves the clock, a call that needs time does not settle: one that waits, one that
 * asks servers which do not answer, and `close()` after one of these. So start clients and servers
 * first and the clock last, as here: then `using` restores it first, and they close in real time.
 * If you use the servers further, release locks before or call `flush()`, because the servers keep
 * keys that were set in the future.
 *
 * @example The signal aborts when the validity ends
 * ```ts
 * import { assert } from "@std/assert";
 * import { createRedlock } from "@hasp/redlock";
 * import { startFakeClock, startNodes } from "@hasp/redlock/testing";
 *
 * await using nodes = await startNodes(3);
 * await using redlock = createRedlock(nodes.addresses);
 * using clock = startFakeClock();
 * const lock = await redlock.acquire("invoice:42", { ttlMs: 30_000 });
 * await clock.tick(29_000);
 * assert(lock.held);
 * await clock.tick(1_000);
 * assert(lock.signal.aborted);
 * ```
 *
 * @example A call that waits
 * ```ts
 * import { assertRejects } from "@std/assert";
 * import { createRedlock, LockHeldError } from "@hasp/redlock";
 * import { startFakeClock, startNodes } from "@hasp/redlock/testing";
 *
 * await using nodes = await startNodes(3);
 * await using redlock = createRedlock(nodes.addresses);
 * using clock = startFakeClock();
 * await using lock = await redlock.acquire("invoice:42", { autoExtend: true });
 * const waiting = redlock.acquire("invoice:42", { waitMs: 600_000 });
 * await assertRejects(() => clock.tickUntil(waiting), LockHeldError);
 * ```
 *
 * @returns The clock.
 * @throws {Error} If another one is in use.
 */
export function startFakeClock(): FakeClock {
  return switchTo(RunningClock);
}

class RunningClock extends ManualClock implements FakeClock {
  /** Resolves when the transport is loaded: time must not wait for modules. */
  readonly #loaded: Promise<void>;
  #traffic = 0;
  #restored = false;

  constructor(monotonicMs: number, wallMs: number) {
    super(monotonicMs, wallMs);
    this.#loaded = loadTransport();
  }

  /**
   * A timer without a delay fires while time stands, because it waits for a tick of the event loop
   * alone.
   */
  override setTimer(callback: () => void, delayMs: number): TimerHandle {
    const timer = super.setTimer(callback, delayMs) as ManualTimer;
    if (delayMs <= 0) void nextTick().then(() => this.fire(timer));
    return timer;
  }

  async tick(ms: number): Promise<void> {
    const endMs = this.nowMs + this.#checked("ms", ms);
    if (ms === Infinity) throw rangeError("move fake clock", "ms", "must be finite", ms);
    await this.#untilQuiet();
    while (this.fireNext(endMs)) await this.#untilQuiet(1);
    this.moveTo(endMs);
    await this.#untilQuiet();
  }

  async tickUntil<T>(promise: Promise<T>, limitMs: number = SETTLE_WITHIN_MS): Promise<T> {
    const endMs = this.nowMs + this.#checked("limitMs", limitMs);
    let settled = false;
    const settle = () => void (settled = true);
    promise.then(settle, settle);
    await this.#untilQuiet();
    for (let pauses = 0; !settled;) {
      if (this.fireNext(endMs)) pauses = 0;
      else if (pauses++ < REAL_PAUSES_MAX) await realPause(REAL_PAUSE_MS);
      else {
        throw new Error(
          `Cannot settle promise as nothing that it waits for is due within ${limitMs} ms of the fake clock`,
        );
      }
      await this.#untilQuiet(1);
    }
    return await promise;
  }

  restore(): void {
    this.#restored = true;
    switchBack(this);
    void closeEcho();
  }

  [Symbol.dispose](): void {
    this.restore();
  }

  /** Checks a time to move by. */
  #checked(name: string, ms: number): number {
    if (this.#restored) throw new Error("Cannot move fake clock as it was given back");
    check("move fake clock", name, ms, NUMBER);
    if (!(ms >= 0)) throw rangeError("move fake clock", name, "must be at least 0", ms);
    return ms;
  }

  /**
   * Waits until nothing is on the way between clients and servers of this process: for one round if
   * that is all that is `missing`, as after a timer, and nothing passes in it.
   */
  async #untilQuiet(missing = QUIET_ROUNDS): Promise<void> {
    await this.#loaded;
    for (let rounds = 0; missing > 0 && rounds < ROUNDS_MAX; rounds++) {
      if (this.#restored) return;
      await nextTick(); // clients send at the end of a tick
      await roundTrip();
      missing = trafficCount() === this.#traffic ? missing - 1 : QUIET_ROUNDS;
      this.#traffic = trafficCount();
    }
  }
}

/** Loads the transport of the runtime. Opens nothing, because the signal has aborted. */
async function loadTransport(): Promise<void> {
  const target = { kind: "tcp", hostname: "127.0.0.1", port: 1 } as const;
  await connect(target, { signal: AbortSignal.abort() }).catch(() => {});
}
