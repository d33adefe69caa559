import { assert, assertEquals } from "@std/assert";
import { NOBODY } from "../../../src/redis/wire.ts";
import { RequestCommand } from "../../../src/redis_node/redis_node.ts";
import { EXTEND } from "../../../src/redis_node/scripts/extend.ts";
import { RELEASE } from "../../../src/redis_node/scripts/release.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { FakeRequest, ticketOf } from "../../support/fake_request.ts";
import { wire } from "../../support/fake_transport.ts";
import {
  groupRelease,
  laterRelease,
  NodeBench,
  NOSCRIPT,
  REFUSED_DELAY_MS,
  test,
} from "../../support/redis_node_bench.ts";

const request = (key: string, value = "v", ttlMs = 1_000) => new FakeRequest(key, { value, ttlMs });

/** Releases `k0` with the value `v0`, and so on, in this tick: guarded locks, and others. */
function releaseMany(bench: NodeBench, count = 3): FakeRequest[] {
  return lockNames(count).map(([key, value], index) =>
    bench.release(new FakeRequest(key, { value, ttlMs: 1_000, guardMs: index % 2 * 5_000 }))
  );
}

function lockNames(count: number, from = 0): [key: string, value: string][] {
  return Array.from({ length: count }, (_, index) => [`k${from + index}`, `v${from + index}`]);
}

const SET = (key: string) => wire("SET", key, "v", "NX", "PX", "1000");

test.opened("RedisNode releases what one tick releases by one script, in the order of the calls", async (bench) => {
  const requests = releaseMany(bench);
  bench.ask("acquire", request("other"));
  await runMicrotasks();
  assertEquals(bench.transport.writes, [groupRelease("EVALSHA", ...lockNames(3)) + SET("other")]);
  await bench.answer("*3\r\n:1\r\n:0\r\n:2\r\n+OK\r\n");
  assertEquals(requests.map(({ outcomes, hasWaiters }) => [outcomes, hasWaiters]), [
    [["granted"], false],
    [["denied"], false],
    [["granted"], true],
  ]);
});

test.opened("RedisNode answers each acquisition of a tick by its own reply, keeps no command of it, and fails those without a reply", async (bench) => {
  const requests = lockNames(4).map(([key]) => bench.ask("acquire", request(key)));
  await runMicrotasks();
  assertEquals(bench.transport.writes, [lockNames(4).map(([key]) => SET(key)).join("")]);
  await bench.feed("+OK\r\n$-1\r\n-ERR no\r\n");
  bench.transport.end();
  await runMicrotasks();
  const outcomes = requests.map((each) => each.outcomes.join());
  assertEquals(outcomes, ["granted", "denied", "failed", "failed"]);
  assertEquals(requests.map(({ encoded }) => encoded).filter(Boolean), []);
});

test("RedisNode sends no acquisition that was asked for before the login was refused", async (bench) => {
  bench.use({}, "redis://:secret@h");
  await bench.send("acquire");
  bench.transport.writes.length = 0;
  bench.transport.feed("-WRONGPASS no\r\n");
  const keys: string[] = [];
  while (bench.node.connection.open) { // one more in each microtask, until it is refused
    keys.push(`k${keys.length}`);
    bench.ask("acquire", request(keys.at(-1)!));
    await Promise.resolve();
  }
  await runMicrotasks();
  keys.pop(); // still in the group
  assertEquals([keys.length > 0, bench.written], [true, keys.map(SET).join("")]);
});

test.opened("RedisNode has the client write acquisitions to the servers in the other order than releases", async (bench) => {
  const other = await new NodeBench().opened();
  const order: string[] = [];
  for (const [name, { transport }] of Object.entries({ bench, other })) {
    const write = transport.write.bind(transport);
    transport.write = (bytes) => (order.push(name), write(bytes));
  }
  for (const node of [bench, other]) node.ask("acquire");
  await runMicrotasks();
  for (const node of [bench, other]) node.release();
  await runMicrotasks();
  assertEquals(order, ["other", "bench", "bench", "other"]);
});

test.opened("RedisNode.close() sends the group of its tick", async (bench) => {
  const requests = releaseMany(bench);
  const closing = bench.node.close();
  await runMicrotasks();
  assertEquals(bench.written, groupRelease("EVALSHA", ...lockNames(3)));
  await bench.feed("*3\r\n:1\r\n:1\r\n:1\r\n");
  assertEquals(requests.flatMap(({ outcomes }) => outcomes), ["granted", "granted", "granted"]);
  await closing;
});

test.opened("RedisNode sends a group that was begun before too many commands waited, if it takes back what may be there", async (bench) => {
  const spared = bench.ask("release", request("k0", "v0"));
  bench.release(request("k1", "v1"));
  const { connection } = bench.node;
  while (!connection.crowded) connection.submit({ args: ["PING"], keys: [] }, NOBODY);
  await runMicrotasks();
  const isSent = bench.written.endsWith(groupRelease("EVALSHA", ...lockNames(2)));
  assertEquals([spared.answers, isSent], [[], true]);
});

test.opened("RedisNode answers each release of a tick by its own index", async (bench) => {
  const requests = ["k", "l"].map((key, index) => bench.release(request(key), index));
  await runMicrotasks();
  await bench.answer(":1\r\n:1\r\n");
  assertEquals(requests.map(({ answers: [[, index]] }) => index), [0, 1]);
});

test.opened("RedisNode extends what one tick extends by one script, each with its own TTL", async (bench) => {
  const requests = [request("k", "v", 1_000), request("l", "w", 2_000), request("m", "x", 3_000)];
  for (const each of requests) bench.ask("extend", each, 2);
  await runMicrotasks();
  const words = ["3", "k", "l", "m", "v", "1000", "w", "2000", "x", "3000"];
  assertEquals(bench.written, wire("EVALSHA", EXTEND.sha1, ...words));
  await bench.answer("*3\r\n:1\r\n:0\r\n:-1\r\n");
  assertEquals(requests.map(({ outcomes }) => outcomes), [["granted"], ["denied"], ["missing"]]);
});

for (
  const [reply, again, answer] of [
    [
      NOSCRIPT,
      wire("EVAL", EXTEND.source, "2", "k1", "k2", "v", "1000", "v", "1000"),
      "*2\r\n:1\r\n:1\r\n",
    ],
    [
      "-NOPERM no\r\n",
      ["k1", "k2"].map((key) => wire("EVALSHA", EXTEND.sha1, "1", key, "v", "1000")).join(""),
      ":1\r\n:1\r\n",
    ],
  ]
) {
  test.opened(`RedisNode does not send an extension of a group again whose lock has ended, on ${reply.split(" ")[0]}`, async (bench) => {
    const requests = lockNames(3).map(([key]) => bench.ask("extend", request(key)));
    await runMicrotasks();
    requests[0].wanted = false; // the release behind it may have the keys live on
    await bench.answer(reply);
    assertEquals(bench.written, again);
    await bench.answer(answer);
    assertEquals(requests.map(({ outcomes }) => outcomes), [["failed"], ["granted"], ["granted"]]);
  });
}

test.opened("RedisNode fails the releases of a group that cannot be encoded, and sends the rest of the tick even if one of them throws", async (bench) => {
  const other = await new NodeBench().opened();
  addEventListener("error", (event) => event.preventDefault(), { once: true });
  releaseMany(other);
  bench.ask("acquire", request("other"));
  const requests = ["k", "l"].map((key) => bench.ask("release", request(key)));
  Object.defineProperty(requests[1], "value", { get: () => undefined });
  requests[1].note = () => JSON.parse("?");
  await runMicrotasks();
  const written = [bench.written, other.written];
  assertEquals(written, [SET("other"), groupRelease("EVALSHA", ...lockNames(3))]);
  assertEquals(requests.map(({ unsent }) => unsent), [true, true]);
  await other.close();
});

test.opened("RedisNode keeps the order of releases and extensions", async (bench) => {
  releaseMany(bench, 2);
  bench.ask("extend", request("k0"));
  releaseMany(bench, 2);
  await runMicrotasks();
  const extension = wire("EVALSHA", EXTEND.sha1, "1", "k0", "v", "1000");
  const releases = groupRelease("EVALSHA", ...lockNames(2));
  assertEquals(bench.transport.writes, [releases + extension + releases]);
});

test.opened("RedisNode sends releases before a call for any of several keys that has one of theirs", async (bench) => {
  releaseMany(bench, 2);
  const pool = { keys: ["other", "k1"], place: 0, free: [] };
  bench.ask("acquire", new FakeRequest("other", { pool }));
  await runMicrotasks();
  const [written] = bench.transport.writes;
  assertEquals(written.indexOf(groupRelease("EVALSHA", ...lockNames(2))), 0);
});

for (
  const [what, parts] of [
    ["a ticket", { ticket: ticketOf() }],
    ["a value to give back", { replaces: "old" }],
    ["shared mode", { mode: "shared" }],
    ["several keys", { keys: ["k", "l"] }],
  ] as const
) {
  test.opened(`RedisNode sends a release with ${what} alone`, async (bench) => {
    for (let times = 0; times < 2; times++) bench.release(new FakeRequest("k", parts));
    await runMicrotasks();
    assertEquals(bench.written.match(/\$(?:4|7)\r\nEVAL/gu)?.length, 2);
  });
}

for (const parts of [{ guardMs: 1_000 }, { mode: "shared" }] as const) {
  test.opened(`RedisNode sends an extension with ${JSON.stringify(parts)} alone`, async (bench) => {
    for (const key of ["k", "l"]) bench.ask("extend", new FakeRequest(key, parts));
    await runMicrotasks();
    assertEquals(bench.written.match(/\r\n1\r\n\$1\r\n[kl]\r\n/gu)?.length, 2); // one key each
  });
}

test.opened("RedisNode puts at most 256 locks into a group, and sends a full one at once", async (bench) => {
  releaseMany(bench, 300);
  assertEquals(bench.written, ""); // the rest of the tick goes into the same write
  await runMicrotasks();
  const first = groupRelease("EVALSHA", ...lockNames(256));
  assertEquals(bench.transport.writes, [first + groupRelease("EVALSHA", ...lockNames(44, 256))]);
});

test.opened("RedisNode encodes a group once for all nodes that are asked the same, and apart for others", async (bench) => {
  const late = await new NodeBench().opened();
  const requests = lockNames(3).map(([key, value]) => request(key, value));
  const group = new RequestCommand(RELEASE, requests, true);
  requests[0].encoded = group; // of the first node
  for (const each of requests) bench.node.ask("release", each, 0);
  await runMicrotasks();
  assertEquals(bench.written, groupRelease("EVALSHA", ...lockNames(3)));
  assert(group.bytes);
  for (const each of requests.slice(0, 2)) late.node.ask("release", each, 0);
  await runMicrotasks();
  assertEquals(late.written, groupRelease("EVALSHA", ...lockNames(2)));
  await late.answer("*2\r\n:1\r\n:1\r\n");
  assertEquals(requests.map(({ answers }) => answers.length), [1, 1, 0]);
  await late.close();
});

test.opened("RedisNode sends locks one by one after CROSSSLOT, until the next connection", async (bench) => {
  const requests = releaseMany(bench);
  await runMicrotasks();
  await bench.answer("-CROSSSLOT Keys in request don't hash to the same slot\r\n");
  const alone = lockNames(3).map(([key, value]) => laterRelease(value, key)).join("");
  assertEquals(bench.written, alone);
  await bench.answer(":1\r\n:1\r\n:0\r\n");
  assertEquals(requests.flatMap(({ outcomes }) => outcomes), ["granted", "granted", "denied"]);
  releaseMany(bench);
  await runMicrotasks();
  assertEquals(bench.written, alone);
  await bench.hangUp();
  await bench.reconnect();
  releaseMany(bench);
  await runMicrotasks();
  assertEquals(bench.written.includes(RELEASE.sha1), true);
});

test.opened("RedisNode passes the error of one key on to its release alone", async (bench) => {
  const requests = releaseMany(bench);
  await runMicrotasks();
  await bench.answer("*3\r\n:1\r\n-WRONGTYPE Operation against a key\r\n:1\r\n");
  assertEquals(requests.flatMap(({ outcomes }) => outcomes), ["granted", "failed", "granted"]);
  await bench.advance(REFUSED_DELAY_MS);
  assertEquals(bench.written, ""); // what is of another type is no lock
});

test.opened("RedisNode fails each release of a group that has an unreadable reply", async (bench) => {
  const requests = releaseMany(bench);
  await runMicrotasks();
  await bench.answer("*1\r\n:1\r\n");
  assertEquals(requests.flatMap(({ outcomes }) => outcomes), ["granted", "failed", "failed"]);
});
