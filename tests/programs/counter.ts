/**
 * Adds one to the number in a file, many times, as carelessly as can be: read, pause, write. Under
 * the lock nothing gets lost; without it much does.
 *
 * Writes `ready` once connected, begins at the first line on its standard input, ends with `done
 * <written>`.
 */
import { createRedlock, LockLostError, QuorumError } from "../../mod.ts";

interface Job {
  readonly urls: string[];
  readonly file: string;
  readonly increments: number;
  readonly ttlMs: number;
  readonly locked: boolean;
}

const job: Job = JSON.parse(Deno.args[0]!);
await using redlock = createRedlock(job.urls, {
  onEvent: () => {}, // locks are lost on purpose, and standard error must stay empty
  ttlMs: job.ttlMs,
  waitMs: 20_000,
  retryDelayMs: 5,
  retryDelayMaxMs: 40,
});

async function increment(signal?: AbortSignal): Promise<void> {
  const count = Number(await Deno.readTextFile(job.file));
  await new Promise((resolve) => setTimeout(resolve, 2));
  signal?.throwIfAborted();
  Deno.writeTextFileSync(job.file, String(count + 1));
  written++;
}

let written = 0;
if (job.locked) await redlock.using(`warm-up:${Deno.pid}`, () => {});
console.log("ready");
await Deno.stdin.read(new Uint8Array(16));
while (written < job.increments) {
  try {
    if (job.locked) await redlock.using("counter", ({ signal }) => increment(signal));
    else await increment();
  } catch (error) {
    // Nodes come and go: a lock that was not had, or was lost before the writing, is tried for
    // again.
    if (!(error instanceof QuorumError || error instanceof LockLostError)) throw error;
  }
}
console.log(`done ${written}`);
