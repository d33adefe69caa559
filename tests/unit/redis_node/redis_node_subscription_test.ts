import { assert, assertEquals } from "@std/assert";
import { ACQUIRE_OR_WAIT } from "../../../src/redis_node/scripts/acquire.ts";
import { ACQUIRE_COUNTED } from "../../../src/redis_node/scripts/fencing.ts";
import { advanceUntil, runMicrotasks } from "../../support/fake_clock.ts";
import { FakeRequest, SCORE, TICKET_ID, ticketOf } from "../../support/fake_request.ts";
import { wire } from "../../support/fake_transport.ts";
import {
  LISTENER_INDEX as INDEX,
  type NodeBench,
  NOSCRIPT,
  PROBE,
  SUBSCRIBED,
  test,
  TIME_REPLY,
  wakeMessage as message,
} from "../../support/redis_node_bench.ts";
import { LOST, NAME, RECONNECT_MS } from "../../support/stream_bench.ts";

const UNRECEIVED_DELAY_MS = 100;
const HEARD_MS_MAX = 2_000;
const SUBSCRIBE = wire("SUBSCRIBE", "hasp:wake:id");
const SET = wire("SET", "k", "v", "NX", "PX", "1000");
const JOIN_WORDS = ["1", "k", "v", "1000", "", TICKET_ID, `${SCORE}`];
const JOIN = wire("EVALSHA", ACQUIRE_OR_WAIT.sha1, ...JOIN_WORDS);
const IS_SUBSCRIBED = ["subscribed", INDEX];
const IS_UNSUBSCRIBED = ["unsubscribed", INDEX];

/** Asks for a lock with a ticket. */
function join(bench: NodeBench, keys: string | string[] = "k", parts = {}): Promise<FakeRequest> {
  bench.transport.writes.length = 0;
  return bench.send("acquire", new FakeRequest(keys, { ticket: ticketOf(), ...parts }), 6);
}

// Beginning

for (const reply of ["-NOPERM no 'time'", "*1\r\n:1", "*2\r\n+now\r\n+then"]) {
  test.subscribed(`RedisNode.subscribe() reports no time if the server replies ${JSON.stringify(reply)} to TIME`, async (bench) => {
    await bench.answer(`${reply}\r\n:1\r\n`);
    assertEquals([bench.notices, bench.readings], [[IS_SUBSCRIBED], [undefined]]);
  });
}

test.subscribed("RedisNode.subscribe() sends its message again each time that the connection for commands was made again", async (bench) => {
  await bench.hangUp();
  assertEquals(bench.notices, [IS_UNSUBSCRIBED]);
  assertEquals(await bench.reconnect(), PROBE);
  await bench.answerProbe();
  await bench.hangUp();
  assertEquals(await bench.reconnect(), PROBE);
  assertEquals(bench.notices, [IS_UNSUBSCRIBED, IS_SUBSCRIBED]);
});

test.listening("RedisNode.subscribe() subscribes again if no message arrives when the connection for commands was made again", async (bench) => {
  for (const heard of [true, false]) {
    await bench.hangUp();
    assertEquals(await bench.reconnect(), PROBE);
    if (heard) await bench.receive(message(""));
    await bench.answerProbe();
    const { closed } = bench.subscriptions.last;
    await bench.advance(HEARD_MS_MAX - 1);
    assertEquals([closed, bench.subscriptions.last.closed], [false, false]);
    await bench.advance(1);
    assertEquals(bench.subscriptions.last.closed, !heard);
  }
  await bench.reconnectSubscription();
  assertEquals(bench.subscriptions.last.writes, [SUBSCRIBE]);
  assertEquals(bench.notices.at(-1), IS_UNSUBSCRIBED);
});

test.listening("RedisNode.subscribe() reports a cut, and begins again on the next subscription", async (bench) => {
  await bench.cutSubscription();
  assertEquals(bench.notices, [IS_UNSUBSCRIBED]);
  await bench.reconnectSubscription();
  assertEquals(bench.subscriptions.last.writes, [SUBSCRIBE]);
  await bench.receive(SUBSCRIBED);
  assertEquals([bench.written, bench.notices.length], [PROBE, 1]);
  await bench.answerProbe();
  await bench.receive(message(TICKET_ID));
  assertEquals(bench.notices.slice(1), [IS_SUBSCRIBED, ["turn", INDEX, TICKET_ID]]);
});

test.subscribed("RedisNode.subscribe() does not count a message that was received before a cut", async (bench) => {
  await bench.cutSubscription();
  await bench.answerProbe();
  assertEquals(bench.notices, [IS_UNSUBSCRIBED]);
  await bench.reconnectSubscription();
  await bench.receive(SUBSCRIBED);
  assertEquals([bench.written, bench.notices], [PROBE, [IS_UNSUBSCRIBED]]);
});

// Messages

test.listening("RedisNode reports messages in their order, and none that is no ticket", async (bench) => {
  const forged = [
    ...["", "id:1 ", `id:${"1".repeat(1_000_000)}!`], // the last in linear time
    ..."id id: id:1++ id:é id:1:x id:1+ id:1- id:1+5:x:1".split(" "),
  ];
  await bench.receive(
    ["id:1", ...forged, "id:a9:50+60", "id:zz-70", "id:1:70"].map(message).join(""),
  );
  assertEquals(bench.notices, [
    ["turn", INDEX, "id:1"],
    ["watch", INDEX, "id:a9:50", 60],
    ["taken", INDEX, "id:zz", 70],
    ["turn", INDEX, "id:1:70"],
  ]);
  assertEquals(bench.written, "");
});

// Refusals

/** Answers three probes in a row with nobody who received them. */
async function reachNobody(bench: NodeBench): Promise<void> {
  for (let unreceived = 1; unreceived < 3; unreceived++) {
    await bench.answerProbe(":0\r\n");
    await bench.advance(UNRECEIVED_DELAY_MS - 1);
    assertEquals(bench.written, "");
    await bench.advance(1);
    assertEquals(bench.written, PROBE);
  }
}

/** Asserts that notifications are unsupported, until ten seconds have passed. */
async function assertUnsupported(bench: NodeBench, error: string): Promise<void> {
  assertEquals(bench.notices.at(-1), ["unsupported", INDEX, error]);
  const { length: known } = bench.notices;
  await bench.advance(4_000);
  const { length } = bench.subscriptions.targets;
  assertEquals([bench.subscriptions.last.closed, bench.written], [true, ""]);
  bench.node.subscribe!(bench, INDEX);
  await runMicrotasks();
  assertEquals([bench.subscriptions.targets.length, bench.notices.length], [length, known]);
  await join(bench);
  assertEquals(bench.written, SET);
  await bench.advance(5_000);
  assertEquals(bench.subscriptions.targets.length, length);
  await bench.advance(1_000);
  assertEquals(bench.subscriptions.targets.length, length + 1);
}

test.subscribed("RedisNode.subscribe() is unsupported if three messages in a row reach nobody, on five subscriptions in a row", async (bench) => {
  for (let times = 1; times <= 5; times++) {
    await reachNobody(bench);
    await bench.answerProbe(":0\r\n");
    if (times === 5) break;
    // the subscription may be dead
    assertEquals(bench.notices, Array(times).fill(IS_UNSUBSCRIBED));
    const { length } = bench.subscriptions.targets;
    while (bench.subscriptions.targets.length === length) await bench.advance(RECONNECT_MS);
    await bench.receive(SUBSCRIBED);
  }
  await assertUnsupported(bench, `${NAME} does not deliver published messages`);
});

test.listening("RedisNode.subscribe() subscribes again after a refusal when the connection for commands was made again", async (bench) => {
  await join(bench);
  await bench.answer("-NOPERM no 'publish'\r\n");
  assertEquals(bench.notices.at(-1), ["unsupported", INDEX, "NOPERM no 'publish'"]);
  await bench.hangUp();
  await bench.reconnect();
  assertEquals(bench.subscriptions.last.writes, [SUBSCRIBE]);
  await bench.receive(SUBSCRIBED);
  assert(bench.written.endsWith(PROBE));
});

for (
  const [what, answers, count] of [["unsupported", true, 5], [
    "not unsupported",
    false,
    12,
  ]] as const
) {
  const meanwhile = answers ? "answers commands" : "hangs";
  test.connected(`RedisNode.subscribe() is ${what} if the server ends ${count} connections in place of an answer, and ${meanwhile} meanwhile`, async (bench) => {
    bench.node.subscribe!(bench, INDEX);
    await runMicrotasks();
    await bench.cutSubscription();
    for (let times = 1; times < count; times++) {
      assertEquals(bench.notices.at(-1), IS_UNSUBSCRIBED);
      const { length } = bench.subscriptions.transports;
      while (bench.subscriptions.transports.length === length) await bench.advance(RECONNECT_MS);
      assertEquals(bench.subscriptions.last.writes, [SUBSCRIBE]);
      await bench.send("acquire", new FakeRequest("k"), 6);
      if (answers) await bench.answer("$-1\r\n");
      await bench.cutSubscription();
    }
    const last = answers ? ["unsupported", INDEX, LOST] : IS_UNSUBSCRIBED;
    assertEquals(bench.notices, [...Array(count - 1).fill(IS_UNSUBSCRIBED), last]);
    await bench.advance(9_000);
    assertEquals(bench.subscriptions.transports.length === count, answers);
  });
}

test("RedisNode.subscribe() subscribes again soon, however often the server refuses its login", async (bench) => {
  bench.use({}, "redis://:secret@h");
  await bench.send("acquire");
  await bench.answer("+OK\r\n+OK\r\n");
  bench.node.subscribe!(bench, INDEX);
  await runMicrotasks();
  const { transports } = bench.subscriptions;
  for (let times = 1; times < 8; times++) {
    assertEquals([transports.length, bench.notices.length], [times, times - 1]);
    await bench.receive("-ERR max number of clients reached\r\n");
    while (transports.length === times) await bench.advance(RECONNECT_MS);
    assertEquals(bench.notices.at(-1), IS_UNSUBSCRIBED);
    await bench.send("acquire");
    await bench.answer("$-1\r\n");
  }
});

test.listening("RedisNode.subscribe() subscribes anew if the next connection leads to another server", async (bench) => {
  await bench.hangUp();
  await bench.reconnect();
  await bench.answerProbe(":0\r\n");
  assertEquals(bench.notices, [IS_UNSUBSCRIBED]);
  await join(bench);
  assertEquals(bench.written, SET); // a server that cannot reach it would drop its ticket
  for (let times = 1; times < 3; times++) {
    await bench.advance(UNRECEIVED_DELAY_MS);
    await bench.answer((times === 1 ? "+OK\r\n" : "") + TIME_REPLY + ":0\r\n");
  }
  await bench.reconnectSubscription();
  assertEquals(bench.subscriptions.last.writes, [SUBSCRIBE]);
  await bench.receive(SUBSCRIBED);
  await bench.answerProbe();
  assertEquals(bench.notices, [IS_UNSUBSCRIBED, IS_UNSUBSCRIBED, IS_SUBSCRIBED]);
});

for (const error of ["NOPERM no access", "ERR unknown command 'PUBLISH'"]) {
  test.subscribed(`RedisNode.subscribe() is unsupported by ${error} to its message`, async (bench) => {
    await bench.answerProbe(`-${error}\r\n`);
    await assertUnsupported(bench, error);
  });

  test.connected(`RedisNode.subscribe() is unsupported by ${error} to SUBSCRIBE, and sends no message`, async (bench) => {
    bench.transport.writes.length = 0;
    bench.node.subscribe!(bench, INDEX);
    await runMicrotasks();
    await bench.receive(`-${error}\r\n`);
    await assertUnsupported(bench, error);
  });
}

test.subscribed("RedisNode.subscribe() goes on trying while the server is busy, however long that takes", async (bench) => {
  for (let replies = 0; replies < 5; replies++) {
    assertEquals(bench.written, PROBE);
    await bench.answerProbe("-BUSY Redis is busy running a script.\r\n");
    await bench.advance(1_000);
  }
  await bench.answerProbe();
  assertEquals(bench.notices, [IS_SUBSCRIBED]);
});

// Closing

for (
  const [state, reply] of [
    ["with a probe under way", ":1\r\n"],
    ["after a probe that reached nobody", ":0\r\n"],
  ]
) {
  test.subscribed(`RedisNode.unsubscribe() ${state} reports nothing more, and leaves the other connection`, async (bench) => {
    if (reply === ":0\r\n") await bench.answerProbe(reply);
    bench.node.unsubscribe();
    if (reply === ":1\r\n") await bench.answerProbe(reply);
    await bench.receive(message(TICKET_ID));
    await bench.advance(10 * UNRECEIVED_DELAY_MS);
    assertEquals([bench.subscriptions.last.closed, bench.transport.closed], [true, false]);
    assertEquals([bench.notices, bench.written, bench.wheel.size], [[], "", 0]);
  });
}

test.connected("RedisNode receives nothing over a subscription that was ended, also if another has begun", async (bench) => {
  bench.transport.writes.length = 0;
  bench.node.subscribe!(bench, INDEX);
  await runMicrotasks();
  const { last: first } = bench.subscriptions;
  bench.node.unsubscribe(); // its SUBSCRIBE is on its way
  bench.node.subscribe!(bench, INDEX);
  await runMicrotasks();
  first.feed(SUBSCRIBED + message(TICKET_ID));
  await runMicrotasks();
  assertEquals([bench.written, bench.notices], ["", []]);
  await bench.receive(SUBSCRIBED);
  assertEquals(bench.written, PROBE);
});

test.listening("RedisNode.close() closes the subscription, too", async (bench) => {
  await advanceUntil(bench.clock, bench.node.close());
  assertEquals([bench.subscriptions.last.closed, bench.notices], [true, []]);
});

// Queues

test.subscribed("RedisNode.acquire() with a ticket only asks for the keys until messages arrive, and after a cut", async (bench) => {
  await join(bench);
  assertEquals(bench.written, SET);
  await bench.answer(`${TIME_REPLY}:1\r\n$-1\r\n`);
  await join(bench);
  assertEquals(bench.written, JOIN);
  await bench.cutSubscription();
  await join(bench);
  assertEquals(bench.written, SET);
});

for (
  const [error, forGood] of [
    ["NOPERM no 'zadd'", true],
    ["ERR unknown command called from script", true],
    ["WRONGTYPE no sorted set", false],
    ["ERR Error running script: WRONGTYPE no sorted set", false],
  ] as const
) {
  for (const first of ["", NOSCRIPT]) {
    test.queueing(`RedisNode.acquire() with a ticket asks for the key alone on ${error}${first && " to the whole script"}, ${forGood ? "and from then on" : "and queues the next time"}`, async (bench) => {
      const request = await join(bench);
      if (first) await bench.answer(first);
      await bench.answer(`-${error}\r\n`);
      assertEquals([bench.written, request.answers], [SET, []]);
      assertEquals(bench.notices, forGood ? [["unsupported", INDEX, error]] : []);
      await bench.answer("$-1\r\n");
      assertEquals(request.answers, [["denied", 6, bench.clock.monotonicMs()]]);
      await join(bench);
      await bench.advance(RECONNECT_MS);
      assertEquals(bench.written, forGood ? SET : JOIN);
      assertEquals([bench.subscriptions.last.closed, bench.notices.length], [
        forGood,
        forGood ? 1 : 0,
      ]);
    });
  }

  test.queueing(`RedisNode.acquire() with a ticket fails on ${error} if it was cancelled, and queues the next time`, async (bench) => {
    const request = await join(bench);
    request.wanted = false;
    await bench.answer(`-${error}\r\n`);
    assertEquals([bench.written, request.answers], ["", [["failed", 6, error]]]);
    await join(bench);
    assertEquals([bench.written, bench.notices], [JOIN, []]);
  });
}

test.queueing("RedisNode.acquire() of several keys asks for them alone if there can be no queue", async (bench) => {
  const request = await join(bench, ["k", "l"]);
  await bench.answer("-NOPERM no\r\n");
  const words = ["2", "k", "l", "v", "1000", ""];
  assertEquals(bench.written, wire("EVALSHA", ACQUIRE_OR_WAIT.sha1, ...words));
  await bench.answer(":1\r\n");
  assertEquals(request.outcomes, ["granted"]);
});

test.queueing("RedisNode.acquire() with a ticket and a token counts all the same if there can be no queue, and keeps its notifications", async (bench) => {
  const counterHint = 77;
  for (const what of ["WRONGTYPE", "ERR user_script:5: WRONGTYPE"]) {
    const request = await join(bench, "k", { counterHint });
    await bench.answer(`-${what} this is no fencing counter: hasp:fence:k\r\n`);
    const words = ["1", "k", "v", "1000", "77"];
    assertEquals(bench.written, wire("EVALSHA", ACQUIRE_COUNTED.sha1, ...words));
    await bench.answer(":78\r\n");
    assertEquals(request.answers, [["granted", 6, bench.clock.monotonicMs(), 78]]);
  }
  assertEquals(bench.notices, []);
});

test.queueing("RedisNode reports once that it is unsupported, and answers all who asked by then", async (bench) => {
  const requests = [await join(bench), await join(bench), await join(bench)];
  await bench.answer("-NOPERM no\r\n".repeat(3));
  assertEquals([bench.written, bench.notices.length], [SET + SET + SET, 1]);
  await bench.answer("+OK\r\n$-1\r\n$-1\r\n");
  assertEquals(requests.flatMap(({ outcomes }) => outcomes), ["granted", "denied", "denied"]);
});
