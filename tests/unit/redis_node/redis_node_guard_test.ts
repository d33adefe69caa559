import { assertEquals } from "@std/assert";
import type { QuorumRequest } from "../../../src/quorum/quorum_node.ts";
import { ACQUIRE_OR_WAIT } from "../../../src/redis_node/scripts/acquire.ts";
import { STATE_LUA, STATE_SHA1 } from "../../../src/redis_node/restart_guard.ts";
import { EXTEND } from "../../../src/redis_node/scripts/extend.ts";
import { FakeRequest, SCORE, TICKET_ID, ticketOf } from "../../support/fake_request.ts";
import { wire } from "../../support/fake_transport.ts";
import { type NodeBench, test, wholeRelease } from "../../support/redis_node_bench.ts";
import { NAME } from "../../support/stream_bench.ts";

const GUARD_MS = 60_000;
/** The node's clock, in milliseconds. */
const TIME_MS = 1_700_000_000_000;
/** What is asked for behind a command: the state, or, if the uptime is known, the age alone. */
const STATE = wire("EVAL", STATE_LUA, "1", "hasp:born", "uptime");
const AGE = wire("EVALSHA", STATE_SHA1, "1", "hasp:born");
const EXTENSION = ["1", "k", "v", "1000"];
/** The replies of a server that runs for long, with an old marker and without one. */
const [OLD, MISSING] = [state(GUARD_MS), state(0)];

/** The reply about a server with a marker that is so old, and that runs for so long. */
function state(ageMs: number, uptimeS = 3_600, runId = 1): string {
  return `*4\r\n:${ageMs}\r\n:${TIME_MS}\r\n:${uptimeS}\r\n:${runId}\r\n`;
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
  assertEquals(bench.written, wire("EVALSHA", EXTEND.sha1, ...EXTENSION) + STATE);
  await bench.answer(":1\r\n" + MISSING);
  assertEquals(extension.outcomes, ["quarantined"]);
  const ticket = ticketOf();
  const request = await acquire(bench, { ticket });
  const words = [...EXTENSION, "", TICKET_ID, `${SCORE}`];
  assertEquals(bench.written, wire("EVALSHA", ACQUIRE_OR_WAIT.sha1, ...words) + AGE);
  await bench.answer(":1\r\n" + MISSING);
  assertEquals(request.outcomes, ["quarantined"]);
  const queued = "*8\r\n:500\r\n:0\r\n:1\r\n:1\r\n:1\r\n:0\r\n$0\r\n\r\n:0\r\n";
  assertEquals(await outcome(bench, queued + MISSING, { ticket }), "queued");
});

test.queueing("RedisNode guards a request that it sends again because the server has forgotten its script", async (bench) => {
  const extension = await bench.send("extend", new FakeRequest("k", { guardMs: GUARD_MS }));
  bench.transport.writes.length = 0;
  await bench.answer("-NOSCRIPT no\r\n" + OLD);
  assertEquals(bench.written, wire("EVAL", EXTEND.source, ...EXTENSION) + STATE);
  await bench.answer(":1\r\n" + MISSING);
  assertEquals(extension.outcomes, ["quarantined"]);
});

test.opened("RedisNode with the guard on counts no denial of a node in quarantine: nobody may hold the key", async (bench) => {
  assertEquals(await outcome(bench, "$-1\r\n" + MISSING), "quarantined");
  assertEquals(await outcome(bench, "$-1\r\n" + OLD), "denied");
  const pool = { keys: ["k", "l"], place: 0, free: [] };
  assertEquals(await outcome(bench, "*1\r\n:1\r\n" + OLD, { pool }), "denied"); // 1 is no counter
});

for (
  const [what, replies, expected, event] of [
    ["runs for less than the guard", state(GUARD_MS, 59), "quarantined", "restarted 2000"],
    ["may run for a moment less", state(GUARD_MS, 60), "quarantined", "restarted 1000"],
    ["runs for longer than the guard", state(GUARD_MS, 61), "granted"],
    ["has no uptime", state(GUARD_MS, 0), "quarantined", "restarted 61000"],
    ["does not report its uptime", state(GUARD_MS, -1, 0), "granted"],
    ["does not, and is young", state(1, -1, 0), "quarantined", "emptied 59999"],
    ["has no marker", MISSING, "quarantined", "emptied 60000"],
    ["has a young marker", state(59_999), "quarantined", "emptied 1"],
    ["was restarted, and emptied later", state(20_000, 41), "quarantined", "emptied 40000"],
    ["was emptied, and restarted later", state(40_000, 21), "quarantined", "restarted 40000"],
    ["has a marker of the future", state(-1), "failed"],
    ["has a marker of another type", "-WRONGTYPE no\r\n", "failed"],
    ["does not let its marker be read or set", "-NOPERM no\r\n", "failed"],
    ["sends something else", ":1\r\n", "failed"],
    ["sends too little", "*1\r\n:1\r\n", "failed"],
    ["sends texts", "*4\r\n:1\r\n:1\r\n$1\r\n1\r\n:1\r\n", "failed"],
  ] as const
) {
  test.opened(`RedisNode with the guard on a server that ${what}: ${expected}`, async (bench) => {
    assertEquals(await outcome(bench, "+OK\r\n" + replies), expected);
    assertEquals(bench.events, event ? [`${NAME} ${event}`] : []);
    assertEquals(bench.written, "");
  });
}

test.opened("RedisNode with the guard leaves an error as it is, and asks no busy server for its age again", async (bench) => {
  assertEquals(await outcome(bench, "-OOM no\r\n" + MISSING), "failed");
  assertEquals(await outcome(bench, "+OK\r\n-BUSY no\r\n"), "failed");
});

test.opened("RedisNode with the guard takes a server for just restarted whose run id changes or goes, until the guard is over", async (bench) => {
  for (
    const [uptimeS, runId, expected] of [
      [3_600, 1, "granted"],
      [3_600, 2, "quarantined"],
      [3_600, 2, "quarantined"],
      [-1, 0, "quarantined"],
      [-1, 0, "quarantined"],
      [3_600, 2, "quarantined"],
    ] as const
  ) {
    const reply = "+OK\r\n" + state(GUARD_MS, uptimeS, runId);
    assertEquals(await outcome(bench, reply, { guardMs: 5_000 }), expected);
  }
  await bench.advance(5_000);
  const reply = "+OK\r\n" + state(GUARD_MS, 3_600, 2);
  assertEquals(await outcome(bench, reply, { guardMs: 5_000 }), "granted");
});

test.opened("RedisNode with the guard notices a restart on a connection that stands, as behind a proxy, a second later", async (bench) => {
  assertEquals(await outcome(bench, "+OK\r\n" + OLD), "granted");
  await bench.advance(999);
  const request = await acquire(bench);
  assertEquals(bench.written, wire("SET", "k", "v", "NX", "PX", "1000") + AGE);
  await bench.answer(`+OK\r\n*2\r\n:${GUARD_MS}\r\n:${TIME_MS}\r\n`);
  assertEquals(request.outcomes, ["granted"]);
  await bench.advance(1);
  const later = await acquire(bench);
  assertEquals(bench.written, wire("SET", "k", "v", "NX", "PX", "1000") + STATE);
  await bench.answer("+OK\r\n" + state(GUARD_MS, 1));
  assertEquals(later.outcomes, ["quarantined"]);
});

test.opened("RedisNode with the guard sends the script whole, once, if the server has forgotten it", async (bench) => {
  await outcome(bench, "+OK\r\n" + OLD);
  for (const [reply, expected] of [[OLD, "granted"], ["-NOSCRIPT no\r\n", "failed"]]) {
    const request = await acquire(bench);
    await bench.answer("+OK\r\n-NOSCRIPT no\r\n");
    assertEquals([bench.written, request.outcomes], [STATE, []]);
    await bench.answer(reply);
    assertEquals(request.outcomes, [expected]);
  }
});

test.opened("RedisNode with the guard is not misled by a clock that was set ahead after it has read the uptime", async (bench) => {
  assertEquals(await outcome(bench, "+OK\r\n" + state(GUARD_MS, 10)), "quarantined");
  assertEquals(await outcome(bench, "+OK\r\n" + state(GUARD_MS, 3_600)), "quarantined");
});

test.opened("RedisNode with the guard has the marker set as soon as a connection is made", async (bench) => {
  await outcome(bench, "+OK\r\n" + OLD);
  await bench.hangUp();
  assertEquals(await bench.reconnect(), STATE);
  await bench.answer(state(GUARD_MS, 1));
  assertEquals(await outcome(bench, "+OK\r\n" + OLD), "quarantined"); // as of the reply before
});

test.opened("RedisNode whose connection breaks behind the grant fails, and takes the key back", async (bench) => {
  const request = await acquire(bench);
  await bench.answer("+OK\r\n");
  await bench.hangUp();
  assertEquals(request.outcomes, ["failed"]);
  assertEquals(request.unsent, false);
  bench.release(request, 5);
  assertEquals(await bench.reconnect(), STATE + wholeRelease());
});

test.opened("RedisNode says which key is not a marker", async (bench) => {
  const request = await acquire(bench);
  await bench.answer("+OK\r\n" + state(-1));
  const why = "it has no time in the past under its key 'hasp:born'";
  assertEquals(request.errors[0].message, `Cannot determine the age of ${NAME}: ${why}`);
});

test.opened("RedisNode reports each cause of a quarantine once, also if its time is read a little differently", async (bench) => {
  await outcome(bench, "+OK\r\n" + state(GUARD_MS, 50));
  await outcome(bench, "+OK\r\n" + OLD);
  await bench.advance(5_000);
  await outcome(bench, "+OK\r\n" + state(0));
  await outcome(bench, "+OK\r\n" + state(3));
  await bench.advance(1_900);
  await outcome(bench, "+OK\r\n" + state(0));
  await bench.advance(101);
  await outcome(bench, "+OK\r\n" + state(0));
  const reasons = ["restarted 11000", "emptied 60000", "emptied 60000"];
  assertEquals(bench.events, reasons.map((reason) => `${NAME} ${reason}`));
});

for (
  const [than, ageMs, uptimeS, keptMs] of [
    ["its restart", 3_600_000, 120, 119_000], // an uptime is a second less than it says
    ["its keys", GUARD_MS, 120, GUARD_MS],
  ] as const
) {
  test.opened(`RedisNode with the guard withholds a count that may be older than ${than}, by the node's clock alone`, async (bench) => {
    const floorUs = (TIME_MS - keptMs + 61_000) * 1_000; // a counter is that much ahead at most
    for (const [count, counted] of [[floorUs - 1, []], [floorUs, [floorUs]]] as const) {
      for (const counterHint of [1, TIME_MS * 1_000, TIME_MS * 2_000]) {
        const request = await acquire(bench, { counterHint });
        await bench.answer(`:${count}\r\n${state(ageMs, uptimeS)}`);
        const [[outcome, , , ...counts], ...more] = request.answers;
        assertEquals([outcome, counts, more], ["granted", counted, []]);
        assertEquals(request.countMin, counted.length > 0 ? undefined : floorUs);
      }
    }
  });
}
