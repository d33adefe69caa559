/**
 * Takes one lock again and again, beside others that do the same, with a wall clock of its own.
 *
 * Writes `ready` once it has had the lock; from the line `go` on it counts, and writes the count
 * after the line `stop`.
 *
 * @module
 */
import { createRedlock } from "../../mod.ts";

interface Job {
  readonly urls: string[];
  readonly resource: string;
  /** How far the wall clock is ahead, in milliseconds. */
  readonly aheadMs: number;
  /** By how much it steps back and forth, many times a second, in milliseconds. */
  readonly stepMs: number;
  /** How long the lock is held, in milliseconds. */
  readonly holdMs: number;
}

const { urls, resource, aheadMs, stepMs, holdMs }: Job = JSON.parse(Deno.args[0]!);
const trueNow = Date.now.bind(Date);
Date.now = () => trueNow() + aheadMs + (Math.floor(performance.now() / 70) % 2) * stepMs;

let count = 0;
let running = true;

async function share(): Promise<void> {
  await using redlock = createRedlock(urls, { ttlMs: 60_000, waitMs: Infinity });
  while (running) {
    const lock = await redlock.acquire(resource);
    if (count++ === 0) console.log("ready");
    await new Promise((resolve) => setTimeout(resolve, holdMs));
    await lock.release();
  }
}

const sharing = share();
const lines = Deno.stdin.readable.pipeThrough(new TextDecoderStream());
for await (const text of lines) {
  for (const line of text.split("\n")) {
    if (line === "go") count = 1;
    if (line !== "stop") continue;
    running = false;
    console.log(`count ${count}`);
    await sharing;
    Deno.exit(0);
  }
}
