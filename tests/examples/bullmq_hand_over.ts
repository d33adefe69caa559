/**
 * A request takes the lock and adds a job; a worker of BullMQ does the job with the same lock.
 *
 * @module
 */

import type { Redlock } from "@hasp/redlock";
import { type LockedJob, takeOver } from "./take_over.ts";

/** The part of BullMQ's `Queue` that is used here. */
interface Jobs {
  add(name: string, data: LockedJob, options: object): Promise<unknown>;
}

/** Adds a job for an account, unless one is under way; resolves to whether it did. */
export async function addJob(redlock: Redlock, jobs: Jobs, account: string): Promise<boolean> {
  const resource = `account:${account}`;
  const ttlMs = 300_000; // how long the job may wait for a worker
  const lock = await redlock.tryAcquire(resource, { ttlMs });
  if (!lock) return false;
  const token = lock.handOver();
  const retries = { attempts: 10, backoff: { type: "exponential", delay: 1_000 } }; // 8 minutes
  try {
    await jobs.add("invoice", { resource, token }, retries);
    return true;
  } catch (error) {
    // the queue does not have the job: takes the lock back
    const taken = await redlock.adopt(token);
    await taken.release();
    throw error;
  }
}

/**
 * Creates a processor: `new Worker("invoices", jobProcessor(redlock, sendInvoice), { connection
 * })`.
 */
export function jobProcessor(
  redlock: Redlock,
  work: (account: string, signal: AbortSignal) => Promise<void>,
): (job: { readonly data: LockedJob }) => Promise<void> {
  return async ({ data }) => {
    await using lock = await takeOver(redlock, data);
    await work(data.resource, lock.signal);
  };
}
