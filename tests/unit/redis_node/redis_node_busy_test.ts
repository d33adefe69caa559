import { assert, assertEquals } from "@std/assert";
import { QUEUE_LENGTH_MAX } from "../../../src/redis/connection.ts";
import { FakeRequest } from "../../support/fake_request.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { Bench, BUSY_DELAY_MS, laterRelease, leftover } from "../../support/redis_node_bench.ts";

Deno.test("RedisNode sends a release again after BUSY although another found no room before", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.release(new FakeRequest("k", "busy"));
  const crowd = new FakeRequest();
  for (let count = 1; count < 2 * QUEUE_LENGTH_MAX; count++) bench.ask("release", crowd);
  bench.release(new FakeRequest("k", "refused"));
  await runMicrotasks();
  await bench.answer("-BUSY no\r\n" + ":0\r\n".repeat(2 * QUEUE_LENGTH_MAX - 1));
  await bench.clock.advance(BUSY_DELAY_MS);
  await runMicrotasks();
  assert(transport.written.includes(laterRelease("busy")));
  await bench.close();
});

for (const busy of ["LOADING Redis is loading the dataset in memory", "BUSY Redis is busy"]) {
  const [prefix] = busy.split(" ");

  Deno.test(`RedisNode sends a release again half a second after ${prefix}`, async () => {
    const bench = new Bench();
    const transport = await bench.open();
    const request = bench.release();
    await runMicrotasks();
    await bench.answer(`-${busy}\r\n`);
    assertEquals(request.answers, [["failed", 0, busy]]);
    await bench.clock.advance(BUSY_DELAY_MS - 1);
    assertEquals(transport.written, "");
    await bench.clock.advance(1);
    await runMicrotasks();
    assertEquals(transport.writes, [laterRelease()]);
    await bench.answer(":1\r\n");
    await bench.clock.advance(2 * BUSY_DELAY_MS);
    assertEquals(transport.written, "");
    await bench.close();
  });

  Deno.test(`RedisNode sends a leftover again and again while the server says ${prefix}, within its TTL`, async () => {
    const bench = new Bench();
    const transport = await bench.open();
    const request = new FakeRequest();
    request.ttlMs = 3 * BUSY_DELAY_MS;
    bench.release(request);
    await runMicrotasks();
    const sent: string[] = [];
    for (let replies = 0; replies < 5; replies++) {
      await bench.answer(`-${busy}\r\n`);
      await bench.clock.advance(BUSY_DELAY_MS);
      await runMicrotasks();
      if (transport.written === "") break;
      sent.push(transport.written);
    }
    assertEquals(sent, [laterRelease(), laterRelease()]);
    await bench.close();
  });

  Deno.test(`RedisNode sends nothing again that would set a key after ${prefix}`, async () => {
    const bench = new Bench();
    const transport = await bench.open();
    bench.ask("acquire");
    bench.ask("extend");
    await runMicrotasks();
    await bench.answer(`-${busy}\r\n-${busy}\r\n`);
    await bench.clock.advance(2 * BUSY_DELAY_MS);
    assertEquals(transport.written, "");
    await bench.close();
  });
}

Deno.test("RedisNode sends several releases that met a busy server together", async () => {
  const bench = new Bench();
  const transport = await bench.open();
  bench.release(new FakeRequest("k", "v1"));
  bench.release(new FakeRequest("k", "v2"));
  await runMicrotasks();
  await bench.answer("-BUSY no\r\n-BUSY no\r\n");
  await bench.clock.advance(BUSY_DELAY_MS);
  await runMicrotasks();
  assertEquals(transport.writes, [laterRelease("v1") + laterRelease("v2")]);
  await bench.close();
});

Deno.test("RedisNode sends a release that met a busy server on the next connection, if that is sooner, and once", async () => {
  const bench = new Bench();
  await bench.open();
  bench.release();
  await runMicrotasks();
  await bench.answer("-BUSY no\r\n");
  await bench.hangUp();
  assertEquals(await bench.reconnect(), leftover());
  await bench.answer(":1\r\n");
  await bench.clock.advance(2 * BUSY_DELAY_MS);
  assertEquals(bench.network.last.written, "");
  await bench.close();
});

Deno.test("RedisNode keeps a release that met a busy server while it is down when the half second is over", async () => {
  const bench = new Bench();
  await bench.open();
  bench.release(Object.assign(new FakeRequest(), { ttlMs: 10_000 }));
  await runMicrotasks();
  await bench.answer("-BUSY no\r\n");
  bench.network.mode = "refuse";
  await bench.hangUp();
  await bench.clock.advance(BUSY_DELAY_MS + 100);
  assertEquals(await bench.reconnect(), leftover());
  await bench.close();
});
