/**
 * Seeds, run by several threads at the same time: no run needs anything of another.
 *
 * @module
 */

import { Worker } from "node:worker_threads";
import type { SeedSummary, SeedTask } from "./seed_thread.ts";

/**
 * Runs tasks by threads, each of which takes the next task when it is done with one.
 *
 * @param threads How many.
 * @param tasks What to run; no more is taken from it once `onSummary` has returned `false`.
 * @param onSummary Called with what came of each seed, in the order in which they end.
 */
export async function runInThreads(
  threads: number,
  tasks: Iterator<SeedTask>,
  onSummary: (summary: SeedSummary) => boolean,
): Promise<void> {
  let stopped = false;
  const runThread = () =>
    new Promise<void>((resolve, reject) => {
      const worker = new Worker(new URL("./seed_thread.ts", import.meta.url));
      const next = () => {
        const { value, done } = stopped ? { done: true } : tasks.next();
        if (!done) return worker.postMessage(value);
        worker.terminate().then(() => resolve(), reject);
      };
      worker.on("message", (summary: SeedSummary) => {
        if (!onSummary(summary)) stopped = true;
        next();
      });
      worker.on("error", reject);
      next();
    });
  await Promise.all(Array.from({ length: threads }, runThread));
}
