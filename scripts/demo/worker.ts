/**
 * One worker of the demo, in a process of its own: reads a counter, pauses, writes it back one higher, again
 * and again, with the lock or without.
 *
 * Its only argument is a {@linkcode WorkerSetup} in JSON. Each line of its input is a {@linkcode WorkerTask}
 * to begin, each line of its output a {@linkcode WorkerReport}; it ends when its input does.
 *
 * @module
 */

import { TextLineStream } from "./lines.ts";
import { createRedlock, RedlockError } from "../../mod.ts";

/** What a worker is told when it starts. */
export interface WorkerSetup {
  readonly name: string;
  /** The addresses of the nodes. */
  readonly urls: readonly string[];
  /** The file that holds the counter. */
  readonly file: string;
  /** What the workers lock before they touch the file. */
  readonly resource: string;
  readonly ttlMs: number;
}

/** What a worker is to do next. */
export interface WorkerTask {
  readonly locked: boolean;
  readonly increments: number;
}

/** What a worker tells of itself. `inside` and `outside` enclose each read and write of the counter. */
export interface WorkerReport {
  readonly type: "ready" | "waiting" | "inside" | "written" | "outside" | "trouble" | "done";
  /** When, in milliseconds since the Unix epoch. */
  readonly atMs: number;
  /** What went wrong. */
  readonly message?: string;
}

/** The pause between reading and writing, and the rest between two turns: shortest and longest. */
const WORK_MS = [80, 140] as const;
const REST_MS = [20, 120] as const;
/** Quick retries: the demo is about exclusion, not about sparing the nodes. */
const RETRY_DELAY_MS = 15;
const RETRY_DELAY_MS_MAX = 60;
/** Longer than the demo lasts: a worker waits for its turn however long the others take. */
const WAIT_MS = 60_000;

const { name, urls, file, resource, ttlMs }: WorkerSetup = JSON.parse(Deno.args[0]!);

/** Reads the counter, pauses, and writes it back one higher. */
async function increment(signal?: AbortSignal): Promise<void> {
  report("inside");
  try {
    const count = Number(await Deno.readTextFile(file));
    await pause(...WORK_MS);
    signal?.throwIfAborted();
    const draft = `${file}.${name}`;
    await Deno.writeTextFile(draft, String(count + 1));
    await Deno.rename(draft, file); // in one step, so that nobody reads half a number
    report("written");
  } finally {
    report("outside");
  }
}

/** Makes its increments, each under the lock; one whose lock was lost or not to be had is tried again. */
async function withLock(increments: number): Promise<void> {
  await using redlock = createRedlock(urls, {
    ttlMs,
    waitMs: WAIT_MS,
    retryDelayMs: RETRY_DELAY_MS,
    retryDelayMaxMs: RETRY_DELAY_MS_MAX,
    onEvent: () => {}, // no warnings on the console
  });
  for (let done = 0; done < increments;) {
    report("waiting");
    let written = false;
    try {
      await redlock.using(resource, async (lock) => {
        await increment(lock.signal);
        written = true;
      });
    } catch (error) {
      if (!(error instanceof RedlockError)) throw error;
      report("trouble", error.message);
    }
    if (written) done++;
    await pause(...REST_MS);
  }
}

/** The same without the lock. */
async function withoutLock(increments: number): Promise<void> {
  for (let done = 0; done < increments; done++) {
    await increment();
    await pause(...REST_MS);
  }
}

function pause(fromMs: number, toMs: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, fromMs + Math.random() * (toMs - fromMs));
  });
}

function report(type: WorkerReport["type"], message?: string): void {
  console.log(JSON.stringify({ type, atMs: Date.now(), message } satisfies WorkerReport));
}

async function perform({ locked, increments }: WorkerTask): Promise<void> {
  await (locked ? withLock(increments) : withoutLock(increments));
  report("done");
}

// Ctrl-C reaches every process of the terminal; this one leaves ending it to the demo.
Deno.addSignalListener("SIGINT", () => {});
report("ready");
const lines = Deno.stdin.readable
  .pipeThrough(new TextDecoderStream())
  .pipeThrough(new TextLineStream());
for await (const line of lines) perform(JSON.parse(line));
Deno.exit();
