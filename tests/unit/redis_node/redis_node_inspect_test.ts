import { assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import { ConnectionError, ProtocolError, ReplyError } from "../../../src/redis/errors.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { wire } from "../../support/fake_transport.ts";
import { Bench, LOST } from "../../support/redis_node_bench.ts";

Deno.test("RedisNode.inspect() asks for the value, the TTL, who waits and the type in one piece", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  const inspecting = bench.node.inspect("é");
  await runMicrotasks();
  assertEquals(transport.writes, [
    wire("GET", "é") + wire("PTTL", "é") + wire("ZCARD", "hasp:queue:é") + wire("TYPE", "é"),
  ]);
  await bench.answer("$1\r\nv\r\n:700\r\n:2\r\n+string\r\n");
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
    await bench.answer(`${replies}+string\r\n`);
    assertEquals(await inspecting, state);
    await bench.close();
  });
}

for (
  const [what, replies] of [
    ["GET", "-NOPERM no\r\n:-1\r\n"],
    ["PTTL", "$1\r\nv\r\n-NOPERM no\r\n"],
    ["both", "-NOPERM no\r\n-BUSY no\r\n"],
  ] as const
) {
  Deno.test(`RedisNode.inspect() rejects with an error reply to ${what}`, async () => {
    const bench = new Bench();
    await bench.open();
    const rejected = assertRejects(() => bench.node.inspect("k"), ReplyError);
    await runMicrotasks();
    await bench.answer(`${replies}:0\r\n+string\r\n`);
    assertEquals((await rejected).message, "NOPERM no");
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
    await bench.answer(`${replies}:0\r\n+string\r\n`);
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

for (
  const [pttl, remainingMs] of [[-1, Infinity], [700, 700]] as const
) {
  for (
    const [reply, type] of [
      ["+list\r\n", "list"],
      ["+zset\r\n", "zset"],
      ["-NOPERM no TYPE\r\n", "value of another type"],
    ] as const
  ) {
    Deno.test(`RedisNode.inspect() of a ${type} that lives for ${remainingMs} ms has its type`, async () => {
      const bench = new Bench();
      await bench.open();
      const inspecting = bench.node.inspect("k");
      await runMicrotasks();
      await bench.answer(`-WRONGTYPE no string\r\n:${pttl}\r\n:0\r\n${reply}`);
      assertEquals(await inspecting, { value: "", remainingMs, waiters: 0, type });
      await bench.close();
    });
  }
}

Deno.test("RedisNode.inspect() of a list that expired in between is undefined", async () => {
  const bench = new Bench();
  await bench.open();
  const inspecting = bench.node.inspect("k");
  await runMicrotasks();
  await bench.answer("-WRONGTYPE no string\r\n:-2\r\n:0\r\n+none\r\n");
  assertEquals(await inspecting, undefined);
  await bench.close();
});
