import { assertEquals, assertInstanceOf, assertStrictEquals } from "@std/assert";
import { QUEUE_LENGTH_MAX } from "../../../src/redis/connection.ts";
import { ProtocolError, ReplyError } from "../../../src/redis/errors.ts";
import { ACQUIRE_ALL, ACQUIRE_OR_WAIT } from "../../../src/redis_node/scripts/acquire.ts";
import { FakeRequest } from "../../support/fake_request.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { wire } from "../../support/fake_transport.ts";
import {
  Bench,
  ENTRY,
  HEARD,
  LOST,
  NAME,
  NOSCRIPT,
  RECONNECT_MS,
  SCORE,
  TicketBallot,
  WaitingBench,
} from "../../support/redis_node_bench.ts";

const SET = wire("SET", "k", "v", "NX", "PX", "1000");
const JOIN_WORDS = ["1", "k", "v", "1000", ENTRY, "0", `${SCORE}`];
const JOIN = wire("EVALSHA", ACQUIRE_OR_WAIT.sha1, ...JOIN_WORDS);
const JOIN_WHOLE = wire("EVAL", ACQUIRE_OR_WAIT.source, ...JOIN_WORDS);
/** The reply that puts a caller in line. */
const QUEUED = "*5\r\n:700\r\n:2\r\n:5\r\n:77\r\n:1700000000250000\r\n";
/** What it says beside the time for which the key lives. */
const PLACE = { ahead: 2, length: 5, score: 77, timeMs: 1_700_000_000_250 };

// What it writes

for (
  const [claim, keys, words] of [
    ["in-order", ["k"], ["1", "k", "v", "1000", ENTRY, "0", `${SCORE}`]],
    ["overdue", ["{é}:𝄞"], ["1", "{é}:𝄞", "v", "1000", ENTRY, "1", `${SCORE}`]],
    ["in-order", ["k", "l"], ["2", "k", "l", "v", "1000", ENTRY, "0", `${SCORE}`]],
  ] as const
) {
  Deno.test(`RedisNode.acquire() with a ticket of ${JSON.stringify(keys)}, ${claim}, asks for the keys or a place`, async () => {
    const bench = await new WaitingBench().listening();
    const request = await bench.join(new TicketBallot(keys, claim), 2);
    assertEquals(bench.commands.written, wire("EVALSHA", ACQUIRE_OR_WAIT.sha1, ...words));
    assertEquals(request.maybeSet, 0b100);
    await bench.close();
  });
}

Deno.test("RedisNode.acquire() without a ticket sets the key alone, also where the node listens", async () => {
  const bench = await new WaitingBench().listening();
  bench.ask("acquire");
  await runMicrotasks();
  assertEquals(bench.commands.written, SET);
  await bench.close();
});

for (
  const [what, words] of [["k", ["SET", "k", "v", "NX", "PX", "1000"]], ["kl", [
    ...["EVALSHA", ACQUIRE_ALL.sha1, "2", "k", "l", "v", "1000"],
  ]]] as const
) {
  Deno.test(`RedisNode.acquire() of ${what.length} with a ticket only asks for the keys where the node does not listen`, async () => {
    const bench = new WaitingBench();
    await bench.open();
    const request = new TicketBallot([...what]);
    bench.node.acquire(request, 0);
    await runMicrotasks();
    assertEquals(bench.network.last.written, wire(...words));
    await bench.answer(what.length > 1 ? ":1\r\n" : "+OK\r\n");
    assertEquals(request.answers.map(([outcome]) => outcome), ["granted"]);
    await bench.close();
  });
}

Deno.test("RedisNode.acquire() with a ticket only asks for the key until the node listens, and after a cut", async () => {
  const bench = await new WaitingBench().begin();
  const subscription = bench.network.last;
  bench.commands.writes.length = 0;
  await bench.join();
  assertEquals(bench.commands.written, SET);
  await bench.reply(`${HEARD}$-1\r\n`);
  await bench.join();
  assertEquals(
    bench.commands.written,
    wire("EVAL", ACQUIRE_OR_WAIT.source, "1", "k", "v", "1000", ENTRY, "0", `${SCORE}`),
  );
  await bench.reply(QUEUED);
  subscription.end();
  await runMicrotasks();
  bench.commands.writes.length = 0;
  await bench.join();
  assertEquals(bench.commands.written, SET);
  assertEquals(bench.told, [["listening", 3], ["deaf", 3]]);
  await bench.close();
});

Deno.test("RedisNode.acquire() with a ticket encodes its command once for all nodes that listen, and apart for the others", async () => {
  const [bench, other] = [
    await new WaitingBench().listening(),
    await new WaitingBench().listening(),
  ];
  const deaf = new Bench();
  const request = new TicketBallot();
  deaf.node.acquire(request, 2);
  bench.node.acquire(request, 0);
  const { shared } = request;
  assertInstanceOf(shared, Uint8Array);
  deaf.node.acquire(request, 2);
  other.node.acquire(request, 1);
  assertStrictEquals(request.shared, shared);
  await runMicrotasks();
  assertEquals([bench.commands.written, other.commands.written], [JOIN, JOIN]);
  assertEquals(deaf.network.last.written, SET + SET);
  await Promise.all([bench.close(), other.close(), deaf.close()]);
});

// How it votes

for (
  const [what, pttl, remainingMs] of [
    ["a place", 700, 701],
    ["a key without a TTL", -1, Infinity],
    ["a key that is free", -2, 0],
    ["a key in its last millisecond", 0, 1],
  ] as const
) {
  Deno.test(`RedisNode.acquire() with a ticket is told of ${what}, at the time of the reply`, async () => {
    const bench = await new WaitingBench().listening();
    const request = await bench.join(new TicketBallot(), 7);
    await bench.clock.advance(30);
    const atMs = bench.clock.monotonicMs();
    await bench.reply(QUEUED.replace(":700", `:${pttl}`));
    assertEquals(request.queued, [[7, { remainingMs, ...PLACE }, atMs]]);
    assertEquals(request.answers, []);
    await bench.close();
  });
}

for (const [reply, outcome] of [[":1\r\n", "granted"]] as const) {
  Deno.test(`RedisNode.acquire() with a ticket is ${outcome} by ${JSON.stringify(reply)}`, async () => {
    const bench = await new WaitingBench().listening();
    const request = await bench.join(new TicketBallot(), 7);
    await bench.reply(reply);
    assertEquals(request.answers, [[outcome, 7, bench.clock.monotonicMs()]]);
    assertEquals(request.queued, []);
    await bench.close();
  });
}

for (
  const reply of [
    "*0\r\n",
    "*4\r\n:700\r\n:0\r\n:1\r\n:1\r\n",
    "*6\r\n:700\r\n:0\r\n:1\r\n:1\r\n:1\r\n:1\r\n",
    "*5\r\n$3\r\n700\r\n:0\r\n:1\r\n:1\r\n:1\r\n",
    "*5\r\n:700\r\n$-1\r\n:1\r\n:1\r\n:1\r\n",
    "*5\r\n:700\r\n:0\r\n+1\r\n:1\r\n:1\r\n",
    ":3\r\n",
    "+QUEUED\r\n",
  ]
) {
  Deno.test(`RedisNode.acquire() with a ticket fails on the unexpected reply ${JSON.stringify(reply)}`, async () => {
    const bench = await new WaitingBench().listening();
    const request = await bench.join(new TicketBallot(), 2);
    await bench.reply(reply);
    assertEquals(request.answers, [[
      "failed",
      2,
      `Cannot read vote as ${NAME} sent another reply`,
    ]]);
    assertInstanceOf(request.errors[0], ProtocolError);
    assertEquals(request.queued, []);
    await bench.close();
  });
}

Deno.test("RedisNode.acquire() with a ticket fails on what says nothing of the line, and joins it the next time", async () => {
  const bench = await new WaitingBench().listening();
  for (const error of ["OOM no", "BUSY no", "READONLY no", "NOAUTH no"]) {
    const request = await bench.join(new TicketBallot(), 5);
    assertEquals(bench.commands.written, JOIN);
    await bench.reply(`-${error}\r\n`);
    assertEquals([request.answers, bench.commands.written], [[["failed", 5, error]], ""]);
    assertInstanceOf(request.errors[0], ReplyError);
    assertEquals(request.maybeSet, 0b100000);
  }
  assertEquals(bench.told, []);
  await bench.close();
});

Deno.test("RedisNode.acquire() with a ticket fails where the reply gets lost, and a key may stand", async () => {
  const bench = await new WaitingBench().listening();
  const request = await bench.join(new TicketBallot(), 2);
  bench.commands.end();
  await runMicrotasks();
  assertEquals([request.answers, request.maybeSet], [[["failed", 2, LOST]], 0b100]);
  const next = await bench.join(new TicketBallot(), 2);
  assertEquals([next.answers, next.maybeSet], [[["failed", 2, LOST]], 0]);
  await bench.close();
});

Deno.test("RedisNode.acquire() with a ticket is refused while too many commands wait", async () => {
  const bench = await new WaitingBench().listening();
  const crowd = new FakeRequest();
  for (let count = 0; count < QUEUE_LENGTH_MAX; count++) bench.ask("release", crowd);
  const request = await bench.join();
  assertEquals(request.answers.map(([outcome]) => outcome), ["failed"]);
  assertEquals(request.maybeSet, 0);
  await bench.close();
});

// Scripts that the server does not know, or does not allow

Deno.test("RedisNode.acquire() with a ticket sends the script whole on NOSCRIPT, and counts its reply", async () => {
  const bench = await new WaitingBench().listening();
  const request = await bench.join(new TicketBallot(), 4);
  await bench.reply(NOSCRIPT);
  assertEquals([bench.commands.written, request.answers], [JOIN_WHOLE, []]);
  await bench.reply(QUEUED);
  const atMs = bench.clock.monotonicMs();
  assertEquals(request.queued, [[4, { remainingMs: 701, ...PLACE }, atMs]]);
  assertEquals([bench.commands.written, request.answers], ["", []]);
  await bench.close();
});

Deno.test("RedisNode.acquire() with a ticket fails on NOSCRIPT to the whole script", async () => {
  const bench = await new WaitingBench().listening();
  const request = await bench.join();
  await bench.reply(NOSCRIPT);
  await bench.reply(NOSCRIPT);
  assertEquals(bench.commands.written, "");
  assertEquals(request.answers, [["failed", 0, NOSCRIPT.slice(1, -2)]]);
  await bench.close();
});

Deno.test("RedisNode.acquire() with a ticket fails on NOSCRIPT when it is no longer wanted, and sends nothing", async () => {
  const bench = await new WaitingBench().listening();
  const request = await bench.join();
  request.wanted = false;
  await bench.reply(NOSCRIPT);
  assertEquals(bench.commands.written, "");
  assertEquals(request.answers, [["failed", 0, NOSCRIPT.slice(1, -2)]]);
  await bench.close();
});

for (
  const [what, error, forGood] of [
    ["NOPERM", "NOPERM no 'lpos'", true],
    ["ERR", "ERR unknown command called from script", true],
    ["WRONGTYPE", "WRONGTYPE no list", false],
    ["WRONGTYPE that is told as ERR", "ERR Error running script: WRONGTYPE no list", false],
  ] as const
) {
  for (const first of ["", NOSCRIPT]) {
    Deno.test(`RedisNode.acquire() with a ticket asks for the key alone on ${what}${first && " to the whole script"}, ${forGood ? "and from then on" : "and joins the line the next time"}`, async () => {
      const bench = await new WaitingBench().listening();
      const request = await bench.join(new TicketBallot(), 6);
      if (first) await bench.reply(first);
      await bench.reply(`-${error}\r\n`);
      assertEquals([bench.commands.written, request.answers], [SET, []]);
      assertEquals(bench.told, forGood ? [["refused", 3, error]] : []);
      await bench.reply("$-1\r\n");
      assertEquals(request.answers, [["denied", 6, bench.clock.monotonicMs()]]);
      bench.commands.writes.length = 0;
      await bench.join();
      await bench.clock.advance(RECONNECT_MS);
      assertEquals(bench.commands.written, forGood ? SET : JOIN);
      assertEquals([bench.network.last.closed, bench.told.length], [forGood, forGood ? 1 : 0]);
      await bench.close();
    });
  }

  Deno.test(`RedisNode.acquire() with a ticket fails on ${what} when it is no longer wanted, and sends nothing`, async () => {
    const bench = await new WaitingBench().listening();
    const request = await bench.join();
    request.wanted = false;
    await bench.reply(`-${error}\r\n`);
    assertEquals([bench.commands.written, request.answers], ["", [["failed", 0, error]]]);
    assertEquals(bench.told, []);
    await bench.join(); // the node is not refused by it: the next one will be told
    assertEquals(bench.commands.written, JOIN);
    await bench.close();
  });
}

Deno.test("RedisNode.acquire() of several keys asks for them alone, by a script that may have to be sent whole, on NOPERM", async () => {
  const bench = await new WaitingBench().listening();
  const request = await bench.join(new TicketBallot(["k", "l"]));
  await bench.reply("-NOPERM no\r\n");
  const words = ["2", "k", "l", "v", "1000"];
  assertEquals(bench.commands.written, wire("EVALSHA", ACQUIRE_ALL.sha1, ...words));
  await bench.reply(NOSCRIPT);
  assertEquals(bench.commands.written, wire("EVAL", ACQUIRE_ALL.source, ...words));
  await bench.reply(":1\r\n");
  assertEquals(request.answers.map(([outcome]) => outcome), ["granted"]);
  await bench.close();
});

Deno.test("RedisNode tells once that it is refused, and answers all who asked by then", async () => {
  const bench = await new WaitingBench().listening();
  const ballots = [await bench.join(), await bench.join(), await bench.join()];
  await bench.reply("-NOPERM no\r\n-NOPERM no\r\n-NOPERM no\r\n");
  assertEquals([bench.commands.written, bench.told.length], [SET + SET + SET, 1]);
  await bench.reply("+OK\r\n$-1\r\n$-1\r\n");
  const outcomes = ballots.map(({ answers }) => answers.map(([outcome]) => outcome));
  assertEquals(outcomes, [["granted"], ["denied"], ["denied"]]);
  await bench.close();
});
