import { assertEquals } from "@std/assert";
import { parseAddress } from "../../../src/redis/address.ts";
import { RedisNode } from "../../../src/redis_node/redis_node.ts";
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
/** What fenced ballots name. */
const FENCE = new FencedBallot().counterFloor;
const SET = wire("SET", "k", "v", "NX", "PX", "1000");
const INFO = wire("INFO", "server");
const AGE = wire("EVALSHA", CREATED.sha1, "1", "hasp:born");
const AGE_WHOLE = wire("EVAL", CREATED.source, "1", "hasp:born");
/** The reply of a birth key that is old. */
const OLD = `:${GUARD_MS}\r\n`;

function guarded<B extends { guardMs: number }>(request: B): B {
  request.guardMs = GUARD_MS;
  return request;
}

/** The reply to `INFO` of a server that runs for so long. */
function uptime(seconds: number): string {
  const text = `# Server\r\nuptime_in_seconds:${seconds}\r\n`;
  return `$${text.length}\r\n${text}\r\n`;
}

/** A node that was asked with the guard on for the first time, and has its connection. */
async function asked(): Promise<{ bench: Bench; request: FakeRequest }> {
  const bench = new Bench();
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
  await bench.answer(":1\r\n:0\r\n");
  assertEquals(outcomes(request), ["quarantined"]);
  await bench.close();
});

for (
  const [what, replies, outcome, events] of [
    ["runs for less than the guard", uptime(59) + "+OK\r\n" + OLD, "quarantined", 1],
    ["may run for a moment less than the guard", uptime(60) + "+OK\r\n" + OLD, "quarantined", 1],
    ["runs for longer than the guard", uptime(61) + "+OK\r\n" + OLD, "granted", 0],
    ["has no birth key", uptime(99) + "+OK\r\n:0\r\n", "quarantined", 1],
    ["has a young birth key", uptime(99) + "+OK\r\n:59999\r\n", "quarantined", 1],
    ["denies, and is young", uptime(1) + "$-1\r\n:0\r\n", "denied", 0],
    ["may not tell its uptime", "-NOPERM no\r\n+OK\r\n" + OLD, "granted", 0],
    ["may not tell its uptime, and is young", "-NOPERM no\r\n+OK\r\n:1\r\n", "quarantined", 1],
    ["knows no INFO", "-ERR unknown command\r\n+OK\r\n" + OLD, "granted", 0],
    ["is too busy to tell its uptime", "-BUSY script\r\n+OK\r\n" + OLD, "failed", 0],
    ["may not tell its age", uptime(99) + "+OK\r\n-NOPERM no\r\n", "failed", 0],
    ["has another kind of birth key", uptime(99) + "+OK\r\n-WRONGTYPE no\r\n", "failed", 0],
    ["tells no number for its age", uptime(99) + "+OK\r\n$1\r\n9\r\n", "failed", 0],
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

Deno.test("RedisNode sends the script that tells the age where the server does not know it", async () => {
  const { bench, request } = await asked();
  await bench.answer(uptime(3_600) + "+OK\r\n" + NOSCRIPT);
  assertEquals(bench.network.last.written, AGE_WHOLE);
  await bench.answer(OLD);
  assertEquals(outcomes(request), ["granted"]);
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
  await bench.answer(":5\r\n"); // emptied between the two
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
  await bench.reply(uptime(3_600) + ":1\r\n:0\r\n");
  assertEquals(outcomes(request), ["quarantined"]);
  const next = await bench.join(guarded(new TicketBallot()));
  await bench.reply("*5\r\n:500\r\n:0\r\n:1\r\n:1\r\n:1\r\n:0\r\n");
  assertEquals([outcomes(next), next.queued.length], [[], 1]);
  await bench.close();
});

Deno.test("RedisNode tells each cause of a quarantine once", async () => {
  const told: unknown[] = [];
  const bench = new Bench();
  const { network, wheel } = bench;
  const options = { connect: network.connect, connectTimeoutMs: 1_000, stallTimeoutMs: Infinity };
  const node = new RedisNode(
    parseAddress("redis://h"),
    { ...options, tls: {}, clientName: undefined },
    wheel,
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
  await acquire("+OK\r\n:0\r\n");
  await acquire("+OK\r\n:3\r\n");
  assertEquals(told, [
    ["redis://h:6379", "restarted", 11_000],
    ["redis://h:6379", "emptied", 60_000],
  ]);
  await node.close();
  await bench.close();
});

Deno.test("RedisNode with the guard tells no count that is older than its restart, and what it has to be above", async () => {
  const { bench, request } = await asked();
  await bench.answer(uptime(120) + "+OK\r\n" + OLD);
  assertEquals(outcomes(request), ["granted"]);
  const restartedUs = FENCE - 119_000 * 1_000; // an uptime is a second less than it says
  const floorUs = restartedUs + GUARD_MS * 1_000;
  for (const [count, told] of [[floorUs - 1, undefined], [floorUs, floorUs]] as const) {
    const fenced = guarded(new FencedBallot());
    bench.ask("acquire", fenced, 1);
    await runMicrotasks();
    await bench.answer(`:${count}\r\n${OLD}`);
    assertEquals([outcomes(fenced), fenced.counts], [["granted"], [told]]);
    assertEquals(fenced.counterFloorNext, told === undefined ? FENCE : undefined);
  }
  await bench.close();
});
