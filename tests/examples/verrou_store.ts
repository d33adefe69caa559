/**
 * A store for verrou, which then locks on a quorum: `new LockFactory(new QuorumStore(redlock))`.
 *
 * @module
 */

import type { Lock, Redlock } from "@hasp/redlock";
import { forceRelease } from "@hasp/redlock/operate";
import { E_LOCK_NOT_OWNED } from "@verrou/core";

/** Keeps verrou's locks; only the process that has acquired a lock can extend or release it. */
export class QuorumStore {
  readonly #redlock: Redlock;
  readonly #locks = new Map<string, Lock>();

  constructor(redlock: Redlock) {
    this.#redlock = redlock;
  }

  async save(key: string, owner: string, ttlMs: number | null): Promise<boolean> {
    const options = ttlMs === null ? { autoExtend: true } : { ttlMs };
    const lock = await this.#redlock.tryAcquire(key, options);
    if (!lock) return false;
    const id = `${owner}:${key}`;
    this.#locks.set(id, lock);
    lock.signal.addEventListener("abort", () => this.#locks.delete(id));
    return true;
  }

  async delete(key: string, owner: string): Promise<void> {
    const lock = this.#locks.get(`${owner}:${key}`);
    this.#locks.delete(`${owner}:${key}`);
    if (!await lock?.release()) throw new E_LOCK_NOT_OWNED();
  }

  async extend(key: string, owner: string, ttlMs: number): Promise<void> {
    const lock = this.#locks.get(`${owner}:${key}`);
    if (!lock) throw new E_LOCK_NOT_OWNED();
    await lock.extend({ ttlMs });
  }

  async exists(key: string): Promise<boolean> {
    return (await this.#redlock.inspect(key)).held;
  }

  async forceDelete(key: string): Promise<void> {
    const { holders } = await this.#redlock.inspect(key);
    for (const { holder } of holders) await forceRelease(this.#redlock, key, { holder });
  }
}
