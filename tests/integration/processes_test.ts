import { assertEquals, assertGreater, assertLess } from "@std/assert";
import { type Program, startProgram } from "../support/programs.ts";
import { type RedisServer, startServers } from "../support/servers.ts";

const PROCESSES = 6;
const INCREMENTS = 25;
const TTL_MS = 1_500;

/**
 * How long the processes may take altogether, in milliseconds; they need a few seconds where
 * nothing else runs.
 */
const END_WITHIN_MS = 600_000;

/** Persistent without a gap: a node that is killed comes back with all that it has granted. */
const PERSISTENT = ["appendonly yes", "appendfsync always"];

Deno.test("without the lock, processes that count in one file lose increments", async () => {
  await using counter = await makeCounter();
  await run({ file: counter.file, urls: ["redis://127.0.0.1:1"], locked: false });
  assertLess(await counter.read(), PROCESSES * INCREMENTS);
});

Deno.test("under the lock, they lose none while up to two of five nodes die, hang and come back", async () => {
  await using servers = await startServers(5, { config: PERSISTENT });
  await using counter = await makeCounter();
  const job = { file: counter.file, urls: servers.urls, locked: true, increments: 4 * INCREMENTS };
  let over = false;
  let faults = 0;
  const running = run(job).finally(() => over = true);
  // Each of two tormentors has nodes of its own, so that at any time three are well.
  const torment = async (faultsOf: readonly (() => Promise<void>)[]) => {
    for (let turn = 0; !over; turn++, faults++) await faultsOf[turn % faultsOf.length]!();
  };
  const outcomes = await Promise.allSettled([
    running,
    torment([
      () => hang(servers[0], 300),
      () => dieAndForget(servers[0]),
      () => dieAndRemember(servers[1]),
      () => hang(servers[1], 700),
    ]),
    torment([
      () => dieAndRemember(servers[2]),
      () => hang(servers[3], 500),
      () => dieAndForget(servers[3]),
      () => hang(servers[2], 100),
    ]),
  ]); // all of them, because the servers must not be stopped before
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  assertEquals(await counter.read(), PROCESSES * 4 * INCREMENTS);
  assertGreater(faults, 3);
});

/** What `counter.ts` is told. */
interface Job {
  readonly file: string;
  readonly urls: readonly string[];
  readonly locked: boolean;
  readonly increments: number;
  readonly ttlMs: number;
}

const JOB = { increments: INCREMENTS, ttlMs: TTL_MS };

/** Has the processes count, all at once, and asserts that each has done its part. */
async function run(job: Pick<Job, "file" | "urls" | "locked"> & Partial<Job>): Promise<void> {
  const whole: Job = { ...JOB, ...job };
  await using stack = new AsyncDisposableStack();
  const processes = Array.from({ length: PROCESSES }, () => stack.use(startCounter(whole)));
  await Promise.all(processes.map((process) => process.line("ready")));
  await Promise.all(processes.map((process) => process.write("go")));
  for (const { code, stdout, stderr } of await Promise.all(processes.map(ended))) {
    assertEquals({ code, stdout, stderr }, {
      code: 0,
      stdout: `ready\ndone ${whole.increments}\n`,
      stderr: "",
    });
  }
}

function ended(process: Program) {
  return process.end(END_WITHIN_MS);
}

function startCounter(job: Job): Program {
  return startProgram("counter.ts", [JSON.stringify(job)], {
    flags: [`--allow-read=${job.file}`, `--allow-write=${job.file}`],
  });
}

async function makeCounter() {
  const file = await Deno.makeTempFile({ prefix: "counter-" });
  await Deno.writeTextFile(file, "0");
  return {
    file,
    read: async () => Number(await Deno.readTextFile(file)),
    [Symbol.asyncDispose]: () => Deno.remove(file),
  };
}

async function hang(server: RedisServer, hangMs: number): Promise<void> {
  await server.pause();
  await pause(hangMs);
  server.resume();
  await pause(50);
}

/** Within the promise, as all that was granted is still known. */
async function dieAndRemember(server: RedisServer): Promise<void> {
  await server.kill();
  await pause(100);
  await server.restart({ keepData: true });
}

/**
 * Within the promise, as all that was granted has run out meanwhile, or stands on a majority of
 * others.
 */
async function dieAndForget(server: RedisServer): Promise<void> {
  await server.kill();
  await pause(TTL_MS + 200);
  await server.restart();
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
