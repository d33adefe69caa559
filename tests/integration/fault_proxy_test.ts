/** A proxy with faults in front of servers in memory, as users of `startProxy` see it. */

import {
  assertEquals,
  assertGreaterOrEqual,
  assertLess,
  assertRejects,
  assertThrows,
} from "@std/assert";
import { connect, ConnectionError, type RedisClient } from "../../src/redis/mod.ts";
import { type FaultProxy, startFakeClock, startNodes, startProxy } from "../../src/testing/mod.ts";
import { eventually } from "../support/eventually.ts";
import { testOf } from "../support/test_of.ts";

/** A silence that is longer than any test. */
const PATIENT = { stallTimeoutMs: 60_000 };

/** A node, a proxy in front of it, and clients of both. */
async function startAll() {
  await using stack = new AsyncDisposableStack();
  const nodes = stack.use(await startNodes(1, { password: "se cret" }));
  const proxy = stack.use(await startProxy(nodes.addresses[0]));
  const client = stack.use(await connect(proxy.address, PATIENT));
  const direct = stack.use(await connect(nodes.addresses[0]));
  const left = stack.move();
  return { proxy, client, direct, [Symbol.asyncDispose]: () => left.disposeAsync() };
}

const test = testOf(startAll);

/** Sends a command, and watches whether its reply has come. */
function sent(client: RedisClient, ...command: string[]) {
  const watch = { settled: false, reply: client.send(command) };
  watch.reply.finally(() => watch.settled = true).catch(() => {});
  return watch;
}

async function countsOf(proxy: FaultProxy, expected: number[]): Promise<void> {
  await eventually(() => assertEquals([proxy.connections, proxy.accepted], expected));
}

test("startProxy() forwards everything, and counts connections", async (all) => {
  const { proxy } = all;
  assertEquals(proxy.address, `redis://:se%20cret@127.0.0.1:${proxy.port}`);
  const large = "x".repeat(1_000_000);
  assertEquals(await all.client.send(["SET", "a", large]), "OK");
  assertEquals(await all.client.send(["GET", "a"]), large);
  await countsOf(proxy, [1, 1]);
  {
    await using second = await connect(proxy.address);
    assertEquals(await second.send(["PING"]), "PONG");
    await countsOf(proxy, [2, 2]);
  }
  await countsOf(proxy, [1, 2]);
  assertEquals({ ...proxy.buffered }, { requests: 0, replies: 0 });
});

Deno.test("startProxy() takes over credentials, scheme and database of an address", async () => {
  const shown = async (address: string) => {
    await using proxy = await startProxy(address);
    return proxy.address.replace(String(proxy.port), "port");
  };
  assertEquals(await shown("redis://localhost"), "redis://127.0.0.1:port");
  assertEquals(await shown("valkey://localhost:7000/3"), "redis://127.0.0.1:port/3");
  assertEquals(await shown("rediss://me:a%2Fb@[::1]:7000"), "rediss://me:a%2Fb@127.0.0.1:port");
  assertEquals(await shown("redis+unix:///run/a.sock?db=2"), "redis://127.0.0.1:port/2");
  await assertRejects(() => startProxy("http://localhost"), TypeError, "its scheme must be");
});

test("FaultProxy.delay() delays a direction, or both, on the fake clock", async (all) => {
  using clock = startFakeClock();
  for (
    const [direction, delayMs, dueMs] of [
      ["requests", 4_000, 4_000],
      ["replies", 4_000, 4_000],
      [undefined, 4_000, 8_000],
    ] as const
  ) {
    all.proxy.delay(delayMs, direction);
    const ping = sent(all.client, "PING");
    await clock.tick(dueMs - 1);
    assertEquals(ping.settled, false, `${direction}`);
    await clock.tick(1);
    assertEquals(await ping.reply, "PONG");
    await all.proxy.resume();
    assertEquals(await all.client.send(["PING"]), "PONG");
  }
});

test("FaultProxy.slow() limits the bytes per second", async (all) => {
  await all.direct.send(["SET", "a", "x".repeat(10_000)]);
  using clock = startFakeClock();
  all.proxy.slow(1_000, "replies");
  const got = sent(all.client, "GET", "a");
  await clock.tick(5_000);
  const { replies, requests } = all.proxy.buffered;
  assertGreaterOrEqual(replies, 4_900);
  assertLess(replies, 5_100);
  assertEquals(requests, 0);
  await clock.tick(4_500);
  assertEquals(got.settled, false);
  await clock.tick(1_000);
  assertEquals(await got.reply, "x".repeat(10_000));
});

test("FaultProxy.hang() holds back what resume() forwards, also from clients that have left", async (all) => {
  {
    await using left = await connect(all.proxy.address);
    all.proxy.hang("requests");
    left.send(["SET", "a", "late"]).catch(() => {});
    await eventually(() => all.proxy.buffered.requests > 0);
  }
  await eventually(() => all.proxy.connections === 1);
  assertEquals(await all.direct.send(["GET", "a"]), null);
  await all.proxy.resume();
  await eventually(async () => assertEquals(await all.direct.send(["GET", "a"]), "late"));

  all.proxy.hang("replies");
  const set = sent(all.client, "SET", "b", "done");
  await eventually(() => all.proxy.buffered.replies > 0);
  assertEquals([await all.direct.send(["GET", "b"]), set.settled], ["done", false]);
  await all.proxy.resume();
  assertEquals(await set.reply, "OK");
});

test("FaultProxy.cut() drops what waits, and accepts new connections", async (all) => {
  all.proxy.hang("requests");
  const set = sent(all.client, "SET", "a", "1");
  await eventually(() => all.proxy.buffered.requests > 0);
  all.proxy.cut();
  const error = await assertRejects(() => set.reply, ConnectionError);
  assertEquals(error.outcome, "unknown");
  await all.proxy.resume();
  await using next = await connect(all.proxy.address);
  assertEquals(await next.send(["GET", "a"]), null);
});

test("FaultProxy.halfOpen() leaves the client without an answer, but not the next connection", async (all) => {
  all.proxy.halfOpen();
  const ping = sent(all.client, "PING");
  await using next = await connect(all.proxy.address);
  assertEquals(await next.send(["PING"]), "PONG");
  assertEquals([ping.settled, all.proxy.connections], [false, 2]);
  all.proxy.cut();
  await assertRejects(() => ping.reply, ConnectionError);
});

test("FaultProxy.refuse() resets and refuses connections until resume()", async (all) => {
  const [first, second] = [all.proxy.refuse(), all.proxy.refuse()];
  await Promise.all([first, second]);
  assertEquals(all.proxy.connections, 0);
  await assertRejects(() => connect(all.proxy.address), ConnectionError);
  await all.proxy.resume();
  await all.proxy.resume();
  await using next = await connect(all.proxy.address);
  assertEquals(await next.send(["PING"]), "PONG");
});

Deno.test("FaultProxy closes the connections of a server that does, or that refuses", async () => {
  await using nodes = await startNodes(1);
  await using proxy = await startProxy(nodes.addresses[0]);
  await using client = await connect(proxy.address);
  await nodes.node(0).crash();
  await eventually(() => assertEquals(proxy.connections, 0));
  await assertRejects(() => client.send(["PING"]), ConnectionError);
  await assertRejects(() => connect(proxy.address), ConnectionError);
  await nodes.node(0).restart();
  await using next = await connect(proxy.address);
  assertEquals(await next.send(["PING"]), "PONG");
});

test("FaultProxy.close() ends hung and half-open connections, and the proxy for good", async (all) => {
  const { proxy } = all;
  proxy.halfOpen();
  await using hung = await connect(proxy.address, PATIENT);
  proxy.hang();
  const ping = sent(hung, "PING");
  await eventually(() => proxy.buffered.requests > 0);
  await proxy.close();
  await proxy.close();
  await assertRejects(() => ping.reply, ConnectionError);
  const error = await assertRejects(() => proxy.resume(), Error);
  assertEquals(error.message, `Cannot resume proxy ${proxy.port} as it was closed`);
});

Deno.test("FaultProxy.delay() and slow() refuse what is out of range", async () => {
  await using proxy = await startProxy("redis://127.0.0.1");
  for (const delayMs of [-1, NaN, 2 ** 31]) {
    const message =
      `Cannot delay data as 'delayMs' must be a number from 0 to 2147483647: current value is ${delayMs}`;
    assertEquals(assertThrows(() => proxy.delay(delayMs), RangeError).message, message);
  }
  for (const bytesPerSecond of [0, -1, NaN]) {
    const message =
      `Cannot slow data as 'bytesPerSecond' must be greater than 0: current value is ${bytesPerSecond}`;
    assertEquals(assertThrows(() => proxy.slow(bytesPerSecond), RangeError).message, message);
  }
});

Deno.test("FaultProxy.delay(), slow() and hang() refuse what is of another type", async () => {
  await using proxy = await startProxy("redis://127.0.0.1");
  const text = "5" as unknown as number;
  assertEquals(
    assertThrows(() => proxy.delay(text), TypeError).message,
    "Cannot delay data as 'delayMs' must be a number: current type is 'string'",
  );
  assertEquals(
    assertThrows(() => proxy.slow(text), TypeError).message,
    "Cannot slow data as 'bytesPerSecond' must be a number: current type is 'string'",
  );
  const direction = "request" as "requests";
  for (const disturb of [() => proxy.delay(5, direction), () => proxy.hang(direction)]) {
    assertEquals(
      assertThrows(disturb, TypeError).message,
      "Cannot disturb proxy as 'direction' must be one of requests, replies",
    );
  }
});
