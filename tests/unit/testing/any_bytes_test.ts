import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { RespDecoder } from "../../../src/redis/decoder.ts";
import { encodeCommand } from "../../../src/redis/encoder.ts";
import * as acquire from "../../../src/redis_node/scripts/acquire.ts";
import * as creation from "../../../src/redis_node/scripts/creation.ts";
import * as extend from "../../../src/redis_node/scripts/extend.ts";
import * as fencing from "../../../src/redis_node/scripts/fencing.ts";
import * as queue from "../../../src/redis_node/scripts/queue.ts";
import * as release from "../../../src/redis_node/scripts/release.ts";
import type { Script } from "../../../src/redis_node/scripts/script.ts";
import { COMMANDS } from "../../../src/testing/commands/commands.ts";
import { MemoryRedis } from "../../../src/testing/mod.ts";

const MODULES = [acquire, creation, extend, fencing, queue, release];
const SCRIPTS = MODULES.flatMap((module) => Object.values(module) as unknown[])
  .filter((it): it is Script => typeof it === "object" && it !== null && "sha1" in it);

const encoder = new TextEncoder();

/** Few keys, so that commands meet what others left; and what no key looks like. */
const argument: fc.Arbitrary<string | Uint8Array> = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom("a", "b", "{", "{}", "{a}:waiters", "hasp:born") },
  {
    weight: 6,
    arbitrary: fc.constantFrom(
      ...["", "0", "1", "2", "-1", "60000", "007", "1.5", "1e400", "nan", "inf", "0x10"],
      ...["9223372036854775807", "9223372036854775808", "-9223372036854775808", "9".repeat(40)],
    ),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      ...["nx", "PX", "EX", "leave", "stay", "client:1:100", "client:1:101", "[", "*", "RANK"],
    ),
  },
  { weight: 2, arbitrary: fc.constantFrom(...SCRIPTS.map(({ sha1 }) => sha1)) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 50 }) },
);

const name = fc.constantFrom(
  ...[...COMMANDS].flatMap(([name, { subcommands }]) => {
    return subcommands ? Object.keys(subcommands).map((subname) => [name, subname]) : [[name]];
  }),
);

/** A command that exists, on any arguments. */
const anyCommand = fc.tuple(name, fc.array(argument, { maxLength: 8 }))
  .map(([words, args]) => [...words, ...args]);

/** A script of ours on any keys and values, in any number. */
const anyCall = fc.tuple(
  fc.constantFrom(...SCRIPTS),
  fc.array(argument, { maxLength: 3 }),
  fc.array(argument, { maxLength: 6 }),
).map(([{ sha1 }, keys, values]) => ["EVALSHA", sha1, keys.length, ...keys, ...values]);

const commands = fc.array(fc.oneof(anyCommand, anyCall), { minLength: 1, maxLength: 20 });

Deno.test("MemoryRedis answers every command with one reply, whatever its arguments", () => {
  fc.assert(
    fc.property(commands, (sequence) => {
      const redis = new MemoryRedis();
      const loader = redis.session();
      for (const { source } of SCRIPTS) loader.push(encodeCommand(["SCRIPT", "LOAD", source]));
      for (const command of sequence) {
        const session = redis.session({ onMessage() {} });
        let replies = 0;
        const decoder = new RespDecoder(() => replies++);
        decoder.push(session.push(encodeCommand(command)));
        const isSubscription = /^(un)?subscribe$/u.test(String(command[0]));
        if (isSubscription) assert(replies >= 1);
        else assertEquals(replies, 1, JSON.stringify(command));
        session.close();
      }
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("MemoryRedis takes in any bytes", () => {
  const piece = fc.oneof(
    fc.uint8Array({ maxLength: 30 }),
    fc.constantFrom(
      "*1\r\n$4\r\nPING\r\n",
      "*2\r\n",
      "*-1\r\n",
      "$-1\r\n",
      "*1\r\n:1\r\n",
      "+OK\r\n",
    )
      .map((text) => encoder.encode(text)),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 10 }), (pieces) => {
      const session = new MemoryRedis().session();
      for (const bytes of pieces) session.push(bytes);
    }),
    { numRuns: 2_000 },
  );
});
