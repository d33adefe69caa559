import { assertEquals, assertRejects } from "@std/assert";
import type { NodeDiagnosis } from "../../../src/quorum/node_diagnosis.ts";
import { ConnectionError, ReplyError } from "../../../src/redis/errors.ts";
import { eventually } from "../../support/eventually.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { type FakeTransport, wire } from "../../support/fake_transport.ts";
import { Bench, LOST, NOSCRIPT } from "../../support/redis_node_bench.ts";

const TIMEOUT_MS = 1_000;
/** What the fake clock says in the beginning. */
const WALL_S = 1_700_000_000;
const CHANNEL = "hasp:wake:doctor";

const NOPERM = "-NOPERM this user has no permissions\r\n";
const INFO = [
  ...["# Server", "redis_version:7.0.15", "redis_mode:standalone", "run_id:abc"],
  ...["uptime_in_seconds:90", "# Memory", "maxmemory:1048576", "maxmemory_policy:allkeys-lru"],
  ...["# Persistence", "aof_enabled:1", "# Replication", "role:slave", "# Cluster"],
  ...["cluster_enabled:1", ""],
].join("\r\n");
/** What a server answers that refuses nothing. */
const REPLIES = {
  TIME: time(WALL_S, 0),
  INFO: bulk(INFO),
  CONFIG: `*2\r\n${bulk("appendfsync")}${bulk("always")}`,
  EVALSHA: NOSCRIPT,
  PUBLISH: ":0\r\n",
};
const SUBSCRIBED = `*3\r\n${bulk("subscribe")}${bulk(CHANNEL)}:1\r\n`;
const TOLD: NodeDiagnosis = {
  roundTripMs: 0,
  clockOffsetMs: 0,
  version: "7.0.15",
  role: "replica",
  runId: "abc",
  uptimeMs: 90_000,
  clustered: true,
  aofEnabled: true,
  maxmemoryBytes: 1_048_576,
  maxmemoryPolicy: "allkeys-lru",
  appendfsync: "always",
};

function bulk(text: string): string {
  return `$${text.length}\r\n${text}\r\n`;
}

function time(seconds: number, microseconds: number): string {
  return `*2\r\n${bulk(String(seconds))}${bulk(String(microseconds))}`;
}

/** A node that is connected and was asked, and the answer to come. */
async function asked(bench = new Bench()): Promise<{ bench: Bench; told: Promise<NodeDiagnosis> }> {
  const { writes } = await bench.open();
  const before = writes.length;
  const told = bench.node.diagnose(TIMEOUT_MS);
  told.catch(() => {}); // looked at later
  await eventually(() => writes.length > before); // once its module is loaded
  return { bench, told };
}

/** Has the first connection answer as usual but for `changes`, and returns the second one. */
async function listening(
  bench: Bench,
  changes: Partial<typeof REPLIES> = {},
): Promise<FakeTransport> {
  await bench.answer(Object.values({ ...REPLIES, ...changes }).join(""));
  return bench.network.last;
}

/** What is told where the replies are as usual but for `changes`. */
async function toldWith(changes: Partial<typeof REPLIES>): Promise<NodeDiagnosis> {
  const { bench, told } = await asked();
  await listening(bench, changes);
  await bench.answer(SUBSCRIBED);
  const diagnosis = await told;
  await bench.close();
  return diagnosis;
}

Deno.test("RedisNode.diagnose() asks for everything in one piece, and listens on a connection of its own", async () => {
  const { bench, told } = await asked();
  const [own] = bench.network.transports;
  assertEquals(
    own.writes.at(-1),
    [
      wire("TIME"),
      wire("INFO"),
      wire("CONFIG", "GET", "appendfsync"),
      wire("EVALSHA", "f".repeat(40), "0"),
      wire("PUBLISH", CHANNEL, ""),
    ].join(""),
  );
  const other = await listening(bench);
  assertEquals(bench.network.transports, [own, other]);
  assertEquals(other.writes, [wire("SUBSCRIBE", CHANNEL)]);
  await bench.answer(SUBSCRIBED);
  assertEquals(await told, TOLD);
  assertEquals([own.closed, other.closed], [false, true]);
  await runMicrotasks();
  assertEquals(bench.wheel.size, 0);
  await bench.close();
});

for (const command of ["TIME", "INFO", "CONFIG", "EVALSHA", "PUBLISH"] as const) {
  Deno.test(`RedisNode.diagnose() tells the rest where ${command} is refused`, async () => {
    const expected: Record<string, unknown> = { ...TOLD, refused: { [command]: "NOPERM" } };
    if (command === "TIME") delete expected.clockOffsetMs;
    if (command === "CONFIG") delete expected.appendfsync;
    if (command === "INFO") {
      const { roundTripMs, clockOffsetMs, appendfsync } = TOLD;
      Object.assign(expected, { roundTripMs, clockOffsetMs, appendfsync });
      const kept = ["roundTripMs", "clockOffsetMs", "appendfsync", "refused"];
      for (const name in expected) if (!kept.includes(name)) delete expected[name];
    }
    assertEquals<unknown>(await toldWith({ [command]: NOPERM }), expected);
  });
}

for (
  const [what, info, expected] of [
    ["a master", "role:master\r\n", { role: "master" }],
    ["a server of another role", "role:sentinel\r\n", {}],
    ["Valkey", "redis_version:7.2.4\r\nvalkey_version:8.0.1\r\n", { version: "8.0.1" }],
    ["a server without a log or cluster", "aof_enabled:0\r\ncluster_enabled:0\r\n", {
      clustered: false,
      aofEnabled: false,
    }],
    ["a value with colons", "run_id:a:b\r\n", { runId: "a:b" }],
    ["nothing", "", {}],
  ] as const
) {
  Deno.test(`RedisNode.diagnose() reads the INFO of ${what}`, async () => {
    const { roundTripMs, clockOffsetMs, appendfsync } = TOLD;
    assertEquals<unknown>(await toldWith({ INFO: bulk(info) }), {
      roundTripMs,
      clockOffsetMs,
      ...expected,
      appendfsync,
    });
  });
}

for (
  const [reply, clockOffsetMs] of [
    [time(WALL_S + 2, 500_250), 2_500.25],
    [time(WALL_S - 1, 0), -1_000],
    ["+OK\r\n", undefined],
    ["*1\r\n$1\r\n5\r\n", undefined],
    ["*2\r\n$1\r\nx\r\n$1\r\ny\r\n", undefined],
  ] as const
) {
  Deno.test(`RedisNode.diagnose() reads ${JSON.stringify(reply)} as an offset of ${clockOffsetMs} ms`, async () => {
    assertEquals((await toldWith({ TIME: reply })).clockOffsetMs, clockOffsetMs);
  });
}

Deno.test("RedisNode.diagnose() takes the clock as read in the middle of the round trip", async () => {
  const { bench, told } = await asked();
  await bench.clock.advance(40);
  await listening(bench, { TIME: time(WALL_S, 25_000) });
  await bench.answer(SUBSCRIBED);
  const { roundTripMs, clockOffsetMs } = await told;
  assertEquals([roundTripMs, clockOffsetMs], [40, 5]);
  await bench.close();
});

Deno.test("RedisNode.diagnose() does not count connecting, nor what came after the clock", async () => {
  const bench = new Bench();
  bench.network.mode = "wait";
  const told = bench.node.diagnose(TIMEOUT_MS);
  await bench.clock.advance(300);
  bench.network.pending[0].accept();
  await runMicrotasks();
  bench.network.mode = "accept";
  await bench.clock.advance(10);
  await bench.answer(time(WALL_S, 305_000));
  await bench.clock.advance(50);
  const { INFO, CONFIG, EVALSHA, PUBLISH } = REPLIES;
  await bench.answer(INFO + CONFIG + EVALSHA + PUBLISH);
  await bench.answer(SUBSCRIBED);
  const { roundTripMs, clockOffsetMs } = await told;
  assertEquals([roundTripMs, clockOffsetMs], [10, 0]);
  await bench.close();
});

for (const prefix of ["NOAUTH", "LOADING", "BUSY"]) {
  Deno.test(`RedisNode.diagnose() rejects where the server says ${prefix}`, async () => {
    const { bench, told } = await asked();
    await bench.answer(Object.values({ ...REPLIES, EVALSHA: `-${prefix} not now\r\n` }).join(""));
    assertEquals((await assertRejects(() => told, ReplyError)).message, `${prefix} not now`);
    assertEquals(bench.network.transports.length, 1);
    await bench.close();
  });
}

Deno.test("RedisNode.diagnose() rejects where the connection breaks", async () => {
  const { bench, told } = await asked();
  await bench.answer(REPLIES.TIME);
  await bench.hangUp();
  assertEquals((await assertRejects(() => told, ConnectionError)).message, LOST);
  await bench.close();
});

Deno.test("RedisNode.diagnose() tells that listening is refused", async () => {
  const { bench, told } = await asked();
  await listening(bench);
  await bench.answer(NOPERM);
  assertEquals((await told).refused, { SUBSCRIBE: "NOPERM" });
  await bench.close();
});

Deno.test("RedisNode.diagnose() tells that there is no room for a connection that listens", async () => {
  const { bench, told } = await asked(new Bench({ clientName: "name" }));
  await bench.answer("+OK\r\n"); // the first one was for the name
  await listening(bench);
  await bench.answer("-ERR max number of clients reached\r\n");
  assertEquals((await told).refused, { SUBSCRIBE: "ERR" });
  await bench.close();
});

Deno.test("RedisNode.diagnose() leaves out listening where no other connection is made", async () => {
  const { bench, told } = await asked();
  bench.network.mode = "refuse";
  await listening(bench);
  assertEquals(await told, TOLD);
  await bench.close();
});

Deno.test("RedisNode.diagnose() leaves out listening where there is no answer to it, in good time", async () => {
  const { bench, told } = await asked();
  await bench.clock.advance(100);
  const other = await listening(bench, { TIME: time(WALL_S, 50_000) });
  await bench.clock.advance(649);
  assertEquals(other.closed, false);
  await bench.clock.advance(2);
  assertEquals(await told, { ...TOLD, roundTripMs: 100 });
  await bench.clock.advance(300); // closing waits a moment for replies that are due
  assertEquals(other.closed, true);
  await bench.close();
});

Deno.test("RedisNode.diagnose() does not begin to listen where its time is over", async () => {
  const { bench, told } = await asked();
  await bench.clock.advance(750);
  await listening(bench, { TIME: time(WALL_S, 375_000) });
  assertEquals(await told, { ...TOLD, roundTripMs: 750 });
  assertEquals(bench.network.transports.length, 1);
  await bench.close();
});

Deno.test("RedisNode.close() closes the connection that listens", async () => {
  const { bench, told } = await asked();
  const other = await listening(bench);
  await bench.close();
  assertEquals([other.closed, await told], [true, TOLD]);
});

Deno.test("RedisNode.close() has no other connection opened after it", async () => {
  const { bench, told } = await asked();
  bench.network.last.feed(Object.values(REPLIES).join(""));
  const closing = bench.close();
  await closing;
  await told.catch(() => {});
  assertEquals(bench.network.transports.length, 1);
});
