import { assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import { ConnectionError, ProtocolError, ReplyError } from "../../../src/redis/errors.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { wire } from "../../support/fake_transport.ts";
import { Bench, LOST } from "../../support/redis_node_bench.ts";

Deno.test("RedisNode.inspect() asks for the value, the TTL and who waits in one piece", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  const inspecting = bench.node.inspect("é");
  await runMicrotasks();
  assertEquals(transport.writes, [
    wire("GET", "é") + wire("PTTL", "é") + wire("ZCARD", "hasp:queue:é"),
  ]);
  await bench.answer("$1\r\nv\r\n:700\r\n:2\r\n");
  assertEquals(await inspecting, { value: "v", remainingMs: 700, waiters: 2 });
  await bench.close();
});

for (
  const [what, replies, state] of [
    ["a key without a TTL", "$1\r\nv\r\n:-1\r\n:0\r\n", {
      value: "v",
      remainingMs: Infinity,
      waiters: 0,
    }],
    ["a key in its last millisecond", "$1\r\nv\r\n:0\r\n:1\r\n", {
      value: "v",
      remainingMs: 0,
      waiters: 1,
    }],
    ["an empty value", "$0\r\n\r\n:5\r\n:0\r\n", { value: "", remainingMs: 5, waiters: 0 }],
    ["a value that begins with a BOM", "$4\r\n\uFEFFv\r\n:5\r\n:0\r\n", {
      value: "\uFEFFv",
      remainingMs: 5,
      waiters: 0,
    }],
    ["no key", "$-1\r\n:-2\r\n:0\r\n", undefined],
    ["no key for which some wait still", "$-1\r\n:-2\r\n:3\r\n", undefined],
    ["a key that expired in between", "$1\r\nv\r\n:-2\r\n:0\r\n", undefined],
    ["a key that was set in between", "$-1\r\n:700\r\n:0\r\n", undefined],
    ["a key whose line it may not read", "$1\r\nv\r\n:5\r\n-NOPERM no LLEN\r\n", {
      value: "v",
      remainingMs: 5,
    }],
    ["a key whose line is no list", "$1\r\nv\r\n:5\r\n-WRONGTYPE no list\r\n", {
      value: "v",
      remainingMs: 5,
    }],
    ["a key whose line is no number", "$1\r\nv\r\n:5\r\n$1\r\n2\r\n", {
      value: "v",
      remainingMs: 5,
    }],
  ] as const
) {
  Deno.test(`RedisNode.inspect() of ${what} is ${Deno.inspect(state)}`, async () => {
    const bench = new Bench();
    await bench.open();
    const inspecting = bench.node.inspect("k");
    await runMicrotasks();
    await bench.answer(replies);
    assertEquals(await inspecting, state);
    await bench.close();
  });
}

for (
  const [what, replies] of [
    ["GET", "-WRONGTYPE no string\r\n:-1\r\n"],
    ["PTTL", "$1\r\nv\r\n-WRONGTYPE no string\r\n"],
    ["both", "-WRONGTYPE no string\r\n-WRONGTYPE no other\r\n"],
  ] as const
) {
  Deno.test(`RedisNode.inspect() rejects with an error reply to ${what}`, async () => {
    const bench = new Bench();
    await bench.open();
    const rejected = assertRejects(() => bench.node.inspect("k"), ReplyError);
    await runMicrotasks();
    await bench.answer(`${replies}:0\r\n`);
    assertEquals((await rejected).message, "WRONGTYPE no string");
    await bench.close();
  });
}

for (
  const [what, replies] of [
    ["GET", ":5\r\n:700\r\n"],
    ["GET", "*0\r\n:700\r\n"],
    ["PTTL", "$1\r\nv\r\n$-1\r\n"],
    ["PTTL", "$1\r\nv\r\n+soon\r\n"],
  ] as const
) {
  Deno.test(`RedisNode.inspect() rejects where ${what} is answered by what is none: ${JSON.stringify(replies)}`, async () => {
    const bench = new Bench();
    await bench.open();
    const outcome = bench.node.inspect("k").catch((error) => error);
    await runMicrotasks();
    await bench.answer(`${replies}:0\r\n`);
    assertInstanceOf(await outcome, ProtocolError);
    await bench.close();
  });
}

for (const replies of ["$1\r\nv\r\n", "$1\r\nv\r\n:700\r\n"]) {
  Deno.test(`RedisNode.inspect() rejects where the connection breaks after ${JSON.stringify(replies)}`, async () => {
    const bench = new Bench();
    await bench.open();
    const rejected = assertRejects(() => bench.node.inspect("k"), ConnectionError);
    await runMicrotasks();
    await bench.answer(replies);
    await bench.hangUp();
    assertEquals((await rejected).message, LOST);
    await bench.close();
  });
}

Deno.test("RedisNode.inspect() rejects at once while the node is down", async () => {
  const bench = new Bench();
  await bench.open();
  await bench.hangUp();
  assertEquals((await assertRejects(() => bench.node.inspect("k"), ConnectionError)).message, LOST);
  await bench.close();
});
