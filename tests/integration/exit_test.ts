import { assert, assertEquals, assertGreater } from "@std/assert";
import {
  findRuntimes,
  type FoundRuntime,
  type Program,
  type ProgramOptions,
  startProgram,
} from "../support/programs.ts";
import { type RedisServer, startServers } from "../support/servers.ts";
import { shareServers } from "../support/shared_servers.ts";

/**
 * How long a process may stay after its last line, in milliseconds. What it could leave behind
 * would keep it for 20 000 (`nodeTimeoutMs`), 40 000 (silence of a connection) or 60 000 (`ttlMs`).
 */
const EXIT_WITHIN_MS = 12_000;

/** How long a program may take altogether, in milliseconds. */
const END_WITHIN_MS = 20_000;

/** The program sets `clientName`. */
const NAMED = { rights: ["+client|setname"] };
const shared = shareServers(3, NAMED);

/** Programs that end, what they print, and what is done to their servers before. */
const ENDING: readonly (readonly [
  sentence: string,
  name: string,
  output: string,
  prepare?: (server: RedisServer, index: number) => Promise<unknown> | undefined,
])[] = [
  ["after using() the process ends at once", "using", "working\nend of program\n"],
  [
    "after using() with a hung node the process ends at once",
    "using",
    "working\nend of program\n",
    (server, index) => index === 2 ? server.pause() : undefined,
  ],
  [
    "using() keeps the process while its routine waits for the abort",
    "leading",
    "leading\nLOCK_LOST\nend of program\n",
  ],
  ["an idle client does not keep the process", "idle", "end of program\n"],
  [
    "a call that waits for a lock keeps the process until it settles",
    "waiting",
    "end of program\nLOCK_HELD\n",
    (server) => server.command("SET", "job", "somebody else's"),
  ],
  [
    "a call that no node answers keeps the process until it settles",
    "unanswered",
    "end of program\nNO_QUORUM\n",
    (server) => server.pause(),
  ],
];

for (const runtime of await findRuntimes()) {
  for (const [sentence, name, output, prepare = () => undefined] of ENDING) {
    test(runtime, sentence, async (options) => {
      await using servers = shared.lend();
      await Promise.all(servers.map(prepare));
      await using program = startProgram("exit.ts", [name, ...servers.urls], options);
      if (output.endsWith("end of program\n")) await assertEndsAtOnce(program, output);
      else await assertEnds(program, output);
    });
  }

  test(runtime, "after using() with a dead node the process ends at once", async (options) => {
    await using servers = await startServers(3, NAMED);
    await servers[2].kill();
    await using program = startProgram("exit.ts", ["using", ...servers.urls], options);
    await assertEndsAtOnce(program, "working\nend of program\n");
  });

  test(runtime, "a lock that is held does not keep the process", async (options) => {
    await using servers = shared.lend();
    await using program = startProgram("exit.ts", ["holding", ...servers.urls], options);
    await assertEndsAtOnce(program, "end of program\n");
    const lives = await Promise.all(servers.map((server) => server.command("PTTL", "job")));
    const held = lives.filter((lifeMs) => Number(lifeMs) > 30_000);
    assertGreater(held.length, 1); // the process ends as soon as a quorum has granted the lock
  });

  test(runtime, "no rejection goes unhandled when all nodes die under a lock", async (options) => {
    await using servers = await startServers(3, NAMED);
    await using program = startProgram("exit.ts", ["losing", ...servers.urls], options);
    await program.line("held");
    await killAll(servers);
    await assertEnds(program, "held\nLOCK_LOST false false\nend of program\n");
  });
}

function test(
  runtime: FoundRuntime,
  sentence: string,
  fn: (options: ProgramOptions) => Promise<void>,
): void {
  const { name, missing } = runtime;
  Deno.test({
    name: `${name}: ${sentence}${missing ? ` (skipped: ${missing})` : ""}`,
    ignore: missing !== undefined,
    fn: () => fn({ runtime }),
  });
}

async function assertEndsAtOnce(program: Program, output: string): Promise<void> {
  await program.line("end of program");
  await assertEnds(program, output, EXIT_WITHIN_MS);
  assert(program.isOver);
}

async function assertEnds(program: Program, output: string, limitMs = END_WITHIN_MS) {
  const { code, stdout, stderr } = await program.end(limitMs);
  assertEquals({ code, stdout, stderr }, { code: 0, stdout: output, stderr: "" });
}

async function killAll(servers: readonly RedisServer[]): Promise<void> {
  await Promise.all(servers.map((server) => server.kill()));
}
