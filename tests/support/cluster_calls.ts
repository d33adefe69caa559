/**
 * Calls of a lock client on nodes in memory, settled on the nodes' faked time.
 *
 * @module
 */
import type { Lock } from "../../src/lock/lock.ts";
import type { RedlockOptions } from "../../src/options.ts";
import { advanceUntil } from "./fake_clock.ts";
import { FakeCluster } from "./fake_nodes.ts";

/** The TTL of most tests' locks. */
export const TTL = { ttlMs: 1_000 };

/** That TTL less 1 % less 2 ms. */
export const VALIDITY_MS = 988;

/** What a caller aborts with, or a callback throws. */
export const REASON = new Error("changed my mind");

/** Settles `promise` on the cluster's time. */
export function settle<T>(
  cluster: FakeCluster,
  promise: Promise<T>,
  limitMs?: number,
): Promise<T> {
  return advanceUntil(cluster.clock, promise, limitMs, 1);
}

/**
 * What `promise` rejects with, on the cluster's time.
 *
 * @throws {Error} If it resolves.
 */
export function rejection(cluster: FakeCluster, promise: Promise<unknown>): Promise<Error> {
  const rejected = promise.then(
    () => {
      throw new Error("The call resolved, and was to reject");
    },
    (error: Error) => error,
  );
  return settle(cluster, rejected);
}

/** Closes the cluster's lock client. */
export async function close(cluster: FakeCluster): Promise<void> {
  await settle(cluster, cluster.redlock.close());
}

/** A lock on "a" for a second, and the nodes it is on. */
export async function locked(
  nodeCount = 3,
  options: RedlockOptions = {},
): Promise<{ cluster: FakeCluster; lock: Lock }> {
  const cluster = new FakeCluster(nodeCount, { ...TTL, ...options });
  return { cluster, lock: await settle(cluster, cluster.redlock.acquire("a")) };
}
