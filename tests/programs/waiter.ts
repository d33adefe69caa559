/**
 * Takes one lock, or any one of several, and gives it back, step by step, as its standard input
 * says: `ask`, `release`.
 *
 * Writes `ready` once connected, `held` once it has the lock, `released` once that is given back.
 */
import { createRedlock, type Lock, type LockMode } from "../../mod.ts";

interface Job {
  readonly urls: string[];
  readonly resource: string | string[];
  readonly ttlMs: number;
  readonly mode?: LockMode;
}

const { urls, resource, ttlMs, mode }: Job = JSON.parse(Deno.args[0]!);
const WAIT_MS = 60_000;

await using redlock = createRedlock(urls, { ttlMs, waitMs: WAIT_MS, retryDelayMs: WAIT_MS });
await redlock.using(`warm-up:${Deno.pid}`, () => {});
console.log("ready");

let lock: Lock | undefined;
const lines = Deno.stdin.readable.pipeThrough(new TextDecoderStream());
for await (const text of lines) {
  for (const line of text.split("\n")) {
    if (line === "ask") {
      lock = await redlock.acquire(resource, { mode, any: Array.isArray(resource) });
      console.log("held");
    } else if (line === "release") {
      await lock!.release();
      console.log("released");
    }
  }
}
