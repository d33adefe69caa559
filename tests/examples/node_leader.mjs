/**
 * A program in Node that runs on every machine, and leads on one of them. SIGTERM ends it: a leader
 * finishes its step and releases the lock, and another machine leads at once.
 *
 * @module
 */

import { createRedlock } from "@hasp/redlock";
import process from "node:process";
import { setTimeout } from "node:timers/promises";

const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());

const redlock = createRedlock(process.env.HASP_NODES, { ttlMs: 10_000 });
await redlock.lead("leader", { signal: stop.signal }, async ({ signal }) => {
  console.log("leading");
  // the work, step by step, until the lock is lost or the process is to stop
  while (!signal.aborted) {
    await setTimeout(1_000, undefined, { signal }).catch(() => {});
  }
  console.log("handed over");
});
await redlock.close();
