import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { RespDecoder } from "../../../src/redis/decoder.ts";
import { commandBytes } from "../../support/command_bytes.ts";
import type { Script } from "../../../src/redis_node/scripts/script.ts";
import { COMMANDS } from "../../../src/testing/commands/commands.ts";
import { MemoryRedis } from "../../../src/testing/mod.ts";
import * as scripts from "../../support/scripts.ts";

const SCRIPTS = Object.values(scripts as Record<string, unknown>)
  .filter((it): it is Script => typeof it === "object" && it !== null && "sha1" in it);
const RUNS = { numRuns: 2_000 };
/** A byte that is white space to a regular expression, and no token of Lua. */
const NO_BREAK_SPACE: (string | Uint8Array)[] = ["SCRIPT", "LOAD", Uint8Array.of(0xa0)];

const words = (text: string) => fc.constantFrom(...text.split(" "));
const INTEGERS = "9223372036854775807 9223372036854775808 -9223372036854775808";
/** Few keys, so that commands meet what others left; and what no key looks like. */
const argument: fc.Arbitrary<string | Uint8Array> = fc.oneof(
  { weight: 6, arbitrary: words("a b { {} {a}:waiters hasp:born") },
  {
    weight: 6,
    arbitrary: words(` 0 1 2 -1 60000 007 1.5 1e400 nan inf 0x10 ${INTEGERS} ${"9".repeat(40)}`),
  },
  { weight: 3, arbitrary: words("nx PX EX leave stay client:1:100 client:1:101 [ * RANK") },
  { weight: 2, arbitrary: fc.constantFrom(...SCRIPTS.map(({ sha1 }) => sha1)) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 50, size: "max" }) },
);

const name = fc.constantFrom(
  ...[...COMMANDS].filter(([, { run }]) => run).map(([name]) => name.split("|")),
);
const command = fc.oneof(
  // A command that exists, on any arguments.
  fc.tuple(name, fc.array(argument, { maxLength: 8 })).map(([words, args]) => [...words, ...args]),
  // A script of ours on any keys and values, in any number.
  fc.tuple(
    fc.constantFrom(...SCRIPTS),
    fc.array(argument, { maxLength: 3 }),
    fc.array(argument, { maxLength: 6 }),
  ).map(([{ sha1 }, keys, values]) => ["EVALSHA", sha1, String(keys.length), ...keys, ...values]),
);

Deno.test("MemoryRedis answers every command with one reply, whatever its arguments", () => {
  fc.assert(
    fc.property(fc.array(command, { minLength: 1, maxLength: 20, size: "max" }), (commands) => {
      const redis = new MemoryRedis();
      const loader = redis.session();
      for (const { source } of SCRIPTS) loader.push(commandBytes(["SCRIPT", "LOAD", source]));
      for (const command of commands) {
        const session = redis.session({ onMessage() {} });
        let replies = 0;
        new RespDecoder(() => replies++).push(session.push(commandBytes(command)));
        const isSubscription = /^(un)?subscribe$/u.test(String(command[0]));
        if (isSubscription) assert(replies >= 1);
        else assertEquals(replies, 1, JSON.stringify(command));
        session.close();
      }
    }),
    { ...RUNS, examples: [[[NO_BREAK_SPACE]]] },
  );
});

Deno.test("MemoryRedis takes in any bytes", () => {
  const texts = ["*1\r\n$4\r\nPING", "*2", "*-1", "$-1", "*1\r\n:1", "+OK"];
  const requests = texts.map((text) => new TextEncoder().encode(`${text}\r\n`));
  const piece = fc.oneof(
    fc.uint8Array({ maxLength: 30, size: "max" }),
    fc.constantFrom(...requests),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 10 }), (pieces) => {
      const session = new MemoryRedis().session();
      for (const bytes of pieces) session.push(bytes);
    }),
    RUNS,
  );
});
