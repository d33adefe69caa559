import { assertEquals } from "@std/assert";
import type { QuorumRequest } from "../../../src/quorum/quorum_node.ts";
import { ACQUIRE_OR_WAIT } from "../../../src/redis_node/scripts/acquire.ts";
import { CREATED_LUA } from "../../../src/redis_node/restart_guard.ts";
import { EXTEND } from "../../../src/redis_node/scripts/extend.ts";
import { FakeRequest, SCORE, TICKET_ID, ticketOf } from "../../support/fake_request.ts";
import { wire } from "../../support/fake_transport.ts";
import { type NodeBench, test, wholeRelease } from "../../support/redis_node_bench.ts";
import { NAME } from "../../support/stream_bench.ts";

const GUARD_MS = 60_000;
/** The node's clock, in milliseconds. */
const TIME_MS = 1_700_000_000_000;
const SET = wire("SET", "k", "v", "NX", "PX", "1000");
const INFO = wire("INFO", "server");
const AGE = wire("EVAL", CREATED_LUA, "1", "hasp:born");
const EXTENSION = ["1", "k", "v", "1000"];
/** The replies about a marker that is old, and one that is missing. */
const [OLD, MISSING] = [age(GUARD_MS), age(0)];
/** The reply to INFO of a server that runs for long. */
const UP = uptime(3_600);

/** The reply about a marker that is so old. */
function age(ms: number): string {
  return `*2\r\n:${ms}\r\n:${TIME_MS}\r\n`;
}

function bulk(text: string): string {
  return `$${text.length}\r\n${text}\r\n`;
}

/** The reply to `INFO` of a server with that uptime. */
function uptime(seconds: number | string, runId = "one"): string {
  return bulk(`# Server\r\nrun_id:${runId}\r\nuptime_in_seconds:${seconds}\r\n`);
}

/** Asks a node with the guard on, and returns the request. */
function acquire(bench: NodeBench, parts: Partial<QuorumRequest> = {}, index = 5) {
  return bench.send("acquire", new FakeRequest("k", { guardMs: GUARD_MS, ...parts }), index);
}

/** Asks a node with the guard on, answers, and returns the outcome. */
async function outcome(bench: NodeBench, replies: string, parts?: Partial<QuorumRequest>) {
  const request = await acquire(bench, parts);
  await bench.answer(replies);
  return request.outcomes.join();
}

test.queueing("RedisNode guards extensions and requests with a ticket, too", async (bench) => {
  bench.transport.writes.length = 0;
  const extension = await bench.send("extend", new FakeRequest("k", { guardMs: GUARD_MS }));
  assertEquals(bench.written, INFO + wire("EVALSHA", EXTEND.sha1, ...EXTENSION) + AGE);
  await bench.answer(UP + ":1\r\n" + MISSING);
  assertEquals(extension.outcomes, ["quarantined"]);
  const ticket = ticketOf();
  const request = await acquire(bench, { ticket });
  const words = [...EXTENSION, "", TICKET_ID, `${SCORE}`, ""];
  assertEquals(bench.written, wire("EVALSHA", ACQUIRE_OR_WAIT.sha1, ...words) + AGE);
  await bench.answer(":1\r\n" + age(0));
  assertEquals(request.outcomes, ["quarantined"]);
  const queued = "*8\r\n:500\r\n:0\r\n:1\r\n:1\r\n:1\r\n:0\r\n$0\r\n\r\n:0\r\n";
  assertEquals(await outcome(bench, queued + age(0), { ticket }), "queued");
});

for (
  const [what, replies, expected, event] of [
    ["runs for less than the guard", uptime(59) + "+OK\r\n" + OLD, "quarantined", "restarted 2000"],
    [
      "may run for a moment less than the guard",
      uptime(60) + "+OK\r\n" + OLD,
      "quarantined",
      "restarted 1000",
    ],
    ["runs for longer than the guard", uptime(61) + "+OK\r\n" + OLD, "granted"],
    [
      "had its clock set back below its start",
      uptime(-59) + "+OK\r\n" + OLD,
      "quarantined",
      "restarted 61000",
    ],
    [
      "sends an uptime that is not a number",
      uptime("soon") + "+OK\r\n" + OLD,
      "quarantined",
      "restarted 61000",
    ],
    ["sends an empty uptime", uptime("") + "+OK\r\n" + OLD, "quarantined", "restarted 61000"],
    ["sends no uptime", bulk("# Server\r\n") + "+OK\r\n" + OLD, "granted"],
    ["sends another field", bulk("process_uptime_in_seconds:5\r\n") + "+OK\r\n" + OLD, "granted"],
    ["has no marker", UP + "+OK\r\n" + MISSING, "quarantined", "emptied 60000"],
    ["has a young marker", UP + "+OK\r\n" + age(59_999), "quarantined", "emptied 1"],
    ["has a marker of this moment", UP + "+OK\r\n" + age(0), "quarantined", "emptied 60000"],
    [
      "was restarted, and emptied later",
      uptime(41) + "+OK\r\n" + age(20_000),
      "quarantined",
      "emptied 40000",
    ],
    [
      "was emptied, and restarted later",
      uptime(21) + "+OK\r\n" + age(40_000),
      "quarantined",
      "restarted 40000",
    ],
    ["has a marker of the future", UP + "+OK\r\n" + age(-1), "failed"],
    ["has a marker of another type", UP + "+OK\r\n-WRONGTYPE no\r\n", "failed"],
    ["does not let its marker be read or set", UP + "+OK\r\n-NOPERM no\r\n", "failed"],
    ["sends something else", UP + "+OK\r\n:1\r\n", "failed"],
    ["sends no time", UP + "+OK\r\n*1\r\n:1\r\n", "failed"],
    ["sends texts", UP + "+OK\r\n*2\r\n$1\r\n1\r\n$1\r\n1\r\n", "failed"],
    ["denies, and is young", uptime(1) + "$-1\r\n" + MISSING, "denied"],
    ["refuses INFO", "-NOPERM no\r\n+OK\r\n" + OLD, "granted"],
    [
      "refuses INFO, and is young",
      "-NOPERM no\r\n+OK\r\n" + age(1),
      "quarantined",
      "emptied 59999",
    ],
    ["knows no INFO", "-ERR unknown command\r\n+OK\r\n" + OLD, "granted"],
    ["is too busy for INFO", "-BUSY script\r\n+OK\r\n" + OLD, "quarantined", "restarted 60000"],
    ["fails", UP + "-OOM no\r\n" + OLD, "failed"],
  ] as const
) {
  test.opened(`RedisNode with the guard on a server that ${what}: ${expected}`, async (bench) => {
    assertEquals(await outcome(bench, replies), expected);
    assertEquals(bench.events, event ? [`${NAME} ${event}`] : []);
    assertEquals(bench.written, "");
  });
}

test.opened("RedisNode asks a server again for the uptime that was too busy", async (bench) => {
  await outcome(bench, "-BUSY script\r\n+OK\r\n" + OLD);
  const request = await acquire(bench);
  assertEquals(bench.written, INFO + SET + AGE);
  await bench.answer(UP + "+OK\r\n" + OLD);
  assertEquals(request.outcomes, ["granted"]);
});

for (
  const [what, reply] of [
    ["is too busy for INFO", "-BUSY script\r\n"],
    ["loads its data", "-LOADING data\r\n"],
    ["refuses INFO", "-NOPERM no\r\n"],
    ["has neither uptime nor run id", bulk("# Server\r\n")],
  ] as const
) {
  test.opened(`RedisNode takes a server that ${what} on a further connection for just restarted`, async (bench) => {
    assertEquals(await outcome(bench, UP + "+OK\r\n" + OLD), "granted");
    for (let times = 0; times < 2; times++) {
      await bench.hangUp();
      assertEquals(await bench.reconnect(), INFO + AGE);
      assertEquals(await outcome(bench, reply + OLD + "+OK\r\n" + OLD), "quarantined");
    }
    await bench.hangUp();
    assertEquals(await bench.reconnect(), INFO + AGE);
    assertEquals(await outcome(bench, UP + OLD + "+OK\r\n" + OLD), "granted");
  });
}

test.opened("RedisNode asks again on every connection, and keeps out a server whose run id has changed", async (bench) => {
  await outcome(bench, UP + "+OK\r\n" + OLD);
  for (
    const [reply, expected] of [
      [uptime(3_600, "one"), "granted"],
      [uptime(3_600, "two"), "quarantined"],
      [uptime(3_600, "two"), "granted"],
      [uptime(0, "two"), "quarantined"],
    ]
  ) {
    await bench.hangUp();
    assertEquals(await bench.reconnect(), INFO + AGE);
    assertEquals(await outcome(bench, reply + OLD + "+OK\r\n" + OLD), expected);
  }
});

test.opened("RedisNode whose connection breaks behind the grant fails, and takes the key back", async (bench) => {
  const request = await acquire(bench);
  await bench.answer(UP + "+OK\r\n");
  await bench.hangUp();
  assertEquals(request.outcomes, ["failed"]);
  assertEquals(request.unsent, false);
  bench.release(request, 5);
  assertEquals(await bench.reconnect(), INFO + AGE + wholeRelease());
});

test.opened("RedisNode says which key is not a marker", async (bench) => {
  const request = await acquire(bench);
  await bench.answer(UP + "+OK\r\n" + age(-1));
  const why = "it has no time in the past under its key 'hasp:born'";
  assertEquals(request.errors[0].message, `Cannot determine the age of ${NAME}: ${why}`);
});

test.opened("RedisNode reports each cause of a quarantine once, also if its time is read a little differently", async (bench) => {
  await outcome(bench, uptime(50) + "+OK\r\n" + OLD);
  await outcome(bench, "+OK\r\n" + OLD);
  await bench.advance(5_000);
  await outcome(bench, "+OK\r\n" + age(0));
  await outcome(bench, "+OK\r\n" + age(3));
  await bench.advance(1_900);
  await outcome(bench, "+OK\r\n" + age(0));
  await bench.advance(101);
  await outcome(bench, "+OK\r\n" + age(0));
  const reasons = ["restarted 11000", "emptied 60000", "emptied 60000"];
  assertEquals(bench.events, reasons.map((reason) => `${NAME} ${reason}`));
});

test.opened("RedisNode with the guard withholds a count that may be older than its restart, by the node's clock alone", async (bench) => {
  assertEquals(await outcome(bench, uptime(120) + "+OK\r\n" + OLD), "granted");
  // An uptime is a second less than it says, and a counter up to 61 seconds ahead of the clock.
  const floorUs = (TIME_MS - 119_000 + 61_000) * 1_000;
  for (const [count, counted] of [[floorUs - 1, []], [floorUs, [floorUs]]] as const) {
    for (const counterHint of [1, TIME_MS * 1_000, TIME_MS * 2_000]) {
      const request = await acquire(bench, { counterHint });
      await bench.answer(`:${count}\r\n${OLD}`);
      assertEquals(request.answers.map(([outcome, , , ...count]) => [outcome, ...count]), [
        ["granted", ...counted],
      ]);
      assertEquals(request.countMin, counted.length > 0 ? undefined : floorUs);
    }
  }
});
