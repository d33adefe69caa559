/**
 * A job that is done once, however often it is requested: what the examples have in common.
 *
 * @module
 */

import type { Redlock } from "@hasp/redlock";
import type { RedisClient } from "@hasp/redlock/redis";

/**
 * How long the record of a finished job is kept, in seconds: longer than anybody asks for the job
 * again.
 */
const REMEMBERED_S = 86_400;

/**
 * Does a job unless it has been done. The lock lets one caller at a time look at the record and do
 * the job. With several nodes, the record is in a Redis server beside them, because it must survive
 * what the lock survives: a node that is down.
 *
 * @param job The work; it must stop when the signal aborts, because another caller may begin then.
 * @returns Whether this call did the job.
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

/** Stands for a job that takes some time. */
export async function sendInvoice(signal: AbortSignal): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 20));
  signal.throwIfAborted();
}
