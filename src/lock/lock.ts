/**
 * What the holder of a lock has in hand.
 *
 * @module
 */
import type { HeldLock } from "./held_lock.ts";
import type { Vote } from "../vote.ts";
import { defineConsoleView } from "../console_view.ts";
import { checkTtlMs } from "../options.ts";
import { checkOptions, checkSignal } from "../validate.ts";
import { extend } from "./renewal.ts";

/** How a lock is extended. */
export interface ExtendOptions {
  /**
   * The new TTL, in milliseconds; a key that would live longer anyway is left as it is.
   *
   * @default {the TTL that the lock was acquired with}
   */
  ttlMs?: number;
  /** Gives up extending; the lock stays as it is. */
  signal?: AbortSignal;
}

const EXTEND_OPTION_NAMES: readonly string[] = ["ttlMs", "signal"];

/**
 * A lock that was acquired. What it says of itself is read from the clock at the moment of asking.
 *
 * Made by {@linkcode Redlock.acquire} and its like.
 *
 * @example Released at the end of the block
 * ```ts
 * import { assert } from "@std/assert";
 * import { createRedlock } from "@hasp/redlock";
 * import { startNodes } from "@hasp/redlock/testing";
 *
 * await using nodes = await startNodes(3);
 * await using redlock = createRedlock(nodes.addresses);
 * {
 *   await using lock = await redlock.acquire("invoice:42");
 *   assert(lock.held && lock.remainingMs() > 0);
 * }
 * assert(!(await redlock.inspect("invoice:42")).held);
 * ```
 */
export class Lock implements AsyncDisposable {
  readonly #lock: HeldLock;

  static {
    defineConsoleView(this.prototype, "Lock", (lock) => {
      const { resources, extensions, fencingToken, votes } = lock;
      const nodes = Object.fromEntries(votes.map(({ node, outcome }) => [node, outcome]));
      const token = fencingToken === undefined ? {} : { fencingToken };
      const remainingMs = lock.remainingMs();
      return { resources, state: lock.#state, remainingMs, extensions, ...token, nodes };
    });
  }

  /** @internal */
  constructor(held: HeldLock) {
    this.#lock = held;
  }

  get #state(): "held" | "released" | "lost" {
    const held = this.#lock;
    if (held.held) return "held";
    // A lock that nobody has ended by now has run out.
    return held.standing || held.lostError ? "lost" : "released";
  }

  /** What is locked. */
  get resources(): readonly string[] {
    return this.#lock.resources;
  }

  /** The random string that proves who holds it: 40 hexadecimal digits. */
  get value(): string {
    return this.#lock.round.value;
  }

  /**
   * Aborts no later than the validity ends, whatever the network does: pass it to everything that must not go
   * on without the lock. The reason is a {@linkcode LockLostError}. A release does not abort it.
   */
  get signal(): AbortSignal {
    return this.#lock.signal;
  }

  /** Whether the lock is certain to be held at this moment. */
  get held(): boolean {
    return this.#lock.held;
  }

  /** How long the lock is certain to be held from this moment on, in milliseconds; 0 once it is over. */
  remainingMs(): number {
    return this.#lock.remainingMs();
  }

  /** How often the lock was extended. */
  get extensions(): number {
    return this.#lock.extensions;
  }

  /** How it was won: what each node answered, as far as is known at this moment. */
  get votes(): readonly Vote[] {
    return this.#lock.round.votes;
  }

  /**
   * With `fencing` or a `tokenSource`: a number greater than that of every lock before on any of the resources. Give it
   * to the store that is written to, which has to refuse whatever comes with a smaller one than it has seen. Extending
   * keeps it.
   */
  get fencingToken(): number | undefined {
    return this.#lock.fencingToken;
  }

  /**
   * Gives the lock a new validity, counted from now. A try that fails leaves the old validity as it was and is
   * repeated for as long as it lasts.
   *
   * @param options The new TTL, and a signal to give up.
   * @throws {LockLostError} If the lock is over before a quorum has extended it, or was extended as often
   *   as `extensionsMax` allows.
   * @throws {RangeError} If the TTL is out of range.
   */
  async extend(options: ExtendOptions = {}): Promise<void> {
    const { settings } = this.#lock;
    checkOptions("extend lock", options, EXTEND_OPTION_NAMES);
    const { ttlMs = settings.ttlMs, signal } = options;
    checkSignal("extend lock", signal);
    checkTtlMs("extend lock", ttlMs, settings.driftFactor);
    await extend(this.#lock, ttlMs, signal);
  }

  /**
   * Deletes the keys on every node, only where they hold this lock's value. Settles at a quorum, within
   * `nodeTimeoutMs`, without retries. A second call gives the first one's result.
   *
   * @returns `true` where the lock was held and is released, `false` where it was gone already.
   * @throws {QuorumError} If too few nodes answered to tell and the lock had not run out; its TTL takes over.
   */
  release(): Promise<boolean> {
    return this.#lock.release();
  }

  /** Releases at the end of `await using`. Throws nothing: where it fails the TTL takes over, and an event says so. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lock.release().catch(() => {});
  }
}

/** A {@linkcode Lock} that certainly has a fencing token, because its call or its client has `fencing: true`. */
export interface FencedLock extends Lock {
  /** The lock's fencing token; see {@linkcode Lock.fencingToken}. */
  readonly fencingToken: number;
}

/** The type of the locks of a client: {@linkcode FencedLock} if `Fencing` is `true`, else {@linkcode Lock}. */
export type LockOf<Fencing extends boolean> = [Fencing] extends [true] ? FencedLock : Lock;
