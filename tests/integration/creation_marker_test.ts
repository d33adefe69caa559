/**
 * Compares the script that sets a creation marker, in memory, with what it does in a real server.
 */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { commandBytes } from "../support/command_bytes.ts";
import { STATE_LUA } from "../../src/redis_node/restart_guard.ts";
import { MemoryRedis } from "../../src/testing/mod.ts";
import { shareServers } from "../support/shared_servers.ts";

const shared = shareServers(1);
const latin1 = new TextDecoder("latin1");
/** By how much the clocks of test and server may be apart between two commands, in milliseconds. */
const STEP_MS = 1_000;

type Ask = (...words: (string | number)[]) => Promise<string>;

/** A server in memory; its replies as the query of real ones would put them. */
function memory(): Ask {
  const session = new MemoryRedis().session();
  return (...words) => {
    const reply = latin1.decode(session.push(commandBytes(words.map(String))));
    return Promise.resolve(reply.replace(/^(?:\$\d+\r\n|[+:-])/u, "").trimEnd());
  };
}

const call: (ask: Ask, ...keys: string[]) => Promise<string> = (ask, ...keys) =>
  ask("EVAL", STATE_LUA, keys.length, ...keys);

/** The marker's age and the server's clock, in milliseconds. */
async function ages(ask: Ask): Promise<number[]> {
  const reply = (await call(ask, "marker")).replace(/^\*4/u, "");
  return reply.match(/-?\d+/gu)!.map(Number);
}

for (const where of ["a real server", "MemoryRedis"] as const) {
  const open = (server: { command: (...words: (string | number)[]) => Promise<unknown> }): Ask => {
    if (where === "MemoryRedis") return memory();
    return async (...words) => {
      try {
        return String(await server.command(...words));
      } catch (error) {
        return (error as Error).message;
      }
    };
  };

  Deno.test(`the creation marker of ${where} is set once, to the server's time, and does not expire`, async () => {
    await using servers = shared.lend();
    const ask = open(servers[0]);
    const beforeMs = Date.now();
    const [noAge, nowMs] = await ages(ask);
    const marker = await ask("GET", "marker");
    assert(Math.abs(Number(marker) - beforeMs) < STEP_MS && /^\d{13}$/u.test(marker), marker);
    assertEquals([noAge, nowMs], [0, Number(marker)]);
    assertEquals(await ask("PTTL", "marker"), "-1");
    await new Promise((resolve) => setTimeout(resolve, 5));
    const [ageMs, laterMs] = await ages(ask);
    assertEquals([ageMs >= 5, ageMs], [true, laterMs - nowMs]);
    assertEquals(await ask("GET", "marker"), marker);
  });

  for (
    const text of ["", "abc", "-5", "0", "99999999999999", "9".repeat(400), "5 6", "1e3", "1.5"]
  ) {
    Deno.test(`a key of ${where} that says ${JSON.stringify(text)} is not replaced by a creation marker`, async () => {
      await using servers = shared.lend();
      const ask = open(servers[0]);
      await ask("SET", "marker", text, "PX", 60_000);
      const [ageMs, nowMs] = await ages(ask);
      assertEquals(ageMs, text === "0" ? nowMs : -1);
      assertEquals(await ask("GET", "marker"), text);
      assert(Number(await ask("PTTL", "marker")) > 0);
    });
  }

  Deno.test(`a list of ${where} is not replaced by a creation marker, and a missing name is an error`, async () => {
    await using servers = shared.lend();
    const ask = open(servers[0]);
    await ask("ZADD", "marker", "1", "x");
    assertStringIncludes(await call(ask, "marker"), "WRONGTYPE");
    assertEquals(await ask("ZCARD", "marker"), "1");
    assertMatch(
      String(await call(ask)),
      // the server in memory names no line
      /ERR Lua redis lib command arguments must be strings or integers script: \w{40}, on @user_script/u,
    );
  });
}
