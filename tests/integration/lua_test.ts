/**
 * Holds the compiler of Lua to a real redis-server: the same programs, the same bytes back, or an
 * error that says that the program is not supported.
 */
import { assertEquals, assertLess } from "@std/assert";
import fc from "fast-check";
import { MemoryRedis } from "../../src/testing/mod.ts";
import { encodeCommand, joinCommands } from "../../src/redis/encoder.ts";
import {
  ARGS,
  KEYS,
  PIECES,
  PREPARED,
  program,
  REFUSABLE,
  REFUSED as NAMED,
} from "./lua_programs.ts";
import { rawReplies } from "../support/raw_replies.ts";
import { testAsRedis70 as test } from "../support/as_redis_70.ts";
import { startServer } from "../support/servers.ts";

const SEED = 20_120;
const PROGRAMS = 1_000;
/** How many of the random programs may have what the compiler refuses. */
const REFUSED_MAX = PROGRAMS * 0.4;
const REFUSED = "-ERR MemoryRedis cannot run this script: line ";

const latin1 = new TextDecoder("latin1");

function commandsOf(source: string): string[][] {
  return [...PREPARED, ["EVAL", source, String(KEYS.length), ...KEYS, ...ARGS]];
}

/** What the server in memory answers to a program. */
function memoryReply(source: string): string {
  const bytes = joinCommands(commandsOf(source).map((words) => encodeCommand(words)));
  return lastReply(latin1.decode(new MemoryRedis().session().push(bytes)));
}

/** What a real server answers to a program. */
async function serverReply(connection: Deno.TcpConn, source: string): Promise<string> {
  return lastReply(await rawReplies(connection, commandsOf(source)));
}

/** Without the replies to what prepares the server. */
function lastReply(replies: string): string {
  return replies.replace(/^\+OK\r\n\+OK\r\n\+OK\r\n:3\r\n/u, "");
}

test("scripts of MemoryRedis do in every single piece what redis-server does", async () => {
  await using server = await startServer({ rights: ["&*", "+@all"] });
  using real = await Deno.connect({ port: server.port });
  const wrong: string[] = [];
  for (const piece of [...PIECES, ...REFUSABLE]) {
    for (const source of [`return ${piece}`, `local x = ${piece}\nreturn x`]) {
      const [actual, expected] = [memoryReply(source), await serverReply(real, source)];
      if (REFUSABLE.includes(piece) && actual.startsWith(REFUSED)) continue;
      if (actual !== expected) wrong.push(`${source}\n  ${actual}  ${expected}`);
    }
  }
  assertEquals(wrong, []);
});

Deno.test("scripts of MemoryRedis are refused by an error that names line, construct and what to do", () => {
  for (const [construct, piece] of NAMED) {
    const reply = memoryReply(`local first = 1\n\nreturn ${piece}`);
    const advice = "; change the script, or test it with redis-server\r\n";
    assertEquals(
      reply,
      `${REFUSED}3: it does not support ${construct}${advice}`,
      piece,
    );
  }
});

test("scripts of MemoryRedis run random programs as redis-server does, or are refused", async () => {
  await using server = await startServer({ rights: ["&*", "+@all"] });
  using real = await Deno.connect({ port: server.port });
  let refused = 0;
  await fc.assert(
    fc.asyncProperty(program, async (source) => {
      const actual = memoryReply(source);
      if (actual.startsWith(REFUSED)) return void refused++;
      assertEquals(actual, await serverReply(real, source));
    }),
    { seed: SEED, numRuns: PROGRAMS },
  );
  assertLess(refused, REFUSED_MAX);
});
