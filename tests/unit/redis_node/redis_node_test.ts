import { assertEquals, assertInstanceOf, assertStrictEquals } from "@std/assert";
import { ACQUIRE_ALL } from "../../../src/redis_node/scripts/acquire.ts";
import { EXTEND } from "../../../src/redis_node/scripts/extend.ts";
import { RELEASE, RELEASE_QUEUED } from "../../../src/redis_node/scripts/release.ts";
import { FakeRequest } from "../../support/fake_request.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { wire } from "../../support/fake_transport.ts";
import { Bench, LOST, NAME, NOSCRIPT } from "../../support/redis_node_bench.ts";

// What it is

Deno.test("RedisNode has its address without credentials for a name", () => {
  assertEquals(new Bench({}, "redis://user:hunter2@h/3").node.name, "redis://h:6379/3");
});

Deno.test("RedisNode connects when it is first asked, and not before", async () => {
  const bench = new Bench();
  await runMicrotasks();
  assertEquals(bench.network.targets, []);
  bench.ask("acquire");
  assertEquals(bench.network.targets, [{ kind: "tcp", hostname: "h", port: 6379 }]);
  await bench.close();
});

Deno.test("RedisNode.readyAtMs is when its first connecting was over", async () => {
  const bench = new Bench();
  bench.network.mode = "wait";
  bench.ask("acquire");
  assertEquals(bench.node.readyAtMs, Infinity);
  await bench.clock.advance(70);
  const readyAtMs = bench.clock.monotonicMs();
  bench.network.pending[0].accept();
  await runMicrotasks();
  assertEquals(bench.node.readyAtMs, readyAtMs);
  await bench.close();
});

Deno.test("RedisNode tells its observer of connections, under its name", async () => {
  const bench = new Bench();
  bench.ask("acquire");
  await runMicrotasks();
  assertEquals(bench.events, []); // nobody knows yet who has taken the connection
  await bench.answer("+OK\r\n");
  await bench.hangUp();
  await bench.reconnect();
  bench.ask("acquire");
  await runMicrotasks();
  await bench.answer("$-1\r\n");
  assertEquals(bench.events, [`${NAME} connected`, `${NAME}: ${LOST}`, `${NAME} connected`]);
  await bench.close();
});

Deno.test("RedisNode tells its observer once of a server behind a proxy that takes connections and closes them", async () => {
  const bench = new Bench();
  bench.ask("acquire");
  await runMicrotasks();
  for (let times = 0; times < 5; times++) {
    await bench.hangUp();
    await bench.reconnect();
  }
  assertEquals(bench.events, [`${NAME}: ${LOST}`]);
  await bench.close();
});

// What it writes

for (
  const [operation, keys, words] of [
    ["acquire", ["k"], ["SET", "k", "v", "NX", "PX", "1000"]],
    ["acquire", ["k", "l"], ["EVALSHA", ACQUIRE_ALL.sha1, "2", "k", "l", "v", "1000"]],
    ["extend", ["k"], ["EVALSHA", EXTEND.sha1, "1", "k", "v", "1000"]],
    ["extend", ["k", "l"], ["EVALSHA", EXTEND.sha1, "2", "k", "l", "v", "1000"]],
    ["release", ["k"], ["EVALSHA", RELEASE.sha1, "1", "k", "v"]],
    ["release", ["k", "l"], ["EVALSHA", RELEASE_QUEUED.sha1, "2", "k", "l", "v"]],
    ["acquire", ["é𝄞 \r\n"], ["SET", "é𝄞 \r\n", "v", "NX", "PX", "1000"]],
    ["extend", ["é𝄞"], ["EVALSHA", EXTEND.sha1, "1", "é𝄞", "v", "1000"]],
    ["release", ["é{𝄞}"], ["EVALSHA", RELEASE.sha1, "1", "é{𝄞}", "v"]],
    ["release", ["é", "𝄞"], ["EVALSHA", RELEASE_QUEUED.sha1, "2", "é", "𝄞", "v"]],
  ] as const
) {
  Deno.test(`RedisNode.${operation}() of ${JSON.stringify(keys)} writes ${words[0]}`, async () => {
    const bench = new Bench();
    await bench.open();
    bench.ask(operation, new FakeRequest(keys));
    await runMicrotasks();
    assertEquals(bench.network.last.written, wire(...words));
    await bench.close();
  });
}

for (const operation of ["acquire", "extend", "release"] as const) {
  Deno.test(`RedisNode.${operation}() encodes its command once for all nodes`, async () => {
    const [bench, other] = [new Bench(), new Bench()];
    await Promise.all([bench.open(), other.open()]);
    const request = bench.ask(operation);
    const { shared } = request;
    assertInstanceOf(shared, Uint8Array);
    other.ask(operation, request, 1);
    assertStrictEquals(request.shared, shared);
    await runMicrotasks();
    assertEquals(other.network.last.written, bench.network.last.written);
    await Promise.all([bench.close(), other.close()]);
  });
}

Deno.test("RedisNode writes a key of many bytes whole", async () => {
  const bench = new Bench();
  const key = "ü".repeat(100_000);
  bench.ask("acquire", new FakeRequest(key));
  await runMicrotasks();
  assertEquals(bench.network.last.written, wire("SET", key, "v", "NX", "PX", "1000"));
  await bench.close();
});

Deno.test("RedisNode writes what one tick asks in one piece, in order", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  const request = bench.ask("acquire");
  request.shared = undefined;
  bench.ask("release", request);
  await runMicrotasks();
  assertEquals(transport.writes, [
    wire("SET", "k", "v", "NX", "PX", "1000") +
    wire("EVALSHA", RELEASE.sha1, "1", "k", "v"),
  ]);
  await bench.close();
});

// Scripts

for (
  const [operation, keys, { source, sha1 }, args] of [
    ["acquire", ["k", "l"], ACQUIRE_ALL, ["v", "1000"]],
    ["extend", ["k"], EXTEND, ["v", "1000"]],
    ["extend", ["k", "l"], EXTEND, ["v", "1000"]],
    ["release", ["k"], RELEASE, ["v"]],
    ["release", ["k", "l"], RELEASE_QUEUED, ["v"]],
  ] as const
) {
  const what = `RedisNode.${operation}() of ${keys.length}`;
  const words = [String(keys.length), ...keys, ...args];
  const whole = wire("EVAL", source, ...words);
  const digest = wire("EVALSHA", sha1, ...words);

  Deno.test(`${what} sends the script whole the first time on a connection, and its digest from then on`, async () => {
    const bench = new Bench();
    const transport = await bench.connect();
    transport.writes.length = 0;
    for (const reply of [undefined, ":1\r\n", ":0\r\n", "-OOM no\r\n"]) {
      if (reply !== undefined) await bench.answer(reply.repeat(transport.writes.length && 2));
      for (const request of [new FakeRequest(keys), new FakeRequest(keys)]) {
        bench.ask(operation, request);
      }
      await runMicrotasks();
      assertEquals(transport.written, (reply === undefined ? whole : digest) + digest);
    }
    await bench.close();
  });

  Deno.test(`${what} sends the script whole again on the next connection`, async () => {
    const bench = new Bench();
    await bench.open();
    await bench.hangUp();
    await bench.reconnect();
    bench.network.last.writes.length = 0;
    bench.ask(operation, new FakeRequest(keys));
    await runMicrotasks();
    assertEquals(bench.network.last.written, whole);
    await bench.close();
  });

  Deno.test(`${what} sends the script whole on NOSCRIPT, and counts its reply`, async () => {
    const bench = new Bench();
    await bench.open();
    const request = bench.ask(operation, new FakeRequest(keys), 4);
    await runMicrotasks();
    await bench.answer(NOSCRIPT);
    assertEquals(bench.network.last.written, whole);
    assertEquals(request.answers, []);
    await bench.answer(":1\r\n");
    assertEquals(request.answers, [["granted", 4, bench.clock.monotonicMs()]]);
    assertEquals(bench.network.last.written, "");
    await bench.close();
  });

  Deno.test(`${what} sends one whole script for many calls that are answered with NOSCRIPT`, async () => {
    const bench = new Bench();
    await bench.open();
    const requests = Array.from({ length: 50 }, () => bench.ask(operation, new FakeRequest(keys)));
    await runMicrotasks();
    await bench.answer(NOSCRIPT.repeat(50));
    assertEquals(bench.network.last.written, whole + digest.repeat(49));
    bench.ask(operation, new FakeRequest(keys));
    await runMicrotasks();
    await bench.answer(":1\r\n".repeat(50));
    for (const { answers } of requests) {
      assertEquals(answers.map(([outcome]) => outcome), ["granted"]);
    }
    await bench.answer(NOSCRIPT); // flushed once more
    assertEquals(bench.network.last.written, whole);
    await bench.close();
  });

  Deno.test(`${what} sends the script whole on a second NOSCRIPT to one request`, async () => {
    const bench = new Bench();
    await bench.open();
    const requests = [0, 1].map(() => bench.ask(operation, new FakeRequest(keys)));
    await runMicrotasks();
    await bench.answer(NOSCRIPT.repeat(2));
    await bench.answer(":1\r\n" + NOSCRIPT); // flushed between the two
    assertEquals(bench.network.last.written, whole);
    await bench.answer(":1\r\n");
    assertEquals(requests.map(({ answers }) => answers[0][0]), ["granted", "granted"]);
    await bench.close();
  });

  Deno.test(`${what} fails on NOSCRIPT to the whole script`, async () => {
    const bench = new Bench();
    await bench.open();
    const request = bench.ask(operation, new FakeRequest(keys));
    await runMicrotasks();
    await bench.answer(NOSCRIPT);
    await bench.answer(NOSCRIPT);
    assertEquals(bench.network.last.written, "");
    assertEquals(request.answers, [["failed", 0, NOSCRIPT.slice(1, -2)]]);
    await bench.close();
  });

  Deno.test(`${what} on NOSCRIPT when it is no longer wanted ${operation === "release" ? "sends the script all the same" : "fails, and sends nothing"}`, async () => {
    const bench = new Bench();
    await bench.open();
    const request = bench.ask(operation, new FakeRequest(keys));
    await runMicrotasks();
    request.wanted = false;
    await bench.answer(NOSCRIPT);
    const released = operation === "release";
    assertEquals(bench.network.last.written, released ? whole : "");
    assertEquals(request.answers, released ? [] : [["failed", 0, NOSCRIPT.slice(1, -2)]]);
    await bench.close();
  });
}
