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
const CHANNEL = "hasp:wake:check";

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
  EVAL: "-ERR Number of keys can't be negative\r\n",
  EVALSHA: NOSCRIPT,
  PUBLISH: ":0\r\n",
};
/** What two further connections answer: `INFO server`, and the reply to `SUBSCRIBE`. */
const SAME_RUN = bulk("# Server\r\nrun_id:abc\r\n");
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
async function asked(
  bench = new Bench(),
): Promise<{ bench: Bench; told: Promise<NodeDiagnosis> }> {
  const { writes } = await bench.open();
  const before = writes.length;
  const told = bench.node.diagnose(TIMEOUT_MS);
  told.catch(() => {}); // looked at later
  await eventually(() => writes.length > before); // once its module is loaded
  return { bench, told };
}

/** Has the first connection answer as usual but for `changes`, and returns the two that are opened then. */
async function further(
  bench: Bench,
  changes: Partial<typeof REPLIES> = {},
): Promise<readonly [FakeTransport, FakeTransport]> {
  const opened = bench.network.transports.length;
  await bench.answer(Object.values({ ...REPLIES, ...changes }).join(""));
  const [one, other] = bench.network.transports.slice(opened);
  return [one, other];
}

/** Has the two further connections answer. */
async function answerFurther(
  [one, other]: readonly [FakeTransport, FakeTransport],
  infos: readonly [string, string] = [SAME_RUN, SAME_RUN],
  subscribed = SUBSCRIBED,
): Promise<void> {
  await one.answer(infos[0] + subscribed);
  await other.answer(infos[1]);
}

/** What is told where the replies are as usual but for `changes`. */
async function toldWith(changes: Partial<typeof REPLIES>): Promise<NodeDiagnosis> {
  const { bench, told } = await asked();
  await answerFurther(await further(bench, changes));
  const diagnosis = await told;
  await bench.close();
  return diagnosis;
}

/** What is told where the two further connections answer like this. */
async function toldBy(...infos: [string, string]): Promise<NodeDiagnosis> {
  const { bench, told } = await asked();
  await answerFurther(await further(bench), infos);
  const diagnosis = await told;
  await bench.close();
  return diagnosis;
}

Deno.test("RedisNode.diagnose() sends everything in one piece but SUBSCRIBE, and opens two further connections", async () => {
  const { bench, told } = await asked();
  const [own] = bench.network.transports;
  assertEquals(
    own.writes.at(-1),
    [
      wire("TIME"),
      wire("INFO"),
      wire("CONFIG", "GET", "appendfsync"),
      wire("EVAL", "return 1", "-1"),
      wire("EVALSHA", "f".repeat(40), "0"),
      wire("PUBLISH", CHANNEL, ""),
    ].join(""),
  );
  const [one, other] = await further(bench);
  assertEquals(bench.network.transports, [own, one, other]);
  assertEquals(one.written, wire("INFO", "server") + wire("SUBSCRIBE", CHANNEL));
  assertEquals(other.written, wire("INFO", "server"));
  await answerFurther([one, other]);
  assertEquals(await told, TOLD);
  assertEquals([own.closed, one.closed, other.closed], [false, true, true]);
  await runMicrotasks();
  assertEquals(bench.wheel.size, 0);
  await bench.close();
});

for (const command of ["TIME", "INFO", "CONFIG", "EVAL", "EVALSHA", "PUBLISH"] as const) {
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
    ["a replica", "role:slave\r\n", { role: "replica" }],
    ["a replica by another word", "role:replica\r\n", { role: "replica" }],
    ["an active replica of KeyDB", "role:active-replica\r\n", { role: "active-replica" }],
    ["a server of another role", "role:sentinel\r\n", {}],
    ["Valkey", "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n", {
      serverName: "valkey",
      version: "8.0.1",
    }],
    ["a server without a log or cluster", "aof_enabled:0\r\ncluster_enabled:0\r\n", {
      clustered: false,
      aofEnabled: false,
    }],
    ["a value with colons", "run_id:abc\r\nmaxmemory_policy:a:b\r\n", {
      runId: "abc",
      maxmemoryPolicy: "a:b",
    }],
    ["a server with strange numbers", "uptime_in_seconds:x\r\nmaxmemory:Infinity\r\n", {}],
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

for (
  const [what, infos, expected] of [
    ["the same server", ["run_id:abc", "run_id:abc"], undefined],
    ["another server", ["run_id:def", "run_id:abc"], ["def"]],
    ["another server the second time", ["run_id:abc", "run_id:def"], ["def"]],
    ["another server twice", ["run_id:def", "run_id:def"], ["def"]],
    ["two others", ["run_id:def", "run_id:ghi"], ["def", "ghi"]],
    ["a server that does not say", ["", ""], undefined],
  ] as const
) {
  Deno.test(`RedisNode.diagnose() finds ${what} behind the same address`, async () => {
    const [first, second] = infos;
    assertEquals((await toldBy(bulk(first), bulk(second))).otherRunIds, expected);
  });
}

Deno.test("RedisNode.diagnose() compares no run ids where INFO is refused", async () => {
  assertEquals((await toldBy(NOPERM, NOPERM)).otherRunIds, undefined);
});

Deno.test("RedisNode.diagnose() takes the clock as read in the middle of the round trip", async () => {
  const { bench, told } = await asked();
  await bench.clock.advance(40);
  await answerFurther(await further(bench, { TIME: time(WALL_S, 25_000) }));
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
  const { INFO, CONFIG, EVAL, EVALSHA, PUBLISH } = REPLIES;
  await bench.answer(INFO + CONFIG + EVAL + EVALSHA + PUBLISH);
  const [, one, other] = bench.network.transports;
  await answerFurther([one, other]);
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

Deno.test("RedisNode.diagnose() carries no password back that the server has put into its texts", async () => {
  const bench = new Bench({}, "redis://locker:s3cret@h");
  const { told } = await asked(bench);
  await bench.answer("+OK\r\n"); // the first one was for AUTH
  const info =
    "redis_version:7-s3cret\r\nserver_name:s3cret\r\nrun_id:s3cret\r\nmaxmemory_policy:s3cret";
  const connections = await further(bench, {
    INFO: bulk(info),
    CONFIG: `*2\r\n${bulk("appendfsync")}${bulk("s3cret")}`,
    EVALSHA: "-s3cret\r\n",
  });
  for (const connection of connections) await connection.answer("+OK\r\n");
  await answerFurther(connections, [bulk("run_id:other-s3cret"), bulk("")]);
  assertEquals(await told, {
    roundTripMs: 0,
    clockOffsetMs: 0,
    serverName: "***",
    version: "7-***",
    runId: "***",
    maxmemoryPolicy: "***",
    otherRunIds: ["other-***"],
    appendfsync: "***",
    refused: { EVALSHA: "***" },
  });
  await bench.close();
});

Deno.test("RedisNode.diagnose() reports that SUBSCRIBE is refused", async () => {
  const { bench, told } = await asked();
  await answerFurther(await further(bench), [SAME_RUN, SAME_RUN], NOPERM);
  assertEquals((await told).refused, { SUBSCRIBE: "NOPERM" });
  await bench.close();
});

Deno.test("RedisNode.diagnose() reports that the server has no room for further connections", async () => {
  const { bench, told } = await asked(new Bench({ clientName: "name" }));
  await bench.answer("+OK\r\n"); // the first one was for the name
  const connections = await further(bench);
  for (const connection of connections) {
    await connection.answer("-ERR max number of clients reached\r\n");
  }
  assertEquals(await told, { ...TOLD, refused: { SUBSCRIBE: "ERR" } });
  await bench.close();
});

Deno.test("RedisNode.diagnose() reports the rest where no further connection can be made", async () => {
  const { bench, told } = await asked();
  bench.network.mode = "refuse";
  await further(bench);
  assertEquals(await told, TOLD);
  await bench.close();
});

Deno.test("RedisNode.diagnose() reports the rest in good time where a further connection is silent", async () => {
  const { bench, told } = await asked();
  await bench.clock.advance(100);
  const [one, other] = await further(bench, { TIME: time(WALL_S, 50_000) });
  await one.answer(bulk("run_id:def"));
  await bench.clock.advance(649);
  assertEquals([one.closed, other.closed], [false, false]);
  await bench.clock.advance(2);
  assertEquals(await told, { ...TOLD, otherRunIds: ["def"], roundTripMs: 100 });
  await bench.clock.advance(300); // closing waits a moment for replies that are due
  assertEquals([one.closed, other.closed], [true, true]);
  await bench.close();
});

Deno.test("RedisNode.diagnose() opens no further connection where its time is over", async () => {
  const { bench, told } = await asked();
  await bench.clock.advance(750);
  await further(bench, { TIME: time(WALL_S, 375_000) });
  assertEquals(await told, { ...TOLD, roundTripMs: 750 });
  assertEquals(bench.network.transports.length, 1);
  await bench.close();
});

Deno.test("RedisNode.close() closes the further connections of diagnose()", async () => {
  const { bench, told } = await asked();
  const [one, other] = await further(bench);
  await bench.close();
  assertEquals([one.closed, other.closed, await told], [true, true, TOLD]);
});

Deno.test("RedisNode.close() has no other connection opened after it", async () => {
  const { bench, told } = await asked();
  bench.network.last.feed(Object.values(REPLIES).join(""));
  const closing = bench.close();
  await closing;
  await told.catch(() => {});
  assertEquals(bench.network.transports.length, 1);
});
