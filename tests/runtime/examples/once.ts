/**
 * A job that is done once, however often and from wherever it is asked for: what the examples have in common.
 *
 * @module
 */

import type { Redlock } from "@hasp/redlock";
import type { RedisClient } from "@hasp/redlock/redis";

/** How long it is remembered that a job was done, in seconds: longer than anybody asks for it again. */
const REMEMBERED_S = 86_400;

/**
 * Does a job unless it was done. The lock lets one at a time look and work; the record of what was done stands in the
 * store that the job itself writes to, here a Redis server that is none of the lock's nodes: a lock survives a node
 * that is down, and so must the record.
 *
 * @param redlock The lock client.
 * @param store Where the record stands.
 * @param id The job's own name.
 * @param job What to do; it stops when the signal aborts, as somebody else may begin then.
 * @returns Whether it was done by this call.
 */
export async function once(
  redlock: Redlock,
  store: RedisClient,
  id: string,
  job: (signal: AbortSignal) => Promise<void>,
): Promise<boolean> {
  return await redlock.using(`job:${id}`, { ttlMs: 10_000 }, async ({ signal }) => {
    if (await store.send(["EXISTS", `done:${id}`]) === 1) return false;
    await job(signal);
    signal.throwIfAborted();
    await store.send(["SET", `done:${id}`, new Date().toISOString(), "EX", REMEMBERED_S]);
    return true;
  });
}

/** Stands for a job that takes a while. */
export async function sendInvoice(signal: AbortSignal): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 20));
  signal.throwIfAborted();
}
