import { assertEquals } from "@std/assert";
import { ACQUIRE_OR_WAIT } from "../../../src/redis_node/scripts/acquire.ts";
import { LEAVE } from "../../../src/redis_node/scripts/queue.ts";
import { RELEASE_QUEUED } from "../../../src/redis_node/scripts/release.ts";
import { advanceUntil, runMicrotasks } from "../../support/fake_clock.ts";
import { wire } from "../../support/fake_transport.ts";
import {
  Bench,
  BUSY_DELAY_MS,
  ENTRY,
  HEARD,
  laterRelease,
  NOSCRIPT,
  PROBE,
  RECONNECT_MS,
  SCORE,
  TicketBallot,
  WaitingBench,
  wakeMessage,
} from "../../support/redis_node_bench.ts";

const SET = wire("SET", "k", "v", "NX", "PX", "1000");
const JOIN_WORDS = ["1", "k", "v", "1000", ENTRY, "0", `${SCORE}`];
const JOIN = wire("EVALSHA", ACQUIRE_OR_WAIT.sha1, ...JOIN_WORDS);
const LEAVING = wire("EVALSHA", LEAVE.sha1, "1", "k", ENTRY);

// Leaving

for (
  const [keys, words] of [
    [["k"], ["1", "k", ENTRY]],
    [["{é}:1", "l"], ["2", "{é}:1", "l", ENTRY]],
  ] as const
) {
  Deno.test(`RedisNode.leaveQueue() of ${JSON.stringify(keys)} sends LEAVE, whole on NOSCRIPT and no more than that`, async () => {
    const bench = await new WaitingBench().listening();
    bench.node.leaveQueue(keys, ENTRY);
    await runMicrotasks();
    assertEquals(bench.commands.written, wire("EVALSHA", LEAVE.sha1, ...words));
    await bench.reply(NOSCRIPT);
    assertEquals(bench.commands.written, wire("EVAL", LEAVE.source, ...words));
    await bench.reply(NOSCRIPT);
    assertEquals(bench.commands.written, "");
    await bench.close();
  });
}

for (const reply of [":1\r\n", "-NOPERM no\r\n", "-BUSY no\r\n", "-ERR no\r\n", "*0\r\n"]) {
  Deno.test(`RedisNode.leaveQueue() is done by ${JSON.stringify(reply)}, and leaves the next reply to its command`, async () => {
    const bench = await new WaitingBench().listening();
    bench.node.leaveQueue(["k"], ENTRY);
    const request = await bench.join();
    assertEquals(bench.commands.written, LEAVING + JOIN);
    await bench.reply(`${reply}:1\r\n`);
    assertEquals(request.answers.map(([outcome]) => outcome), ["granted"]);
    await bench.clock.advance(1_000);
    assertEquals([bench.commands.written, bench.told], ["", []]);
    await bench.close();
  });
}

Deno.test("RedisNode.leaveQueue() makes no connection, and nothing is left to send once there is one", async () => {
  const bench = new Bench();
  bench.node.leaveQueue(["k"], ENTRY);
  await runMicrotasks();
  assertEquals(bench.network.targets, []);
  await bench.open();
  await bench.hangUp();
  bench.node.leaveQueue(["k"], ENTRY);
  assertEquals(await bench.reconnect(), "");
  bench.node.leaveQueue(["k"], ENTRY);
  await bench.hangUp();
  assertEquals(await bench.reconnect(), "");
  await bench.close();
  bench.node.leaveQueue(["k"], ENTRY);
});

for (const [keepsTicket, score] of [[undefined, []], [true, [`${SCORE}`]]] as const) {
  Deno.test(`RedisNode.release() with a ticket ${keepsTicket ? "puts it back" : "takes it out"}, also by the whole script`, async () => {
    const bench = await new WaitingBench().listening();
    const request = Object.assign(new TicketBallot(), { keepsTicket });
    bench.node.release(request, 5);
    await runMicrotasks();
    const words = ["1", "k", "v", ENTRY, ...score];
    assertEquals(bench.commands.written, wire("EVALSHA", RELEASE_QUEUED.sha1, ...words));
    await bench.reply(NOSCRIPT);
    assertEquals(bench.commands.written, wire("EVAL", RELEASE_QUEUED.source, ...words));
    await bench.reply(":1\r\n");
    assertEquals(request.answers, [["granted", 5, bench.clock.monotonicMs()]]);
    await bench.close();
  });
}

Deno.test("RedisNode.release() with a ticket that is sent again tells nothing of the line", async () => {
  const bench = await new WaitingBench().listening();
  const request = Object.assign(new TicketBallot(), { maybeSet: 1 });
  bench.node.release(request, 0);
  await runMicrotasks();
  await bench.reply("-BUSY no\r\n");
  await bench.clock.advance(BUSY_DELAY_MS);
  await runMicrotasks();
  assertEquals(bench.commands.written, laterRelease());
  await bench.close();
});

// Listening

Deno.test("RedisNode.subscribe() connects once more, and tells of wake-ups in its seat", async () => {
  const bench = await new WaitingBench().begin();
  assertEquals(bench.network.last.written, "");
  assertEquals(bench.network.transports.map(({ closed }) => closed), [false, false]);
  await bench.reply(HEARD);
  await bench.answer(wakeMessage(ENTRY));
  assertEquals(bench.told, [["listening", 3], ["first", 3, ENTRY]]);
  assertEquals(bench.events, []); // the observer hears of the connection for commands alone
  await bench.close();
});

Deno.test("RedisNode.subscribe() goes on with the next connection for commands where one broke", async () => {
  const bench = await new WaitingBench().begin();
  bench.commands.end();
  await runMicrotasks();
  assertEquals(bench.told, [["deaf", 3]]);
  await bench.clock.advance(RECONNECT_MS);
  assertEquals(bench.network.last.written, PROBE);
  await bench.answer(HEARD);
  assertEquals(bench.told.slice(1), [["listening", 3]]);
  await bench.close();
});

Deno.test("RedisNode.subscribe() called again does nothing", async () => {
  const bench = await new WaitingBench().listening();
  const silent = {
    id: "x",
    onSubscribed() {},
    onUnsubscribed() {},
    onUnsupported() {},
    onReleased() {},
  };
  bench.node.subscribe(silent, 0);
  await runMicrotasks();
  await bench.answer(wakeMessage(ENTRY));
  assertEquals(bench.network.targets.length, 2);
  assertEquals(bench.told, [["first", 3, ENTRY]]);
  await bench.close();
});

Deno.test("RedisNode.unsubscribe() ends what listen() began, and the node serves on", async () => {
  const bench = await new WaitingBench().listening();
  bench.node.unsubscribe();
  const request = await bench.join();
  assertEquals(bench.commands.written, SET);
  await bench.reply("+OK\r\n");
  assertEquals(request.answers.map(([outcome]) => outcome), ["granted"]);
  const closed = bench.network.transports.map((transport) => transport.closed);
  assertEquals([closed, bench.told], [[false, true], []]);
  await bench.close();
});

Deno.test("RedisNode.close() closes the ear too", async () => {
  const bench = await new WaitingBench().listening();
  await advanceUntil(bench.clock, bench.node.close());
  assertEquals(bench.network.transports.map(({ closed }) => closed), [true, true]);
  assertEquals(bench.told, []);
  await bench.close();
});
