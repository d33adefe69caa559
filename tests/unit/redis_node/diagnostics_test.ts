import { assertEquals, assertRejects } from "@std/assert";
import type { NodeDiagnosis } from "../../../src/quorum/node_diagnosis.ts";
import { operated, TRIAL_LUA } from "../../../src/redis_node/operated_node.ts";
import { ConnectionError, ReplyError } from "../../../src/redis/errors.ts";
import { eventually } from "../../support/eventually.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { type FakeTransport, wire } from "../../support/fake_transport.ts";
import { NodeBench, NOSCRIPT } from "../../support/redis_node_bench.ts";
import { LOST, testOn } from "../../support/stream_bench.ts";

const TIMEOUT_MS = 1_000;
/** What the fake clock says in the beginning. */
const WALL_S = 1_700_000_000;
const CHANNEL = "hasp:wake:check";
const KEY = "app:check:1";

const NOPERM = "-NOPERM this user has no permissions\r\n";
const INFO = [
  ...["# Server", "redis_version:7.0.15", "redis_mode:standalone", "run_id:abc"],
  ...["uptime_in_seconds:90", "# Memory", "maxmemory:1048576", "maxmemory_policy:allkeys-lru"],
  ...["# Persistence", "aof_enabled:1", "# Replication", "role:slave", "# Cluster"],
  ...["cluster_enabled:1", ""],
].join("\r\n");
/** The replies of a server that refuses nothing. */
const REPLIES = {
  TIME: time(WALL_S, 0),
  INFO: bulk(INFO),
  CONFIG: `*2\r\n${bulk("appendfsync")}${bulk("always")}`,
  SET: "$-1\r\n",
  EVAL: "*0\r\n",
  EVALSHA: NOSCRIPT,
  PUBLISH: ":0\r\n",
  SCAN: `*2\r\n${bulk("0")}*0\r\n`,
  GET: bulk(String(WALL_S * 1_000 - 5_000)),
};
/** The replies on two further connections: to `INFO server`, and to `SUBSCRIBE`. */
const SAME_RUN = bulk("# Server\r\nrun_id:abc\r\n");
const SUBSCRIBED = `*3\r\n${bulk("subscribe")}${bulk(CHANNEL)}:1\r\n`;
const BASIC = { roundTripMs: 0, clockOffsetMs: 0, markerAgeMs: 5_000, appendfsync: "always" };
const WHOLE: NodeDiagnosis = {
  ...BASIC,
  version: "7.0.15",
  role: "replica",
  runId: "abc",
  uptimeMs: 90_000,
  clustered: true,
  aofEnabled: true,
  maxmemoryBytes: 1_048_576,
  maxmemoryPolicy: "allkeys-lru",
};

function bulk(text: string): string {
  return `$${text.length}\r\n${text}\r\n`;
}

function time(seconds: number, microseconds: number): string {
  return `*2\r\n${bulk(String(seconds))}${bulk(String(microseconds))}`;
}

/** A node that is diagnosed. */
class Bench extends NodeBench {
  /** The diagnosis; a rejection is looked at by the test. */
  diagnosis: Promise<NodeDiagnosis> | undefined = undefined;

  /** Opens the node's own connection, and asks for the diagnosis on it. */
  async asked(): Promise<this> {
    await this.opened();
    const { writes } = this.transport;
    this.diagnosis = operated(this.node).diagnose!(TIMEOUT_MS, KEY);
    this.diagnosis.catch(() => {});
    await eventually(() => writes.length > 0); // once its module is loaded
    return this;
  }

  /** Answers on the node's own connection, and returns the two that are opened then. */
  async further(changes: Partial<typeof REPLIES> = {}): Promise<FakeTransport[]> {
    const opened = this.network.transports.length;
    await this.answer(Object.values({ ...REPLIES, ...changes }).join(""));
    return this.network.transports.slice(opened);
  }

  /** Answers on all connections, and returns the diagnosis. */
  async answerAll(
    changes: Partial<typeof REPLIES> = {},
    infos: readonly [string, string] = [SAME_RUN, SAME_RUN],
    subscribed = SUBSCRIBED,
  ): Promise<NodeDiagnosis> {
    const [one, other] = await this.further(changes);
    await one.answer(infos[0] + subscribed);
    await other.answer(infos[1]);
    return await this.diagnosis!;
  }
}

const test = Object.assign(testOn(() => new Bench().asked()), { raw: testOn(() => new Bench()) });

test("diagnose() sends everything in one piece but SUBSCRIBE, and opens two further connections", async (bench) => {
  const own = bench.transport;
  const commands = [
    ["TIME"],
    ["INFO"],
    ["CONFIG", "GET", "appendfsync"],
    ["SET", KEY, "", "XX", "PX", "1"],
    ["EVAL", TRIAL_LUA, "1", KEY],
    ["EVALSHA", "f".repeat(40), "0"],
    ["PUBLISH", CHANNEL, ""],
    ["SCAN", "0", "COUNT", "1", "TYPE", "string"],
    ["GET", "hasp:born"],
  ];
  assertEquals(own.writes, [commands.map((words) => wire(...words)).join("")]);
  const [one, other] = await bench.further();
  assertEquals(one.written, wire("INFO", "server") + wire("SUBSCRIBE", CHANNEL));
  assertEquals(other.written, wire("INFO", "server"));
  await one.answer(SAME_RUN + SUBSCRIBED);
  await other.answer(SAME_RUN);
  assertEquals(await bench.diagnosis, WHOLE);
  await runMicrotasks();
  const closed = bench.network.transports.map(({ closed }) => closed);
  assertEquals([closed, bench.wheel.size], [[false, true, true], 0]);
});

for (const command of Object.keys(REPLIES) as (keyof typeof REPLIES)[]) {
  test(`diagnose() reports the rest if ${command} is refused`, async (bench) => {
    const expected: Record<string, unknown> = { ...(command === "INFO" ? BASIC : WHOLE) };
    if (command === "TIME") delete expected.clockOffsetMs;
    if (command === "CONFIG") delete expected.appendfsync;
    if (["GET", "TIME"].includes(command)) delete expected.markerAgeMs;
    const diagnosis = await bench.answerAll({ [command]: NOPERM });
    // of the marker alone, which only the restart guard needs
    const refused = command === "GET" ? {} : { refused: { [command]: "NOPERM" } };
    assertEquals<unknown>(diagnosis, { ...expected, ...refused });
  });
}

for (
  const [GET, markerAgeMs] of [
    ["$-1\r\n", 0],
    [bulk(String(WALL_S * 1_000 + 5_000)), undefined],
    [bulk("somebody's"), undefined],
  ] as const
) {
  test(`diagnose() reads ${JSON.stringify(GET)} as a marker of ${markerAgeMs} ms`, async (bench) => {
    assertEquals((await bench.answerAll({ GET })).markerAgeMs, markerAgeMs);
  });
}

test("diagnose() reports what is refused in scripts, and no command that it did not try", async (bench) => {
  const EVAL = "*5\r\n:1\r\n:6\r\n:14\r\n:17\r\n$4\r\nSAVE\r\n";
  assertEquals((await bench.answerAll({ EVAL })).refused, {
    GET: "in scripts",
    ZADD: "in scripts",
    DECR: "in scripts",
  });
});

for (
  const [what, info, expected] of [
    ["a master", "role:master", { role: "master" }],
    ["a replica", "role:slave", { role: "replica" }],
    ["a replica by another word", "role:replica", { role: "replica" }],
    ["an active replica of KeyDB", "role:active-replica", { role: "active-replica" }],
    ["a server of another role", "role:sentinel", {}],
    ["Valkey", "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1", {
      serverName: "valkey",
      version: "8.0.1",
    }],
    ["a server without a log or cluster", "aof_enabled:0\r\ncluster_enabled:0", {
      clustered: false,
      aofEnabled: false,
    }],
    ["a value with colons", "run_id:abc\r\nmaxmemory_policy:a:b", {
      runId: "abc",
      maxmemoryPolicy: "a:b",
    }],
    ["a server with strange numbers", "uptime_in_seconds:x\r\nmaxmemory:Infinity", {}],
    ["nothing", "", {}],
  ] as const
) {
  test(`diagnose() reads the INFO of ${what}`, async (bench) => {
    const diagnosis = await bench.answerAll({ INFO: bulk(`${info}\r\n`) });
    assertEquals<unknown>(diagnosis, { ...BASIC, ...expected });
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
  test(`diagnose() reads ${JSON.stringify(reply)} as an offset of ${clockOffsetMs} ms`, async (bench) => {
    assertEquals((await bench.answerAll({ TIME: reply })).clockOffsetMs, clockOffsetMs);
  });
}

for (
  const [what, infos, expected] of [
    ["the same server", ["run_id:abc", "run_id:abc"], undefined],
    ["another server", ["run_id:def", "run_id:abc"], ["def"]],
    ["another server the second time", ["run_id:abc", "run_id:def"], ["def"]],
    ["another server twice", ["run_id:def", "run_id:def"], ["def"]],
    ["two others", ["run_id:def", "run_id:ghi"], ["def", "ghi"]],
    ["a server without a run id", ["", ""], undefined],
    ["a server that refuses INFO", [NOPERM, NOPERM], undefined],
  ] as const
) {
  test(`diagnose() finds ${what} behind the same address`, async (bench) => {
    const [one, other] = infos.map((info) => info === NOPERM ? info : bulk(info));
    assertEquals((await bench.answerAll({}, [one, other])).otherRunIds, expected);
  });
}

// Times

test("diagnose() takes the clock as read in the middle of the round trip", async (bench) => {
  await bench.clock.advance(40);
  const diagnosis = await bench.answerAll({ TIME: time(WALL_S, 25_000) });
  assertEquals([diagnosis.roundTripMs, diagnosis.clockOffsetMs], [40, 5]);
});

test("diagnose() is off by half of the round trip at most if the process stands still behind the reply", async (bench) => {
  const { clock } = bench;
  const read = clock.monotonicMs;
  clock.monotonicMs = () => {
    clock.monotonicMs = read;
    const receivedAtMs = clock.monotonicMs();
    clock.block(500);
    return receivedAtMs;
  };
  const { roundTripMs, clockOffsetMs } = await bench.answerAll({ TIME: time(WALL_S, 0) });
  assertEquals([roundTripMs, clockOffsetMs], [500, -250]);
});

test("diagnose() reports the rest in good time if a further connection is silent", async (bench) => {
  await bench.clock.advance(100);
  const further = await bench.further({ TIME: time(WALL_S, 50_000) });
  const closed = () => further.map(({ closed }) => closed);
  await further[0].answer(bulk("run_id:def"));
  await bench.clock.advance(649);
  assertEquals(closed(), [false, false]);
  await bench.clock.advance(2);
  const times = { roundTripMs: 100, markerAgeMs: 5_050 };
  assertEquals(await bench.diagnosis, { ...WHOLE, ...times, otherRunIds: ["def"] });
  await bench.clock.advance(300); // closing waits a moment for replies that are due
  assertEquals(closed(), [true, true]);
});

test("diagnose() reports that a server accepts no further connection for a subscription", async (bench) => {
  for (const transport of await bench.further()) {
    await transport.answer("-ERR max number of clients reached\r\n");
    await transport.end();
  }
  assertEquals((await bench.diagnosis)!.refused, { SUBSCRIBE: "no further connection" });
});

for (const names of [["TIME", "INFO", "CONFIG"], ["TIME", "INFO"]] as const) {
  test(`diagnose() reports the rest if the server answers ${names} alone, and what locks wait for`, async (bench) => {
    await bench.answer(names.map((name) => REPLIES[name]).join(""));
    await bench.clock.advance(750);
    const { markerAgeMs: _, appendfsync, ...rest } = WHOLE;
    const config = names.length === 3 ? { appendfsync } : {}; // which locks do without
    assertEquals(await bench.diagnosis, { ...rest, ...config, refused: { SET: "no reply" } });
  });
}

test("diagnose() takes a slow server for no silent one, and opens no further connection once its time is over", async (bench) => {
  const opened = bench.network.transports.length;
  const [, info, ...others] = Object.values(REPLIES);
  await bench.clock.advance(740);
  await bench.answer(time(WALL_S, 370_000) + info);
  await bench.clock.advance(60);
  await bench.answer(others.join(""));
  assertEquals(await bench.diagnosis, { ...WHOLE, roundTripMs: 740, markerAgeMs: 5_370 });
  assertEquals(bench.network.transports.length, opened);
});

// Failures

for (const prefix of ["NOAUTH", "LOADING", "BUSY"]) {
  test(`diagnose() rejects if the server says ${prefix}`, async (bench) => {
    assertEquals(await bench.further({ EVALSHA: `-${prefix} not now\r\n` }), []);
    const error = await assertRejects(() => bench.diagnosis!, ReplyError);
    assertEquals(error.message, `${prefix} not now`);
  });
}

test("diagnose() rejects if the connection breaks", async (bench) => {
  await bench.answer(REPLIES.TIME);
  await bench.hangUp();
  assertEquals((await assertRejects(() => bench.diagnosis!, ConnectionError)).message, LOST);
});

test("diagnose() reports that SUBSCRIBE is refused", async (bench) => {
  const diagnosis = await bench.answerAll({}, [SAME_RUN, SAME_RUN], NOPERM);
  assertEquals(diagnosis.refused, { SUBSCRIBE: "NOPERM" });
});

test("diagnose() reports that the server ends the connection in place of a reply to SUBSCRIBE", async (bench) => {
  const [one, other] = await bench.further();
  await one.answer(SAME_RUN);
  one.end();
  await other.answer(SAME_RUN);
  assertEquals(await bench.diagnosis, { ...WHOLE, refused: { SUBSCRIBE: "ends the connection" } });
});

test.raw("diagnose() asks over another connection if its own was given up because it led to a replica", async (bench) => {
  await bench.opened();
  await bench.send("acquire");
  await bench.answer("-READONLY no\r\n");
  const diagnosis = operated(bench.node).diagnose!(TIMEOUT_MS, KEY);
  await eventually(() => bench.network.transports.length > 1);
  const another = bench.transport;
  await another.answer(REPLIES.TIME);
  await another.answer(Object.values(REPLIES).join(""));
  for (const each of bench.network.transports.slice(2)) await each.answer(SAME_RUN + SUBSCRIBED);
  assertEquals((await diagnosis).role, "replica");
  assertEquals(another.closed, true);
});

test("diagnose() reports the rest if no further connection can be made", async (bench) => {
  bench.network.mode = "refuse";
  await bench.further();
  assertEquals(await bench.diagnosis, WHOLE);
});

test.raw("diagnose() shows no password that the server has put into its texts", async (bench) => {
  bench.use({}, "redis://locker:s3cret@h");
  await bench.asked();
  await bench.answer("+OK\r\n"); // the first one was for AUTH
  const info =
    "redis_version:7-s3cret\r\nserver_name:s3cret\r\nrun_id:s3cret\r\nmaxmemory_policy:s3cret";
  const [one, other] = await bench.further({
    INFO: bulk(info),
    CONFIG: `*2\r\n${bulk("appendfsync")}${bulk("s3cret")}`,
    EVALSHA: "-s3cret\r\n",
  });
  for (const connection of [one, other]) await connection.answer("+OK\r\n");
  await one.answer(bulk("run_id:other-s3cret") + SUBSCRIBED);
  await other.answer(bulk(""));
  assertEquals<unknown>(await bench.diagnosis, {
    ...BASIC,
    serverName: "***",
    version: "7-***",
    runId: "***",
    maxmemoryPolicy: "***",
    otherRunIds: ["other-***"],
    appendfsync: "***",
    refused: { EVALSHA: "***" },
  });
});

test("RedisNode.close() closes the further connections of diagnose()", async (bench) => {
  const [one, other] = await bench.further();
  await bench.close();
  assertEquals([one.closed, other.closed, await bench.diagnosis], [true, true, WHOLE]);
});

test("RedisNode.close() opens no other connection for diagnose() afterwards", async (bench) => {
  bench.transport.feed(Object.values(REPLIES).join(""));
  await bench.close();
  await bench.diagnosis!.catch(() => {});
  assertEquals(bench.network.transports.length, 1);
});

test.raw("keys() says if the server is too old for its SCAN", async (bench) => {
  await bench.opened();
  const keys = operated(bench.node).keys!("")[Symbol.asyncIterator]().next();
  keys.catch(() => {}); // it is awaited below
  await bench.answer("-ERR syntax error\r\n");
  await assertRejects(() => keys, ReplyError, "needs Redis 6 or newer");
});
