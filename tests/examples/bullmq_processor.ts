/**
 * A processor for BullMQ, which gives each job to one worker, beside the lock, which lets one job
 * per account run at a time: in all queues, on all machines.
 *
 * @module
 */

import type { Redlock } from "@hasp/redlock";

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
    redlock.using(`account:${job.data.account}`, { waitMs: 20_000 }, ({ signal }) => {
      return work(job, signal);
    });
}
