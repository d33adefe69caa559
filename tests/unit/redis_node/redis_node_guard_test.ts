import { assertEquals } from "@std/assert";
import { parseAddress } from "../../../src/redis/address.ts";
import { RedisNode } from "../../../src/redis_node/redis_node.ts";
import { redisServer } from "../../../src/redis_node/redis_server.ts";
import { ACQUIRE_OR_WAIT } from "../../../src/redis_node/scripts/acquire.ts";
import { CREATED } from "../../../src/redis_node/scripts/creation.ts";
import { EXTEND } from "../../../src/redis_node/scripts/extend.ts";
import { FakeRequest } from "../../support/fake_request.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { wire } from "../../support/fake_transport.ts";
import {
  Bench,
  ENTRY,
  FencedBallot,
  leftover,
  NAME,
  NOSCRIPT,
  SCORE,
  TicketBallot,
  WaitingBench,
} from "../../support/redis_node_bench.ts";

const GUARD_MS = 60_000;
/** The node's clock, in milliseconds. */
const TIME_MS = 1_700_000_000_000;
const SET = wire("SET", "k", "v", "NX", "PX", "1000");
const INFO = wire("INFO", "server");
const AGE = wire("GET", "hasp:born") + wire("TIME");
const SET_MARKER = wire("EVAL", CREATED.source, "1", "hasp:born");
/** The reply to TIME. */
const TIME = "*2\r\n$10\r\n1700000000\r\n$3\r\n999\r\n";
/** The replies about a marker that is old, and one that is missing. */
const OLD = age(GUARD_MS), NONE = `$-1\r\n${TIME}`;

/** The replies about a marker that is so old. */
function age(ms: number): string {
  return bulk(`${TIME_MS - ms}`) + TIME;
}

function bulk(text: string): string {
  return `$${text.length}\r\n${text}\r\n`;
}

function guarded<B extends { guardMs: number }>(request: B): B {
  request.guardMs = GUARD_MS;
  return request;
}

/** The reply to `INFO` of a server that runs for so long. */
function uptime(seconds: number | string, runId = "one"): string {
  return bulk(`# Server\r\nrun_id:${runId}\r\nuptime_in_seconds:${seconds}\r\n`);
}

/** A node that was asked with the guard on for the first time, and has its connection. */
async function asked(): Promise<{ bench: Bench; request: FakeRequest }> {
  const bench = new Bench();
  await bench.open();
  const request = bench.ask("acquire", guarded(new FakeRequest()), 5);
  await runMicrotasks();
  return { bench, request };
}

/** A node whose uptime is known to be long. */
async function ready(): Promise<Bench> {
  const { bench } = await asked();
  await bench.answer(uptime(3_600) + "+OK\r\n" + OLD);
  bench.network.last.writes.length = 0;
  return bench;
}

function outcomes(request: FakeRequest): string[] {
  return request.answers.map(([outcome]) => outcome);
}

Deno.test("RedisNode without the guard sends what it would, on reconnecting too", async () => {
  const bench = new Bench();
  bench.ask("acquire");
  await runMicrotasks();
  assertEquals(bench.network.last.written, SET);
  await bench.answer("+OK\r\n");
  await bench.hangUp();
  assertEquals(await bench.reconnect(), "");
  await bench.close();
});

Deno.test("RedisNode with the guard asks for the uptime ahead of the first command, and for the age behind each", async () => {
  const { bench, request } = await asked();
  assertEquals(bench.network.last.written, INFO + SET + AGE);
  assertEquals(bench.network.last.writes.length, 1);
  await bench.answer(uptime(3_600) + "+OK\r\n");
  assertEquals(request.answers, []);
  await bench.answer(OLD);
  assertEquals(request.answers, [["granted", 5, bench.clock.monotonicMs()]]);
  bench.ask("acquire", guarded(new FakeRequest()));
  await runMicrotasks();
  assertEquals(bench.network.last.written, SET + AGE);
  await bench.close();
});

Deno.test("RedisNode asks for nothing more where a release is guarded or a call is not", async () => {
  const bench = await ready();
  bench.release(guarded(new FakeRequest()));
  await runMicrotasks();
  await bench.answer(":1\r\n");
  bench.ask("acquire");
  await runMicrotasks();
  assertEquals(bench.network.last.written, SET);
  await bench.close();
});

Deno.test("RedisNode guards extensions, too", async () => {
  const bench = await ready();
  const request = bench.ask("extend", guarded(new FakeRequest()));
  await runMicrotasks();
  const extend = wire("EVALSHA", EXTEND.sha1, "1", "k", "v", "1000");
  assertEquals(bench.network.last.written, extend + AGE);
  await bench.answer(":1\r\n" + NONE);
  assertEquals(outcomes(request), ["quarantined"]);
  await bench.close();
});

for (
  const [what, replies, outcome, events] of [
    ["runs for less than the guard", uptime(59) + "+OK\r\n" + OLD, "quarantined", 1],
    ["may run for a moment less than the guard", uptime(60) + "+OK\r\n" + OLD, "quarantined", 1],
    ["runs for longer than the guard", uptime(61) + "+OK\r\n" + OLD, "granted", 0],
    ["had its clock set back below its start", uptime(-59) + "+OK\r\n" + OLD, "quarantined", 1],
    ["sends an uptime that is no number", uptime("soon") + "+OK\r\n" + OLD, "quarantined", 1],
    ["sends no uptime", bulk("# Server\r\n") + "+OK\r\n" + OLD, "granted", 0],
    ["has no marker", uptime(99) + "+OK\r\n" + NONE, "quarantined", 1],
    ["has a young marker", uptime(99) + "+OK\r\n" + age(59_999), "quarantined", 1],
    ["has a marker of this moment", uptime(99) + "+OK\r\n" + age(0), "quarantined", 1],
    ["has a marker of the future", uptime(99) + "+OK\r\n" + age(-1), "failed", 0],
    ["has another's lock for a marker", uptime(99) + "+OK\r\n" + bulk("abc") + TIME, "failed", 0],
    ["has an empty marker", uptime(99) + "+OK\r\n" + bulk("") + TIME, "failed", 0],
    ["denies, and is young", uptime(1) + "$-1\r\n" + NONE, "denied", 0],
    ["may not tell its uptime", "-NOPERM no\r\n+OK\r\n" + OLD, "granted", 0],
    ["may not tell its uptime, and is young", "-NOPERM no\r\n+OK\r\n" + age(1), "quarantined", 1],
    ["knows no INFO", "-ERR unknown command\r\n+OK\r\n" + OLD, "granted", 0],
    ["is too busy to tell its uptime", "-BUSY script\r\n+OK\r\n" + OLD, "failed", 0],
    ["does not let its marker be read", uptime(99) + "+OK\r\n-NOPERM no\r\n" + TIME, "failed", 0],
    [
      "does not let its clock be read",
      uptime(99) + "+OK\r\n$1\r\n1\r\n-NOPERM no\r\n",
      "failed",
      0,
    ],
    ["has a marker of another type", uptime(99) + "+OK\r\n-WRONGTYPE no\r\n" + TIME, "failed", 0],
    ["sends no time", uptime(99) + "+OK\r\n$1\r\n1\r\n$1\r\n9\r\n", "failed", 0],
    [
      "sends a time that is no number",
      uptime(99) + "+OK\r\n$1\r\n1\r\n*2\r\n$1\r\nx\r\n$1\r\n0\r\n",
      "failed",
      0,
    ],
    ["fails", uptime(99) + "-OOM no\r\n" + OLD, "failed", 0],
  ] as const
) {
  Deno.test(`RedisNode with the guard on a server that ${what}: ${outcome}`, async () => {
    const { bench, request } = await asked();
    await bench.answer(replies);
    const reported = bench.events.filter((event) => event !== `${NAME} connected`);
    assertEquals([outcomes(request), reported.length], [[outcome], events]);
    await bench.close();
  });
}

Deno.test("RedisNode asks a server again for the uptime that was too busy", async () => {
  const { bench } = await asked();
  await bench.answer("-BUSY script\r\n+OK\r\n" + OLD);
  bench.ask("acquire", guarded(new FakeRequest()));
  await runMicrotasks();
  assertEquals(bench.network.last.written, INFO + SET + AGE);
  await bench.close();
});

Deno.test("RedisNode keeps the time of the restart while it is connected", async () => {
  const { bench } = await asked();
  await bench.answer(uptime(41) + "+OK\r\n" + OLD);
  for (const [waitMs, outcome] of [[19_999, "quarantined"], [1, "granted"]] as const) {
    await bench.clock.advance(waitMs);
    const request = bench.ask("acquire", guarded(new FakeRequest()));
    await runMicrotasks();
    await bench.answer("+OK\r\n" + OLD);
    assertEquals(outcomes(request), [outcome]);
  }
  await bench.close();
});

Deno.test("RedisNode asks again on every connection, as soon as it is there", async () => {
  const bench = await ready();
  await bench.hangUp();
  assertEquals(await bench.reconnect(), INFO + AGE);
  const request = bench.ask("acquire", guarded(new FakeRequest()));
  await runMicrotasks();
  await bench.answer(uptime(0) + OLD + "+OK\r\n" + OLD);
  assertEquals(outcomes(request), ["quarantined"]);
  await bench.close();
});

Deno.test("RedisNode whose connection breaks behind the grant fails, and takes the key back", async () => {
  const { bench, request } = await asked();
  await bench.answer(uptime(3_600) + "+OK\r\n");
  await bench.hangUp();
  assertEquals(outcomes(request), ["failed"]);
  bench.ask("release", request, 5);
  assertEquals(await bench.reconnect(), INFO + AGE + leftover());
  await bench.close();
});

Deno.test("RedisNode whose connection breaks ahead of the grant fails once", async () => {
  const { bench, request } = await asked();
  await bench.hangUp();
  assertEquals(outcomes(request), ["failed"]);
  const later = bench.ask("acquire", guarded(new FakeRequest()));
  assertEquals(outcomes(later), ["failed"]);
  await bench.close();
});

Deno.test("RedisNode has a missing marker set by the server, with its own time", async () => {
  const { bench, request } = await asked();
  await bench.answer(uptime(3_600) + "+OK\r\n" + NONE);
  assertEquals([outcomes(request), bench.network.last.written], [["quarantined"], SET_MARKER]);
  const next = bench.ask("acquire", guarded(new FakeRequest()));
  await runMicrotasks();
  await bench.answer(":1\r\n+OK\r\n" + age(5));
  assertEquals([outcomes(next), bench.network.last.written], [["quarantined"], ""]);
  await bench.close();
});

for (
  const [what, replies] of [
    ["of an application", bulk("abc") + TIME],
    ["of the future", age(-1)],
    ["of another type", `-WRONGTYPE no\r\n${TIME}`],
  ]
) {
  Deno.test(`RedisNode leaves a marker ${what} as it is`, async () => {
    const { bench, request } = await asked();
    await bench.answer(uptime(3_600) + "+OK\r\n" + replies);
    assertEquals([outcomes(request), bench.network.last.written], [["failed"], ""]);
    await bench.close();
  });
}

Deno.test("RedisNode fails with the reason why the marker cannot be set, once it is known", async () => {
  const { bench } = await asked();
  await bench.answer(uptime(3_600) + "+OK\r\n" + NONE);
  const request = bench.ask("acquire", guarded(new FakeRequest()), 4);
  await runMicrotasks();
  await bench.answer("-NOPERM no EVAL\r\n+OK\r\n" + NONE);
  assertEquals(request.answers, [["failed", 4, "NOPERM no EVAL"]]);
  await bench.close();
});

Deno.test("RedisNode says which key is no marker", async () => {
  const { bench, request } = await asked();
  await bench.answer(uptime(3_600) + "+OK\r\n" + age(-1));
  assertEquals(
    request.errors[0].message,
    "Cannot tell the age of redis://h:6379: it has no time in the past under its key 'hasp:born'",
  );
  await bench.close();
});

Deno.test("RedisNode keeps out a server whose run id has changed, whatever its uptime", async () => {
  const bench = await ready();
  for (const [runId, outcome] of [["one", "granted"], ["two", "quarantined"], ["two", "granted"]]) {
    await bench.hangUp();
    await bench.reconnect();
    const request = bench.ask("acquire", guarded(new FakeRequest()));
    await runMicrotasks();
    await bench.answer(uptime(3_600, runId) + OLD + "+OK\r\n" + OLD);
    assertEquals(outcomes(request), [outcome]);
  }
  await bench.close();
});

Deno.test("RedisNode asks for the age anew behind a script that it sends again", async () => {
  const bench = await ready();
  const request = bench.ask("extend", guarded(new FakeRequest()));
  await runMicrotasks();
  await bench.answer(NOSCRIPT + OLD);
  const extend = wire("EVAL", EXTEND.source, "1", "k", "v", "1000");
  assertEquals(bench.network.last.written, extend + AGE);
  await bench.answer(":1\r\n");
  assertEquals(request.answers, []);
  await bench.answer(age(5)); // emptied between the two
  assertEquals(outcomes(request), ["quarantined"]);
  await bench.close();
});

Deno.test("RedisNode guards what is asked with a ticket", async () => {
  const bench = await new WaitingBench().listening();
  const request = guarded(new TicketBallot());
  bench.commands.writes.length = 0;
  await bench.join(request);
  const join = wire("EVALSHA", ACQUIRE_OR_WAIT.sha1, "1", "k", "v", "1000", ENTRY, "0", `${SCORE}`);
  assertEquals(bench.commands.written, INFO + join + AGE);
  await bench.reply(uptime(3_600) + ":1\r\n" + age(0));
  assertEquals(outcomes(request), ["quarantined"]);
  const next = await bench.join(guarded(new TicketBallot()));
  await bench.reply("*5\r\n:500\r\n:0\r\n:1\r\n:1\r\n:1\r\n" + age(0));
  assertEquals([outcomes(next), next.queued.length], [[], 1]);
  await bench.close();
});

Deno.test("RedisNode tells each cause of a quarantine once", async () => {
  const told: unknown[] = [];
  const bench = new Bench();
  const { network, wheel } = bench;
  const options = { connect: network.connect, connectTimeoutMs: 1_000, stallTimeoutMs: Infinity };
  const node = new RedisNode(
    redisServer(parseAddress("redis://h"), { ...options, tls: {}, clientName: undefined }, wheel),
    { onQuarantined: (name, { reason, remainingMs }) => told.push([name, reason, remainingMs]) },
  );
  const acquire = async (replies: string) => {
    node.acquire(guarded(new FakeRequest()), 0);
    await runMicrotasks();
    await bench.answer(replies);
  };
  await acquire(uptime(50) + "+OK\r\n" + OLD);
  await acquire("+OK\r\n" + OLD);
  await bench.clock.advance(5_000);
  await acquire("+OK\r\n" + age(0));
  await acquire("+OK\r\n" + age(3));
  assertEquals(told, [
    ["redis://h:6379", "restarted", 11_000],
    ["redis://h:6379", "emptied", 60_000],
  ]);
  await node.close();
  await bench.close();
});

Deno.test("RedisNode with the guard withholds a count that may be older than its restart, by the node's clock alone", async () => {
  const { bench, request } = await asked();
  await bench.answer(uptime(120) + "+OK\r\n" + OLD);
  assertEquals(outcomes(request), ["granted"]);
  // An uptime is a second less than it says, and a counter up to 61 seconds ahead of the clock.
  const floorUs = (TIME_MS - 119_000 + 61_000) * 1_000;
  for (const [count, counted] of [[floorUs - 1, undefined], [floorUs, floorUs]] as const) {
    for (const hint of [1, TIME_MS * 1_000, TIME_MS * 2_000]) {
      const fenced = Object.assign(guarded(new FencedBallot()), { counterFloor: hint });
      bench.ask("acquire", fenced, 1);
      await runMicrotasks();
      await bench.answer(`:${count}\r\n${OLD}`);
      assertEquals([outcomes(fenced), fenced.counts], [["granted"], [counted]]);
      assertEquals(fenced.counterFloorNext, counted === undefined ? floorUs : undefined);
    }
  }
  await bench.close();
});
