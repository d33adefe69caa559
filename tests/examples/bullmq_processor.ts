/**
 * A processor for BullMQ. The lock lets one job per account run at a time: in all queues, on all
 * machines.
 *
 * @module
 */

import type { Redlock } from "@hasp/redlock";

/** It waits for longer than a crashed worker blocks the account. */
const OPTIONS = { ttlMs: 10_000, waitMs: 20_000 };

/** The part of BullMQ's `Job` that is used here. */
interface AccountJob {
  readonly data: { readonly account: string };
}

/**
 * Creates a processor: `new Worker("invoices", oneJobPerAccount(redlock, sendInvoice), { connection
 * })`. A job that does not get the lock in time fails; BullMQ tries it again if it was added with
 * `attempts` and `backoff`.
 */
export function oneJobPerAccount<Job extends AccountJob>(
  redlock: Redlock,
  work: (job: Job, signal: AbortSignal) => Promise<void>,
): (job: Job) => Promise<void> {
  // While a job waits for the lock it takes one of the worker's places, so let the worker have
  // several (`concurrency`).
  return (job) =>
    redlock.using(`account:${job.data.account}`, OPTIONS, ({ signal }) => work(job, signal));
}
