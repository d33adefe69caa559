import { assertEquals } from "@std/assert";
import { FakeRequest } from "../../support/fake_request.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { FakeTransport, wire } from "../../support/fake_transport.ts";
import {
  Bench,
  BUSY_DELAY_MS,
  laterRelease,
  leftover,
  LOST,
  NOSCRIPT,
  RECONNECT_MS,
} from "../../support/redis_node_bench.ts";

/** How many releases are kept. */
const LEFTOVERS_MAX = 4_096;

Deno.test("RedisNode keeps a release that was not sent, and sends it whole on the next connection", async () => {
  const bench = new Bench();
  await bench.open();
  await bench.hangUp();
  assertEquals(bench.release().answers, [["failed", 0, LOST]]);
  assertEquals(await bench.reconnect(), leftover());
  await bench.close();
});

Deno.test("RedisNode keeps a release of several keys", async () => {
  const bench = new Bench();
  await bench.open();
  await bench.hangUp();
  bench.release(new FakeRequest(["k", "é"]));
  assertEquals(await bench.reconnect(), leftover("v", "k", "é"));
  await bench.close();
});

Deno.test("RedisNode keeps a release whose reply got lost", async () => {
  const bench = new Bench();
  await bench.open();
  const request = bench.release();
  await runMicrotasks();
  await bench.hangUp();
  assertEquals(request.answers, [["failed", 0, LOST]]);
  assertEquals(await bench.reconnect(), leftover());
  await bench.close();
});

Deno.test("RedisNode keeps a release whose script was not sent after NOSCRIPT", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.release();
  await runMicrotasks();
  transport.feed(`${NOSCRIPT}*x\r\n`);
  await runMicrotasks();
  assertEquals(await bench.reconnect(), leftover());
  await bench.close();
});

Deno.test("RedisNode keeps a release that waited for a first connection that could not be made", async () => {
  const bench = new Bench();
  bench.network.mode = "refuse";
  bench.release();
  await runMicrotasks();
  assertEquals(await bench.reconnect(), leftover());
  await bench.close();
});

Deno.test("RedisNode keeps no release where no key of the seat can stand", async () => {
  const bench = new Bench();
  await bench.open();
  await bench.hangUp();
  const request = new FakeRequest();
  request.maybeSet = 0b1011;
  bench.ask("release", request, 2);
  assertEquals(await bench.reconnect(), "");
  await bench.close();
});

for (const operation of ["acquire", "extend"] as const) {
  Deno.test(`RedisNode never sends ${operation}() again, whatever became of it`, async () => {
    const bench = new Bench();
    await bench.open();
    bench.ask(operation);
    await runMicrotasks();
    await bench.hangUp();
    bench.ask(operation);
    assertEquals(await bench.reconnect(), "");
    await bench.close();
  });
}

Deno.test("RedisNode sends leftovers in order, before anything else on the new connection", async () => {
  const bench = new Bench();
  await bench.open();
  await bench.hangUp();
  bench.release(new FakeRequest("k", "v1"));
  bench.release(new FakeRequest("l", "v2"));
  bench.network.mode = "wait";
  await bench.clock.advance(RECONNECT_MS);
  const opened = Object.assign(new FakeTransport(), {
    unref: () => queueMicrotask(() => bench.ask("acquire")), // in the tick in which the connection is opened
  });
  bench.network.pending[0].accept(opened);
  await runMicrotasks();
  assertEquals(
    bench.network.last.writes,
    [leftover("v1", "k") + laterRelease("v2", "l") + wire("SET", "k", "v", "NX", "PX", "1000")],
  );
  await bench.close();
});

for (const reply of [":1\r\n", ":0\r\n", "-WRONGTYPE Operation against a key\r\n", "-OOM no\r\n"]) {
  Deno.test(`RedisNode is done with a leftover by ${JSON.stringify(reply)}`, async () => {
    const bench = new Bench();
    await bench.open();
    await bench.hangUp();
    const request = bench.release();
    await bench.reconnect();
    await bench.answer(reply);
    await bench.clock.advance(BUSY_DELAY_MS);
    assertEquals(bench.network.last.written, "");
    await bench.hangUp();
    assertEquals(await bench.reconnect(), "");
    assertEquals(request.answers.length, 1); // whoever released heard the failure, and nothing since
    await bench.close();
  });
}

Deno.test("RedisNode hands no reply to a leftover to the command behind it", async () => {
  const bench = new Bench();
  await bench.open();
  await bench.hangUp();
  bench.release();
  await bench.reconnect();
  const request = bench.ask("acquire");
  await runMicrotasks();
  await bench.answer(":1\r\n$-1\r\n");
  assertEquals(request.answers.map(([outcome]) => outcome), ["denied"]);
  await bench.close();
});

Deno.test("RedisNode keeps a leftover again when its connection breaks too", async () => {
  const bench = new Bench();
  await bench.open();
  await bench.hangUp();
  bench.release();
  for (let breaks = 0; breaks < 3; breaks++) {
    assertEquals(await bench.reconnect(), leftover());
    await bench.hangUp();
  }
  assertEquals(await bench.reconnect(), leftover());
  await bench.close();
});

for (const [passedMs, sent] of [[999, leftover()], [1_000, ""]] as const) {
  Deno.test(`RedisNode ${sent ? "sends" : "drops"} a leftover of a second when ${passedMs} ms have passed`, async () => {
    const bench = new Bench();
    await bench.open();
    bench.network.mode = "wait";
    await bench.hangUp();
    bench.release();
    await bench.clock.advance(passedMs);
    bench.network.pending[0].accept();
    await runMicrotasks();
    assertEquals(bench.network.last.written, sent);
    await bench.close();
  });
}

Deno.test("RedisNode counts a leftover's time from its first failure, however often it is kept again", async () => {
  const bench = new Bench();
  await bench.open();
  await bench.hangUp();
  bench.release();
  assertEquals(await bench.reconnect(), leftover());
  await bench.clock.advance(600);
  bench.network.mode = "refuse";
  await bench.hangUp();
  await bench.clock.advance(400);
  assertEquals(await bench.reconnect(), "");
  await bench.close();
});

Deno.test("RedisNode drops the oldest leftover for one more than it keeps", async () => {
  const bench = new Bench({ connectTimeoutMs: 60_000 });
  await bench.open();
  await bench.hangUp();
  for (let count = 0; count <= LEFTOVERS_MAX; count++) {
    bench.release(new FakeRequest(`key${count}`));
  }
  const expected = Array.from({ length: LEFTOVERS_MAX }, (_, index) => {
    return (index === 0 ? leftover : laterRelease)("v", `key${index + 1}`);
  });
  assertEquals(await bench.reconnect(), expected.join(""));
  await bench.close();
});

Deno.test("RedisNode.close() forgets leftovers, and leaves no timer", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.release();
  await runMicrotasks();
  await bench.answer("-BUSY no\r\n");
  await bench.close();
  await bench.clock.advance(2 * BUSY_DELAY_MS);
  assertEquals([transport.written, bench.network.transports.length], ["", 1]);
});
