import { assertEquals } from "@std/assert";
import { QUEUE_LENGTH_MAX } from "../../../src/redis/connection.ts";
import { advanceUntil, runMicrotasks } from "../../support/fake_clock.ts";
import { FakeRequest, ticketOf } from "../../support/fake_request.ts";
import { FakeTransport, wire } from "../../support/fake_transport.ts";
import {
  BUSY_DELAY_MS,
  laterRelease,
  type NodeBench,
  NOSCRIPT,
  test,
  wholeRelease,
} from "../../support/redis_node_bench.ts";
import { LOST, RECONNECT_MS } from "../../support/stream_bench.ts";

/** How many releases are kept. */
const PENDING_MAX = 4_096;

const release = (value: string, keys: string | string[] = "k", ttlMs = 1_000) =>
  new FakeRequest(keys, { value, ttlMs });

// Connections that break

for (
  const [what, lose] of [
    ["was not sent", async (bench) => {
      await bench.hangUp();
      assertEquals(bench.release().answers, [["failed", 0, LOST]]);
    }],
    ["lost its reply", async (bench) => {
      const request = bench.release();
      await runMicrotasks();
      await bench.hangUp();
      assertEquals(request.answers, [["failed", 0, LOST]]);
    }],
    ["could not send its script after NOSCRIPT", async (bench) => {
      bench.release();
      await bench.feed(`${NOSCRIPT}*x\r\n`);
    }],
    ["lost its connection again and again", async (bench) => {
      await bench.hangUp();
      bench.release();
      for (let breaks = 0; breaks < 3; breaks++) {
        assertEquals(await bench.reconnect(), wholeRelease());
        await bench.hangUp();
      }
    }],
    ["had a ticket, which is not sent again", async (bench) => {
      bench.release(new FakeRequest("k", { ticket: ticketOf() }));
      await bench.hangUp();
    }],
  ] as readonly [string, (bench: NodeBench) => Promise<void>][]
) {
  test.opened(`RedisNode keeps a release that ${what}, and sends it whole on the next connection`, async (bench) => {
    await lose(bench);
    assertEquals(await bench.reconnect(), wholeRelease());
  });
}

test("RedisNode keeps a release of several keys that waited for a first connection", async (bench) => {
  bench.network.mode = "refuse";
  bench.release(release("v", ["k", "é"]));
  await runMicrotasks();
  assertEquals(await bench.reconnect(), wholeRelease("v", "k", "é"));
});

for (const operation of ["acquire", "extend", "raiseCounters", "release"] as const) {
  test.opened(`RedisNode never sends ${operation}() again if no key of the node can be set`, async (bench) => {
    const request = () => new FakeRequest("k", { counterFloor: 1, maybeSet: 0b1011 });
    bench.ask(operation, request(), 2);
    await runMicrotasks();
    await bench.hangUp();
    bench.ask(operation, request(), 2);
    assertEquals(await bench.reconnect(), "");
  });
}

test.opened("RedisNode sends pending releases in order, before anything else on the new connection", async (bench) => {
  await bench.hangUp();
  bench.release(release("v1", "k"));
  bench.release(release("v2", "l"));
  bench.network.mode = "wait";
  await bench.advance(RECONNECT_MS);
  const opened = Object.assign(new FakeTransport(), {
    unref: () => queueMicrotask(() => bench.ask("acquire")), // in the tick in which the connection is opened
  });
  bench.network.pending[0].accept(opened);
  await runMicrotasks();
  const set = wire("SET", "k", "v", "NX", "PX", "1000");
  assertEquals(opened.writes, [wholeRelease("v1", "k") + laterRelease("v2", "l") + set]);
});

for (const reply of [":1\r\n", ":0\r\n", "-WRONGTYPE Operation against a key\r\n", "-OOM no\r\n"]) {
  test.opened(`RedisNode is done with a pending release by ${JSON.stringify(reply)}, which answers nothing else`, async (bench) => {
    await bench.hangUp();
    const released = bench.release();
    await bench.reconnect();
    const request = await bench.send("acquire");
    await bench.answer(`${reply}$-1\r\n`);
    assertEquals([request.outcomes, released.answers.length], [["denied"], 1]);
    await bench.advance(BUSY_DELAY_MS);
    assertEquals(bench.written, "");
    await bench.hangUp();
    assertEquals(await bench.reconnect(), "");
  });
}

for (const [passedMs, sent] of [[999, wholeRelease()], [1_000, ""]] as const) {
  test.opened(`RedisNode ${sent ? "sends" : "drops"} a release of a key that lived for a second when ${passedMs} ms have passed`, async (bench) => {
    bench.network.mode = "wait";
    await bench.hangUp();
    bench.release();
    await bench.clock.advance(passedMs);
    bench.network.pending[0].accept();
    await runMicrotasks();
    assertEquals(bench.written, sent);
  });
}

test.opened("RedisNode counts the life of a key from the first failure of its release, however often it is kept", async (bench) => {
  await bench.hangUp();
  bench.release();
  assertEquals(await bench.reconnect(), wholeRelease());
  await bench.advance(600);
  bench.network.mode = "refuse";
  await bench.hangUp();
  await bench.advance(400);
  assertEquals(await bench.reconnect(), "");
});

test("RedisNode drops the oldest pending release for one more than it keeps", async (bench) => {
  bench.use({ connectTimeoutMs: 60_000 });
  await bench.opened();
  await bench.hangUp();
  for (let count = 0; count <= PENDING_MAX; count++) bench.release(release("v", `key${count}`));
  const expected = Array.from({ length: PENDING_MAX }, (_, index) => {
    return (index === 0 ? wholeRelease : laterRelease)("v", `key${index + 1}`);
  });
  assertEquals(await bench.reconnect(), expected.join(""));
});

// Servers that are busy

for (const busy of ["LOADING Redis is loading the dataset in memory", "BUSY Redis is busy"]) {
  test.opened(`RedisNode sends releases again half a second after ${busy}, together, within their TTL`, async (bench) => {
    const requests = ["v1", "v2"].map((value) =>
      bench.release(release(value, "k", 3 * BUSY_DELAY_MS))
    );
    await runMicrotasks();
    for (let replies = 0; replies < 2; replies++) {
      await bench.answer(`-${busy}\r\n`.repeat(2));
      for (const { answers } of requests) assertEquals(answers, [["failed", 0, busy]]);
      await bench.advance(BUSY_DELAY_MS - 1);
      assertEquals(bench.written, "");
      await bench.advance(1);
      assertEquals(bench.transport.writes, [laterRelease("v1") + laterRelease("v2")]);
    }
    await bench.answer(`:1\r\n-${busy}\r\n`);
    await bench.advance(2 * BUSY_DELAY_MS);
    assertEquals(bench.written, "");
  });

  test.opened(`RedisNode sends nothing again that could set a key after ${busy}`, async (bench) => {
    bench.ask("acquire");
    await bench.send("extend");
    await bench.answer(`-${busy}\r\n-${busy}\r\n`);
    await bench.advance(2 * BUSY_DELAY_MS);
    assertEquals(bench.written, "");
  });
}

test.opened("RedisNode sends a release again after BUSY although another found no room before", async (bench) => {
  bench.release(release("busy"));
  const crowd = new FakeRequest();
  for (let count = 1; count < 2 * QUEUE_LENGTH_MAX; count++) bench.ask("release", crowd);
  bench.release(release("refused"));
  await runMicrotasks();
  await bench.answer("-BUSY no\r\n" + ":0\r\n".repeat(2 * QUEUE_LENGTH_MAX - 1));
  await bench.advance(BUSY_DELAY_MS);
  assertEquals(bench.written.includes(laterRelease("busy")), true);
});

for (const [when, mode] of [["sooner", "accept"], ["later", "refuse"]] as const) {
  test.opened(`RedisNode sends a release that met a busy server once, on the next connection if that is made ${when}`, async (bench) => {
    bench.release(release("v", "k", 10_000));
    await runMicrotasks();
    await bench.answer("-BUSY no\r\n");
    bench.network.mode = mode;
    await bench.hangUp();
    if (mode === "refuse") await bench.advance(BUSY_DELAY_MS + 100);
    assertEquals(await bench.reconnect(), wholeRelease());
    await bench.answer(":1\r\n");
    await bench.advance(2 * BUSY_DELAY_MS);
    assertEquals(bench.written, "");
  });
}

test.opened("RedisNode.close() drops pending releases", async (bench) => {
  bench.release();
  await runMicrotasks();
  await bench.answer("-BUSY no\r\n");
  await advanceUntil(bench.clock, bench.node.close());
  await bench.advance(2 * BUSY_DELAY_MS);
  assertEquals([bench.written, bench.network.transports.length], ["", 1]);
});
