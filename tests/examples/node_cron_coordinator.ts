/**
 * A coordinator for node-cron 4, so that each run of a task is on one instance only.
 *
 * @module
 */

import type { Redlock } from "@hasp/redlock";

/**
 * `cron.schedule("* * * * *", task, { name: "report", distributed: true, runCoordinator:
 * coordinator(redlock) })`
 */
export function coordinator(redlock: Redlock) {
  return {
    /**
     * The key names the task and the time of the run, so it stays locked until the slowest clock
     * has passed it.
     */
    async shouldRun(key: string, ttlMs: number): Promise<boolean> {
      await using lock = await redlock.tryAcquire(`cron:${key}`, { ttlMs, atLeastMs: ttlMs });
      return lock !== undefined;
    },
  };
}
