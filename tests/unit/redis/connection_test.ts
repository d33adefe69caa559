import { assert, assertEquals, assertInstanceOf, assertLessOrEqual } from "@std/assert";
import { QUEUE_LENGTH_MAX } from "../../../src/redis/connection.ts";
import { encodeCommand } from "../../../src/redis/encoder.ts";
import { ReplyError } from "../../../src/redis/errors.ts";
import { Bench } from "../../support/connection_bench.ts";
import { advanceUntil, runMicrotasks } from "../../support/fake_clock.ts";
import { FakeTransport, PING, wire } from "../../support/fake_transport.ts";

Deno.test("Connection connects for the first command and not before", async () => {
  const bench = new Bench();
  await runMicrotasks();
  assertEquals(bench.network.targets, []);
  bench.submit(1);
  await runMicrotasks();
  assertEquals(bench.network.targets, [{ kind: "tcp", hostname: "h", port: 6379 }]);
  assertEquals(bench.network.last.writes, [PING]);
  await advanceUntil(bench.clock, bench.connection.close());
});

for (
  const [address, target] of [
    ["redis://[::1]:7", { kind: "tcp", hostname: "::1", port: 7 }],
    ["rediss://h", { kind: "tls", hostname: "h", port: 6379, tls: { serverName: "s" } }],
    ["redis+unix:///run/r.sock", { kind: "unix", path: "/run/r.sock" }],
  ] as const
) {
  Deno.test(`Connection asks for the target of ${address}`, async () => {
    const bench = new Bench({ tls: { serverName: "s" } }, address);
    bench.submit(1);
    await runMicrotasks();
    assertEquals(bench.network.targets, [target]);
    await advanceUntil(bench.clock, bench.connection.close());
  });
}

Deno.test("Connection writes what one tick queued in one piece", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.submit(1, "SET", "k", "é");
  bench.submit(2);
  queueMicrotask(() => bench.submit(3));
  await runMicrotasks();
  assertEquals(transport.writes.join(""), wire("SET", "k", "é") + PING + PING);
  assertLessOrEqual(transport.writes.length, 2);
  bench.submit(4);
  bench.submit(5);
  transport.writes.length = 0;
  await runMicrotasks();
  assertEquals(transport.writes, [PING + PING]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection goes on with what a short write left over", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  transport.writeBytesMax = 3;
  bench.submit(1, "GET", "key");
  bench.submit(2);
  await runMicrotasks();
  assertEquals(transport.written, wire("GET", "key") + PING);
  assert(transport.writes.every((text) => text.length <= 3));
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection keeps commands in order that are queued while a write is under way", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  transport.writeBytesMax = 5;
  for (let index = 0; index < 20; index++) {
    bench.submit(index, "GET", `${index}`);
    await Promise.resolve();
  }
  await runMicrotasks();
  const expected = Array.from({ length: 20 }, (_, index) => wire("GET", `${index}`)).join("");
  assertEquals(transport.written, expected);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection hands replies out first in, first out, errors among them", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.submit(1);
  bench.submit(2);
  bench.submit(3);
  transport.feed(":1\r\n-ERR no\r\n:");
  await runMicrotasks();
  transport.feed("3\r\n");
  await runMicrotasks();
  const [first, second, third] = bench.replies;
  assertEquals(first, [1, 1]);
  assertInstanceOf(second[1], ReplyError);
  assertEquals(third, [3, 3]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection says when it has no room for ordinary commands, and keeps some for undoing", async () => {
  const bench = new Bench();
  await bench.open();
  const command = encodeCommand(["PING"]);
  for (let index = 0; index < QUEUE_LENGTH_MAX; index++) {
    assertEquals(bench.connection.crowded, false);
    bench.connection.submit(command, bench, index, 0);
  }
  assertEquals(bench.connection.crowded, true);
  assertEquals(
    bench.connection.crowdedError().message,
    `Connection to redis://h:6379 has ${QUEUE_LENGTH_MAX} commands waiting for replies already`,
  );
  for (let index = 0; index < QUEUE_LENGTH_MAX; index++) {
    bench.connection.submit(command, bench, index, 0);
  }
  assertEquals(bench.replies, []);
  bench.submit("one more");
  assertEquals(bench.replies, [[
    "one more",
    `Connection to redis://h:6379 has ${2 * QUEUE_LENGTH_MAX} commands waiting for replies already`,
    "not-sent",
  ]]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection.withdraw() takes back a command while connecting", async () => {
  const bench = new Bench();
  bench.network.mode = "wait";
  bench.submit(1);
  bench.submit(2, "GET", "k");
  assertEquals(bench.connection.withdraw(1), true);
  const transport = bench.network.pending[0].accept();
  await runMicrotasks();
  assertEquals(transport.written, wire("GET", "k"));
  transport.feed("$-1\r\n");
  await runMicrotasks();
  assertEquals(bench.replies, [[2, null]]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection.withdraw() takes back a command in the tick that queued it", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.submit(1);
  assertEquals(bench.connection.withdraw(1), true);
  await runMicrotasks();
  assertEquals(transport.writes, []);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection.withdraw() leaves a written command its place, so that replies fit", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.submit(1);
  await runMicrotasks();
  assertEquals(bench.connection.withdraw(1), false);
  bench.submit(2);
  transport.feed(":1\r\n:2\r\n");
  await runMicrotasks();
  assertEquals(bench.replies, [[1, 1], [2, 2]]);
  await advanceUntil(bench.clock, bench.connection.close());
});

Deno.test("Connection lets the process end while it is idle", async () => {
  const bench = new Bench();
  const calls: string[] = [];
  bench.network.make = () =>
    Object.assign(new FakeTransport(), { unref: () => calls.push("unref") });
  await bench.open();
  assertEquals(calls, ["unref"]);
  assertEquals(bench.clock.timersAlive, 0);
  await advanceUntil(bench.clock, bench.connection.close());
});
