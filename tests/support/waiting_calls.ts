/**
 * Calls for a lock that many want, on nodes in memory that put callers in line.
 *
 * @module
 */
import { assert } from "@std/assert";
import type { Lock } from "../../src/lock/lock.ts";
import type { RedlockOptions } from "../../src/options.ts";
import { settle } from "./cluster_calls.ts";
import { UNHURRIED, WaitingCluster } from "./waiting_nodes.ts";

/** The TTL of their locks: so long that nothing runs out by itself. */
export const TTL_MS = 1_000_000;

/** A client, and what became of its calls. */
export class Callers {
  readonly cluster: WaitingCluster;
  /** Who has had the lock, in order. */
  readonly won: string[] = [];
  readonly locks = new Map<string, Lock>();
  readonly errors = new Map<string, Error>();

  constructor(options: RedlockOptions = {}, nodeCount = 3) {
    this.cluster = new WaitingCluster(nodeCount, {
      ...UNHURRIED,
      ttlMs: TTL_MS,
      waitMs: Infinity,
      ...options,
    });
  }

  /** Somebody who wants a lock. */
  call(who: string, options: RedlockOptions = {}, resource: string | string[] = "a"): void {
    this.cluster.redlock.acquire(resource, options).then((lock) => {
      this.won.push(who);
      this.locks.set(who, lock);
    }, (error) => this.errors.set(who, error));
  }

  /** Has somebody release its lock. */
  async release(who: string): Promise<void> {
    await settle(this.cluster, this.locks.get(who)!.release());
    await this.advance(0);
  }

  advance(ms: number): Promise<void> {
    return this.cluster.clock.advance(ms);
  }

  /** How often each node was asked for the lock. */
  get asked(): number[] {
    return this.cluster.nodes.map((node) => node.asked("acquire").length);
  }

  /** What somebody's call failed with. */
  error(who: string): Error {
    const error = this.errors.get(who);
    assert(error, `${who} has no error`);
    return error;
  }
}

/** A client whose first call has the lock, and for which others wait. */
export async function held(...waiting: string[]): Promise<Callers> {
  const callers = new Callers();
  callers.call("first");
  await callers.advance(0);
  for (const who of waiting) callers.call(who);
  await callers.advance(0);
  return callers;
}

/** A client whose calls wait for a lock that somebody else has for ever. */
export async function blocked(...waiting: string[]): Promise<Callers> {
  const callers = new Callers();
  callers.cluster.occupy();
  for (const who of waiting) callers.call(who);
  await callers.advance(1_000);
  return callers;
}
