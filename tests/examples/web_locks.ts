/**
 * The browsers' Web Locks API, `locks.request(name, options, callback)`, over all processes of a
 * service.
 *
 * @module
 */

import type { Lock, LockMode, Redlock } from "@hasp/redlock";
import { forceRelease } from "@hasp/redlock/operate";

/** The options of the standard. */
export interface RequestOptions {
  mode?: LockMode;
  ifAvailable?: boolean;
  steal?: boolean;
  signal?: AbortSignal;
}

/** What the callback gets; `null` if `ifAvailable` is set and the lock is not. */
export type Granted = Readonly<{ name: string; mode: LockMode }> | null;
type Callback<T> = (lock: Granted) => T | PromiseLike<T>;

/** Locks that live as long as their callbacks, such as `navigator.locks`. */
export class Locks {
  readonly #redlock: Redlock;
  /** What ends the requests of this object that hold a name, so that a theft ends them at once. */
  readonly #held = new Map<string, Set<() => void>>();

  constructor(redlock: Redlock) {
    this.#redlock = redlock;
  }

  request<T>(name: string, callback: Callback<T>): Promise<T>;
  request<T>(name: string, options: RequestOptions, callback: Callback<T>): Promise<T>;
  async request<T>(name: string, ...rest: unknown[]): Promise<T> {
    const callback = rest.pop() as Callback<T>;
    const { mode = "exclusive", ifAvailable, steal, signal } = (rest[0] ?? {}) as RequestOptions;
    if (typeof callback !== "function") throw new TypeError("The callback must be a function");
    const wrong = name.startsWith("-") || steal && (ifAvailable || mode === "shared") ||
      signal && (ifAvailable || steal);
    if (wrong) {
      throw new DOMException("The name or the options are not allowed", "NotSupportedError");
    }
    signal?.throwIfAborted();

    const options = { mode, autoExtend: true, waitMs: Infinity, signal };
    if (steal) return await this.#run(await this.#steal(name), name, mode, callback);
    const lock = ifAvailable
      ? await this.#redlock.tryAcquire(name, options)
      : await this.#redlock.acquire(name, options);
    return lock ? await this.#run(lock, name, mode, callback) : await callback(null);
  }

  /**
   * Runs the callback with the lock; rejects with an `AbortError` if the lock is stolen or lost
   * meanwhile.
   */
  async #run<T>(lock: Lock, name: string, mode: LockMode, callback: Callback<T>): Promise<T> {
    const lost = Promise.withResolvers<never>();
    const end = () => lost.reject(new DOMException("The lock was stolen or lost", "AbortError"));
    const ends = this.#held.get(name) ?? new Set();
    this.#held.set(name, ends.add(end));
    lock.signal.addEventListener("abort", end);
    try {
      return await Promise.race([(async () => await callback({ name, mode }))(), lost.promise]);
    } finally {
      lock.signal.removeEventListener("abort", end);
      ends.delete(end);
      if (ends.size === 0) this.#held.delete(name);
      await lock.release().catch(() => {}); // then it ends with its TTL
    }
  }

  /** Takes the lock away from its holders; other processes notice with their next extension. */
  async #steal(name: string): Promise<Lock> {
    for (;;) {
      for (const end of this.#held.get(name) ?? []) end();
      const { holders } = await this.#redlock.inspect(name);
      for (const { holder } of holders) await forceRelease(this.#redlock, name, { holder });
      const lock = await this.#redlock.tryAcquire(name, { autoExtend: true });
      if (lock) return lock;
    }
  }
}
