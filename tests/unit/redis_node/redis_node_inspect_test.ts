import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import type { KeyState } from "../../../src/quorum/lock_node.ts";
import { ConnectionError } from "../../../src/redis/errors.ts";
import { GET_LUA } from "../../../src/redis_node/inspect_key.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { FakeRequest } from "../../support/fake_request.ts";
import { wire } from "../../support/fake_transport.ts";
import { test } from "../../support/redis_node_bench.ts";
import { LOST } from "../../support/stream_bench.ts";

const state = (value: string, remainingMs: number, rest: Partial<KeyState> = { waiters: 0 }) => ({
  value,
  remainingMs,
  ...rest,
});

/** The replies, of which that to TYPE may be missing if it is `string`, and what they say. */
const STATES: readonly (readonly [what: string, replies: string, state: KeyState | undefined])[] = [
  ["a key", "$1\r\nv\r\n:700\r\n:2\r\n", state("v", 700, { waiters: 2 })],
  ["a key without a TTL", "$1\r\nv\r\n:-1\r\n:0\r\n", state("v", Infinity)],
  ["a key in its last millisecond", "$1\r\nv\r\n:0\r\n:1\r\n", state("v", 0, { waiters: 1 })],
  ["an empty value", "$0\r\n\r\n:5\r\n:0\r\n", state("", 5)],
  ["a value that begins with a BOM", "$4\r\n\uFEFFv\r\n:5\r\n:0\r\n", state("\uFEFFv", 5)],
  ["no key", "$-1\r\n:-2\r\n:0\r\n", undefined],
  ["no key for which some still wait", "$-1\r\n:-2\r\n:3\r\n", undefined],
  ["a key that expired in between", "$1\r\nv\r\n:-2\r\n:0\r\n", undefined],
  ["a key that was set in between", "$-1\r\n:700\r\n:0\r\n", undefined],
  ["a key whose queue it may not read", "$1\r\nv\r\n:5\r\n-NOPERM no ZCARD\r\n", state("v", 5, {})],
  ["a key whose queue is of another type", "$1\r\nv\r\n:5\r\n-WRONGTYPE no\r\n", state("v", 5, {})],
  ["a key whose queue is not a number", "$1\r\nv\r\n:5\r\n$1\r\n2\r\n", state("v", 5, {})],
  ...([[-1, Infinity], [700, 700]] as const).flatMap(([pttl, remainingMs]) =>
    ([
      ["+list\r\n", "list"],
      ["+zset\r\n", "zset"],
      ["-NOPERM no TYPE\r\n", "value of another type"],
    ] as const).map(([reply, type]) =>
      [
        `a ${type} that lives for ${remainingMs} ms`,
        `-WRONGTYPE no string\r\n:${pttl}\r\n:0\r\n${reply}`,
        state("", remainingMs, { waiters: 0, type }),
      ] as const
    )
  ),
  ["a list that expired in between", "-WRONGTYPE no\r\n:-2\r\n:0\r\n+none\r\n", undefined],
];

for (const [what, replies, expected] of STATES) {
  test.opened(`RedisNode.inspect() of ${what} is ${Deno.inspect(expected)}`, async (bench) => {
    const inspecting = bench.node.inspect("é");
    await runMicrotasks();
    const keys = [["EVAL", GET_LUA, "1", "é"], ["PTTL", "é"], ["ZCARD", "hasp:queue:é"], [
      "TYPE",
      "é",
    ]];
    assertEquals(bench.transport.writes, [keys.map((words) => wire(...words)).join("")]);
    await bench.answer(replies.startsWith("-WRONGTYPE") ? replies : `${replies}+string\r\n`);
    assertEquals(await inspecting, expected);
  });
}

test.opened("RedisNode.inspect() sees what the releases before it in its tick have done", async (bench) => {
  const { transport } = bench;
  const { write } = transport;
  const first = Promise.withResolvers<number>();
  transport.write = () => first.promise; // so what follows is not written at the end of its tick
  await bench.send("acquire", new FakeRequest("m"));
  transport.write = write;
  for (const key of ["k", "l"]) bench.release(new FakeRequest(key));
  const inspecting = bench.node.inspect("l");
  await runMicrotasks();
  first.resolve(wire("SET", "m", "v", "NX", "PX", "1000").length);
  await runMicrotasks();
  assertMatch(bench.written, /EVALSHA.*PTTL\r\n\$1\r\nl\r\n/su);
  await bench.feed("+OK\r\n*2\r\n:1\r\n:1\r\n$-1\r\n:-2\r\n:0\r\n+none\r\n");
  assertEquals(await inspecting, undefined);
});

test.opened("RedisNode.inspect() rejects if the connection breaks between two replies, and while it is down", async (bench) => {
  for (const replies of ["$1\r\nv\r\n:700\r\n", undefined]) {
    const rejected = assertRejects(() => bench.node.inspect("k"), ConnectionError);
    await runMicrotasks();
    if (replies) await bench.answer(replies);
    if (replies) await bench.hangUp();
    assertEquals((await rejected).message, LOST);
  }
});
