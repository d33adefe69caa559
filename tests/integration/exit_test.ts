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

for (const runtime of await findRuntimes()) {
  test(runtime, "after using() the process ends at once", async (options) => {
    await using servers = shared.lend();
    await using program = startProgram("exit.ts", ["using", ...servers.urls], options);
    await assertEndsAtOnce(program, "working\nend of program\n");
  });

  test(runtime, "after using() with a dead node the process ends at once", async (options) => {
    await using servers = await startServers(3, NAMED);
    await servers[2].kill();
    await using program = startProgram("exit.ts", ["using", ...servers.urls], options);
    await assertEndsAtOnce(program, "working\nend of program\n");
  });

  test(runtime, "after using() with a hung node the process ends at once", async (options) => {
    await using servers = shared.lend();
    await servers[2].pause();
    await using program = startProgram("exit.ts", ["using", ...servers.urls], options);
    await assertEndsAtOnce(program, "working\nend of program\n");
  });

  test(
    runtime,
    "using() keeps the process while its routine waits for the abort",
    async (options) => {
      await using servers = shared.lend();
      await using program = startProgram("exit.ts", ["leading", ...servers.urls], options);
      await assertEndsAtOnce(program, "leading\nLOCK_LOST\nend of program\n");
    },
  );

  test(runtime, "an idle client does not keep the process", async (options) => {
    await using servers = shared.lend();
    await using program = startProgram("exit.ts", ["idle", ...servers.urls], options);
    await assertEndsAtOnce(program, "end of program\n");
  });

  test(runtime, "a lock that is held does not keep the process", async (options) => {
    await using servers = shared.lend();
    await using program = startProgram("exit.ts", ["holding", ...servers.urls], options);
    await assertEndsAtOnce(program, "end of program\n");
    const lives = await Promise.all(servers.map((server) => server.command("PTTL", "job")));
    const held = lives.filter((lifeMs) => Number(lifeMs) > 30_000);
    assertGreater(held.length, 1); // the process ends as soon as a quorum has granted the lock
  });

  test(
    runtime,
    "a call that waits for a lock keeps the process until it settles",
    async (options) => {
      await using servers = shared.lend();
      for (const server of servers) await server.command("SET", "job", "somebody else's");
      await using program = startProgram("exit.ts", ["waiting", ...servers.urls], options);
      const { code, stdout, stderr } = await program.end(END_WITHIN_MS);
      assertEquals({ code, stdout, stderr }, {
        code: 0,
        stdout: "end of program\nLOCK_HELD\n",
        stderr: "",
      });
    },
  );

  test(
    runtime,
    "a call that no node answers keeps the process until it settles",
    async (options) => {
      await using servers = shared.lend();
      for (const server of servers) await server.pause();
      await using program = startProgram("exit.ts", ["unanswered", ...servers.urls], options);
      const { code, stdout, stderr } = await program.end(END_WITHIN_MS);
      assertEquals({ code, stdout, stderr }, {
        code: 0,
        stdout: "end of program\nNO_QUORUM\n",
        stderr: "",
      });
    },
  );

  test(runtime, "no rejection goes unhandled when all nodes die under a lock", async (options) => {
    await using servers = await startServers(3, NAMED);
    await using program = startProgram("exit.ts", ["losing", ...servers.urls], options);
    await program.line("held");
    await killAll(servers);
    const { code, stdout, stderr } = await program.end(END_WITHIN_MS);
    assertEquals({ code, stdout, stderr }, {
      code: 0,
      stdout: "held\nLOCK_LOST false false\nend of program\n",
      stderr: "",
    });
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
  const { code, stdout, stderr } = await program.end(EXIT_WITHIN_MS);
  assertEquals({ code, stdout, stderr }, { code: 0, stdout: output, stderr: "" });
  assert(program.isOver);
}

async function killAll(servers: readonly RedisServer[]): Promise<void> {
  await Promise.all(servers.map((server) => server.kill()));
}
