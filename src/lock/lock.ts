/**
 * The handle of a lock that was acquired.
 *
 * @module
 */
import { handOverToken } from "./hand_over_token.ts";
import type { HeldLock } from "./held_lock.ts";
import { holderOf } from "../holder.ts";
import type { Vote } from "../vote.ts";
import { defineConsoleView } from "../console_view.ts";
import { checkOption, checkTtlMs, type LockMode } from "../options.ts";
import { checkOptions } from "../validate.ts";
import { clockedSignal } from "./lock_signal.ts";
import { extend } from "./renewal.ts";

/** Options of {@linkcode Lock.extend}. */
export interface ExtendOptions {
  /**
   * New TTL of the lock's keys, in milliseconds; an integer from 10 to 86 400 000. A key that would
   * live longer anyway is left as it is.
   *
   * @default {the ttlMs that the lock was acquired with}
   */
  ttlMs?: number | undefined;
  /**
   * Signal that ends the call, which rejects with the signal's reason; the lock keeps its old
   * validity.
   *
   * @default {no signal}
   */
  signal?: AbortSignal | undefined;
}

/** What a handle is for; set by the class, because it needs a private member. */
export let heldLock: (lock: Lock) => HeldLock;

const EXTEND_OPTION_NAMES: readonly string[] = ["ttlMs", "signal"];

/**
 * A lock that a {@linkcode Redlock} has acquired or adopted. Whether it is held, and for how long,
 * is read from the clock at the moment of the access.
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
  #signals: ReturnType<HeldLock["newSignals"]> | undefined;

  // A field and not a static block: bundlers leave out the class where nobody uses it.
  static readonly #shared = /* @__PURE__ */ ((): void => {
    heldLock = (lock) => lock.#lock;
    defineConsoleView(this, "Lock", (lock) => {
      const { resources, holder, extensions, fencingToken, votes } = lock;
      const { state } = lock.#lock;
      const nodes = Object.fromEntries(votes.map(({ node, outcome }) => [node, outcome]));
      const token = fencingToken === undefined ? {} : { fencingToken };
      const remainingMs = Math.round(lock.remainingMs());
      return { resources, state, holder, remainingMs, extensions, ...token, nodes };
    });
  })();

  /** @internal Says `never`, so that the published declarations need none of the insides' types. */
  constructor(held: never);
  constructor(held: HeldLock) {
    this.#lock = held;
  }

  /** The locked resources, in the order of the call. */
  get resources(): readonly string[] {
    return Object.freeze(this.#lock.resources); // with an empty `keyPrefix` they are its keys
  }

  /**
   * The value of the lock's keys: 40 random hexadecimal digits, `:`, the second of the acquisition
   * in base 36, `:`, and the `label`. A secret, because it is enough to release the lock.
   */
  get value(): string {
    return this.#lock.round.value;
  }

  /**
   * What `inspect()` and the errors of others show of this lock's holder: 8 hexadecimal digits that
   * identify this acquisition, {@linkcode Holder.holder}.
   */
  get holder(): string {
    return holderOf(this.#lock.round.value);
  }

  /**
   * Whether others may hold the resources beside it: `shared` if they may in the same mode, else
   * `exclusive`.
   */
  get mode(): LockMode {
    return this.#lock.round.mode ?? "exclusive";
  }

  /**
   * Signal that aborts when the lock is lost, at the end of its validity at the latest, whatever
   * the network does. Pass it to everything that must stop when the lock is lost. Its reason is a
   * {@linkcode LockLostError}; in `using`, it can also be the reason of the call's own signal. A
   * release does not abort it. Its listeners are called in the async context (`AsyncLocalStorage`)
   * of the call that acquired the lock; without `onEvent`, in that of the code that first read the
   * signal. If code that reads the signal finds that the validity is over, they are called at once,
   * in its context.
   */
  get signal(): AbortSignal {
    if (!this.#signals) {
      const lock = this.#lock; // the signal must not keep this handle, which keeps both signals
      this.#signals = lock.newSignals();
      clockedSignal(this.#signals[0], () => lock.look());
    }
    return this.#signals[0];
  }

  /**
   * Whether the lock is certainly held at this moment. `false` after a release, or once its
   * validity is over.
   */
  get held(): boolean {
    return this.#lock.held;
  }

  /**
   * Returns the rest of the validity: how long the lock is certainly held from this moment on,
   * unless it is extended.
   *
   * @returns Milliseconds; 0 after a release, or once the validity is over.
   */
  remainingMs(): number {
    return this.#lock.remainingMs();
  }

  /** How many times the lock was extended. */
  get extensions(): number {
    return this.#lock.extensions;
  }

  /**
   * What each node answered when the lock was acquired, including answers that came after the
   * quorum's.
   */
  get votes(): readonly Vote[] {
    return this.#lock.round.votes;
  }

  /**
   * Fencing token: a number greater than that of every earlier lock on any of the resources.
   * `undefined` without `fencing`. Pass it to the store that the lock protects, which must reject
   * writes whose token is smaller than one that it has seen. An extension does not change it.
   */
  get fencingToken(): number | undefined {
    return this.#lock.round.counts?.token;
  }

  /**
   * Extends the lock: gives it a new validity, counted from this call. Never shortens it. A try
   * that fails keeps the old validity, and is repeated until that is over.
   *
   * @param options The new TTL, and a signal.
   * @throws {LockLostError} If the lock ends before a quorum has extended it, was released, or was
   * extended `extensionsMax` times.
   * @throws {QuorumError} If the validity is over that the lock had, and only `autoExtend` has
   * extended it meanwhile. At once, if more than N − quorum nodes refuse for good, such as for a
   * missing right; then the lock is held until its validity ends.
   * @throws {TypeError} If an option is unknown or of the wrong type.
   * @throws {RangeError} If `ttlMs` is out of range, or longer than `restartGuardMs` if that is on.
   * @throws The reason of `signal`, if it aborts.
   */
  async extend(options: ExtendOptions = {}): Promise<void> {
    const { settings } = this.#lock;
    checkOptions("extend lock", options, EXTEND_OPTION_NAMES);
    const { ttlMs = settings.ttlMs, signal } = options;
    checkOption("extend lock", "ttlMs", ttlMs);
    if (signal !== undefined) checkOption("extend lock", "signal", signal);
    checkTtlMs("extend lock", ttlMs, settings);
    await extend(this.#lock, ttlMs, signal);
  }

  /**
   * Releases the lock: deletes its keys on every node that still has them with this lock's value.
   * Settles when a quorum has answered, within `nodeTimeoutMs`, without retries. A second call
   * returns the first one's result.
   *
   * @returns `true` if a quorum deleted the keys, or if the lock was held and some nodes failed but
   * no majority had lost the keys; `false` if it was already gone.
   * @throws {QuorumError} If too few nodes answered and the lock's validity was not over; the keys
   * expire with their TTL.
   */
  release(): Promise<boolean> {
    return this.#lock.release();
  }

  /**
   * Hands the lock over to another process, which calls {@linkcode Redlock.adopt}: ends this handle
   * and deletes nothing. From then on `held` is `false`, no extension is sent, and a release, also
   * the one at the end of `using` or `await using`, does nothing. The keys live for what is left of
   * their TTL: call {@linkcode extend} before if the way to the other process may take longer.
   *
   * @returns Text of `A–Z`, `a–z`, `0–9`, `-` and `_`, of at least 60 characters: the lock's value
   * and its resources. A secret, because it is enough to take the lock, and to read the resources.
   * It has no time limit of its own.
   * @throws {LockLostError} If the lock is not held: lost, released, or handed over before.
   * @throws {TypeError} If the lock is in shared mode, or a node does not support adopting.
   * @experimental until 1.0
   */
  handOver(): string {
    return handOverToken(this.#lock.handOver());
  }

  /**
   * Releases the lock at the end of `await using`. Never throws: if the release fails, the keys
   * expire with their TTL, and a `release-failed` event reports it.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lock.release().catch(() => {});
  }
}

/**
 * A {@linkcode Lock} that certainly has a fencing token, because its call or its client has
 * `fencing: true`.
 */
export interface FencedLock extends Lock {
  /** The lock's fencing token; see {@linkcode Lock.fencingToken}. */
  readonly fencingToken: number;
}

/**
 * The type of the locks of a client: {@linkcode FencedLock} if `Fencing` is `true`, else {@linkcode
 * Lock}.
 */
export type LockOf<Fencing extends boolean> = [Fencing] extends [true] ? FencedLock : Lock;
