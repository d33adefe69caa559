import { assertEquals, assertInstanceOf } from "@std/assert";
import type { QueueTicket } from "../../../src/quorum/queue_ticket.ts";
import { ConnectionError, ProtocolError } from "../../../src/redis/errors.ts";
import { ACQUIRE_COUNTED, ACQUIRE_FENCED, RAISE } from "../../../src/redis_node/scripts/fencing.ts";
import { EXTEND } from "../../../src/redis_node/scripts/extend.ts";
import type { Script } from "../../../src/redis_node/scripts/script.ts";
import { FakeRequest } from "../../support/fake_request.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { wire } from "../../support/fake_transport.ts";
import {
  Bench,
  ENTRY,
  FencedBallot,
  LOST,
  NAME,
  NOSCRIPT,
  type Operation,
  SCORE,
  WaitingBench,
} from "../../support/redis_node_bench.ts";

/** What the ballots name, and some count that is more. */
const FENCE = 1_700_000_000_000_000;
const COUNT = FENCE + 7;

/** The command of each operation about one key, and about two. */
const COMMANDS: readonly (readonly [Operation, string[], Script, string[]])[] = [
  ["acquire", ["k"], ACQUIRE_COUNTED, ["1", "k", "v", "1000", `${FENCE}`]],
  ["acquire", ["k", "l"], ACQUIRE_FENCED, ["2", "k", "l", "v", "1000", "", "1", "", `${FENCE}`]],
  ["extend", ["k"], EXTEND, ["1", "k", "v", "1000"]],
  ["extend", ["k", "l"], EXTEND, ["2", "k", "l", "v", "1000"]],
  ["raiseCounters", ["k"], RAISE, ["1", "k", "v", `${FENCE}`]],
  ["raiseCounters", ["k", "l"], RAISE, ["2", "k", "l", "v", `${FENCE}`]],
];

for (const [operation, keys, { sha1, source }, words] of COMMANDS) {
  Deno.test(`RedisNode.${operation}() of ${keys.length} with fencing sends the script, and then its digest`, async () => {
    const bench = new Bench();
    const transport = await bench.connect();
    transport.writes.length = 0;
    const request = new FencedBallot(keys);
    bench.ask(operation, request, 3);
    await runMicrotasks();
    assertEquals(transport.written, wire("EVAL", source, ...words));
    assertEquals(request.answers, []);
    await bench.answer(":0\r\n");
    assertEquals(request.answers, [["denied", 3, bench.clock.monotonicMs()]]);
    transport.writes.length = 0;
    bench.ask(operation, new FencedBallot(keys), 3);
    await runMicrotasks();
    assertEquals(transport.written, wire("EVALSHA", sha1, ...words));
    await bench.close();
  });
}

for (const operation of ["acquire", "raiseCounters"] as const) {
  for (const keys of [["k"], ["k", "l"]]) {
    for (const count of [COUNT, Number.MAX_SAFE_INTEGER, 1_000_001, 3, 2, 1]) {
      Deno.test(`RedisNode.${operation}() of ${keys.length} with fencing grants with the count ${count}, at the time of the reply`, async () => {
        const bench = new Bench();
        const request = new FencedBallot(keys);
        bench.ask(operation, request, 7);
        await bench.clock.advance(30);
        const atMs = bench.clock.monotonicMs();
        await bench.answer(`:${count}\r\n`);
        assertEquals([request.answers, request.counts], [[["granted", 7, atMs]], [count]]);
        await bench.close();
      });
    }

    Deno.test(`RedisNode.${operation}() of ${keys.length} with fencing is denied by 0`, async () => {
      const bench = new Bench();
      const request = new FencedBallot(keys);
      bench.ask(operation, request, 7);
      await runMicrotasks();
      await bench.answer(":0\r\n");
      assertEquals(request.answers, [["denied", 7, bench.clock.monotonicMs()]]);
      await bench.close();
    });
  }

  for (
    const reply of [":-1\r\n", ":9007199254740993\r\n", "$1\r\n7\r\n", "+OK\r\n", "$-1\r\n"]
      .concat("*3\r\n:500\r\n:0\r\n:1\r\n")
  ) {
    Deno.test(`RedisNode.${operation}() with fencing fails on ${JSON.stringify(reply)}, which is no count`, async () => {
      const bench = new Bench();
      const request = new FencedBallot();
      bench.ask(operation, request, 2);
      await runMicrotasks();
      await bench.answer(reply);
      const message = `Cannot read vote as ${NAME} sent another reply`;
      assertEquals([request.answers, request.counts], [[["failed", 2, message]], []]);
      assertInstanceOf(request.errors[0], ProtocolError);
      await bench.close();
    });
  }
}

for (const [reply, outcome] of [[":1\r\n", "granted"], [":2\r\n", "denied"]] as const) {
  Deno.test(`RedisNode.extend() with fencing is ${outcome} by ${JSON.stringify(reply)}, without a count`, async () => {
    const bench = new Bench();
    const request = new FencedBallot();
    bench.ask("extend", request, 2);
    await runMicrotasks();
    await bench.answer(reply);
    assertEquals(request.answers.map(([outcome]) => outcome), [outcome]);
    assertEquals(request.counts.filter((count) => count !== undefined), []);
    await bench.close();
  });
}

Deno.test("RedisNode takes no count from a node that was not asked to count", async () => {
  const bench = new Bench();
  const request = bench.ask("acquire", new FakeRequest(["k", "l"]), 2);
  await runMicrotasks();
  await bench.answer(`:${COUNT}\r\n`);
  assertEquals(request.answers.map(([outcome]) => outcome), ["failed"]);
  await bench.close();
});

Deno.test("RedisNode.raiseCounters() says nothing of whether a key may stand", async () => {
  const bench = new Bench();
  const ballots = [0b0, 0b111].map((maybeSet) => Object.assign(new FencedBallot(), { maybeSet }));
  for (const request of ballots) bench.ask("raiseCounters", request, 1);
  await runMicrotasks();
  assertEquals(ballots.map(({ maybeSet }) => maybeSet), [0b0, 0b111]);
  await bench.close();
});

Deno.test("RedisNode.raiseCounters() fails at once while the node is down, and leaves nothing to release", async () => {
  const bench = new Bench();
  await bench.open();
  await bench.hangUp();
  const request = bench.ask("raiseCounters", new FencedBallot(), 2);
  assertEquals(request.answers, [["failed", 2, LOST]]);
  assertInstanceOf(request.errors[0], ConnectionError);
  assertEquals(await bench.reconnect(), "");
  await bench.close();
});

Deno.test("RedisNode.raiseCounters() does not send its script whole for a lock that is over", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  const request = bench.ask("raiseCounters", new FencedBallot(), 2);
  await runMicrotasks();
  request.wanted = false;
  await bench.answer(NOSCRIPT);
  assertEquals([transport.written, request.answers.map(([outcome]) => outcome)], ["", ["failed"]]);
  await bench.close();
});

// In line

class FencedTicketBallot extends FencedBallot {
  readonly ticket: QueueTicket = {
    ticketId: ENTRY,
    priority: "in-order",
    score: SCORE,
    onEnqueued() {},
  };
  readonly queued: number[] = [];

  enqueued(nodeIndex: number): void {
    this.queued.push(nodeIndex);
  }
}

for (
  const [reply, outcome, counts, queued] of [
    [`:${COUNT}\r\n`, ["granted"], [COUNT], []],
    ["*5\r\n:500\r\n:0\r\n:1\r\n:1\r\n:1\r\n", [], [], [5]],
  ] as const
) {
  Deno.test(`RedisNode.acquire() of one who waits with fencing reads ${JSON.stringify(reply)}`, async () => {
    const bench = await new WaitingBench().listening();
    const request = new FencedTicketBallot();
    bench.node.acquire(request, 5);
    await runMicrotasks();
    const words = ["1", "k", "v", "1000", ENTRY, "0", `${SCORE}`, `${FENCE}`];
    assertEquals(bench.commands.written, wire("EVALSHA", ACQUIRE_FENCED.sha1, ...words));
    await bench.reply(reply);
    assertEquals(request.answers.map(([outcome]) => outcome), [...outcome]);
    assertEquals([request.counts, request.queued], [[...counts], [...queued]]);
    await bench.close();
  });
}

Deno.test("RedisNode.acquire() of one who waits with fencing counts all the same where nobody can stand in line", async () => {
  const bench = await new WaitingBench().listening();
  const request = new FencedTicketBallot();
  bench.node.acquire(request, 5);
  await runMicrotasks();
  await bench.reply("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
  const words = ["1", "k", "v", "1000", `${FENCE}`];
  assertEquals(bench.commands.written, wire("EVALSHA", ACQUIRE_COUNTED.sha1, ...words));
  await bench.reply(`:${COUNT}\r\n`);
  assertEquals(request.counts, [COUNT]);
  await bench.close();
});

Deno.test("RedisNode keeps its notifications where a counter's key holds something else", async () => {
  const bench = await new WaitingBench().listening();
  for (const what of ["WRONGTYPE", "ERR user_script:5: WRONGTYPE"]) {
    bench.commands.writes.length = 0;
    bench.node.acquire(new FencedTicketBallot(), 5);
    await runMicrotasks();
    const words = ["1", "k", "v", "1000", ENTRY, "0", `${SCORE}`, `${FENCE}`];
    assertEquals(bench.commands.written, wire("EVALSHA", ACQUIRE_FENCED.sha1, ...words));
    await bench.reply(`-${what} this is no fencing counter: hasp:fence:k\r\n`);
    await bench.reply(":0\r\n");
  }
  assertEquals(bench.told, []);
  await bench.close();
});
