/** Holds the script that tells a birth key's age, in memory, to what it does in a real server. */
import { assert, assertEquals } from "@std/assert";
import { encodeCommand } from "../../src/redis/encoder.ts";
import { CREATED } from "../../src/redis_node/scripts/creation.ts";
import { MemoryRedis } from "../../src/testing/mod.ts";
import { shareServers } from "../support/shared_servers.ts";

const shared = shareServers(1);
const latin1 = new TextDecoder("latin1");
/** By how much the clocks of the two may have gone on between the commands, in milliseconds. */
const STEP_MS = 1_000;

type Ask = (...words: (string | number)[]) => Promise<string>;

/** A server in memory; its replies as the query of real ones would put them. */
function memory(): Ask {
  const session = new MemoryRedis().session();
  return (...words) => {
    const reply = latin1.decode(session.push(encodeCommand(words)));
    return Promise.resolve(reply.replace(/^(?:\$\d+\r\n|[+:-])/u, "").trim());
  };
}

const call: (ask: Ask, ...keys: string[]) => Promise<string> = (ask, ...keys) =>
  ask("EVAL", CREATED.source, keys.length, ...keys);

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

  Deno.test(`the birth key of ${where} is set once, and grows old`, async () => {
    await using servers = shared.lend();
    const ask = open(servers[0]);
    const beforeMs = Date.now();
    assertEquals(await call(ask, "born"), "0");
    const born = await ask("GET", "born");
    assert(Math.abs(Number(born) - beforeMs) < STEP_MS && /^\d+$/u.test(born), born);
    assertEquals(await ask("PTTL", "born"), "-1");
    await new Promise((resolve) => setTimeout(resolve, 20));
    const age = Number(await call(ask, "born"));
    assert(age >= 18 && age < STEP_MS, `${age}`);
    assertEquals(await ask("GET", "born"), born);
  });

  for (const text of ["", "abc", "-5", "nan", "inf", "1e300", "5 6"]) {
    Deno.test(`a birth key of ${where} that says ${JSON.stringify(text)} is set anew`, async () => {
      await using servers = shared.lend();
      const ask = open(servers[0]);
      await ask("SET", "born", text);
      assertEquals(await call(ask, "born"), "0");
      assert(Math.abs(Number(await ask("GET", "born")) - Date.now()) < STEP_MS);
    });
  }

  Deno.test(`a birth key of ${where} that is of another kind, or not named, is an error`, async () => {
    await using servers = shared.lend();
    const ask = open(servers[0]);
    await ask("ZADD", "born", "1", "x");
    assertEquals(
      await call(ask, "born"),
      "WRONGTYPE Operation against a key holding the wrong kind of value " +
        `script: ${CREATED.sha1}, on @user_script:3.`,
    );
    assertEquals(
      await call(ask),
      "ERR Lua redis lib command arguments must be strings or integers " +
        `script: ${CREATED.sha1}, on @user_script:3.`,
    );
  });
}
