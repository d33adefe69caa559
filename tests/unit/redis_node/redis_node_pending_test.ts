import { assertEquals, assertLess, assertStringIncludes } from "@std/assert";
import type { QuorumRequest } from "../../../src/quorum/quorum_node.ts";
import { releaseOperation } from "../../../src/redis_node/redis_node.ts";
import { PendingReleases } from "../../../src/redis_node/pending_releases.ts";
import { GIVE_BACK } from "../../../src/redis_node/scripts/adopt.ts";
import { KEEP } from "../../../src/redis_node/scripts/readers.ts";
import { RELEASE, RELEASE_QUEUED } from "../../../src/redis_node/scripts/release.ts";
import { systemClock } from "../../../src/time/clock.ts";
import { TimerWheel } from "../../../src/time/timer_wheel.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { FakeRequest, TICKET_ID, ticketOf } from "../../support/fake_request.ts";
import { PING, wire } from "../../support/fake_transport.ts";
import { wordsOf } from "../../support/keyspace_node.ts";
import {
  groupRelease,
  laterRelease,
  type NodeBench,
  NOSCRIPT,
  REFUSED_DELAY_MS,
  test,
  wholeRelease,
} from "../../support/redis_node_bench.ts";
import { LOST, PONG } from "../../support/stream_bench.ts";

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
    ["had a ticket that waits on, which is not sent again", async (bench) => {
      bench.release(new FakeRequest("k", { ticket: ticketOf(), keepsTicket: true }));
      await bench.hangUp();
    }],
  ] as readonly [string, (bench: NodeBench) => Promise<void>][]
) {
  test.opened(`RedisNode keeps a release that ${what}, and sends it whole on the next connection`, async (bench) => {
    await lose(bench);
    assertEquals(await bench.reconnect(), wholeRelease());
  });
}

test.opened("RedisNode keeps a release together with the ticket that it takes out of the queues", async (bench) => {
  bench.release(new FakeRequest("k", { ticket: ticketOf() }));
  await bench.hangUp();
  const words = ["1", "k", "v", TICKET_ID];
  assertEquals(await bench.reconnect(), wire("EVALSHA", RELEASE_QUEUED.sha1, ...words));
});

test.opened("RedisNode keeps what gives a value back, and sends it on the next connection", async (bench) => {
  bench.release(new FakeRequest("k", { replaces: "old" }));
  await runMicrotasks();
  await bench.hangUp();
  assertEquals(await bench.reconnect(), wire("EVAL", GIVE_BACK.source, "1", "k", "v", "old"));
});

for (const mode of [undefined, "shared"] as const) {
  test.opened(`RedisNode shortens keys that are to live on by the time that is left, and deletes them later, in ${mode ?? "exclusive"} mode`, async (bench) => {
    const untilMs = bench.clock.monotonicMs() + 60_000;
    const keptMs = () => untilMs - bench.clock.monotonicMs();
    const request = bench.release(new FakeRequest("k", { ttlMs: 120_000, mode, keptMs }));
    await runMicrotasks();
    assertStringIncludes(bench.written, "\r\n$1\r\nv\r\n$5\r\n60000\r\n");
    await bench.hangUp();
    assertEquals(request.answers, [["failed", 0, LOST]]);
    await bench.clock.advance(100);
    const words = () => ["1", "k", "v", String(Math.ceil(keptMs())), "1"];
    assertEquals(await bench.reconnect(), wire("EVAL", KEEP.source, ...words()));
    bench.fraction = 1;
    for (const delayMs of [50, 100]) { // each time it is refused it asks for less
      await bench.answer("-BUSY no\r\n");
      await bench.advance(delayMs);
      assertEquals(bench.written, wire("EVALSHA", KEEP.sha1, ...words()));
    }
    await bench.hangUp();
    await bench.clock.advance(60_000);
    const { source } = mode ? RELEASE_QUEUED : RELEASE;
    assertEquals(await bench.reconnect(), wire("EVAL", source, "1", "k", "v"));
    await bench.answer(":1\r\n");
  });
}

Deno.test("keys expire at once if the time for which they live on is over when the script is written", () => {
  let leftMs = 5;
  const release = { keys: ["k"], value: "v", mode: "shared", keptMs: () => leftMs } as const;
  const operation = releaseOperation(release);
  leftMs = -5; // a server that has forgotten the script is sent it again
  assertEquals(wordsOf(operation, release).slice(2), ["1", "k", "v", "1", "1"]);
});

test.opened("RedisNode says to each node that forgot the script for how long keys live on by then", async (bench) => {
  await bench.send("release", new FakeRequest("k", { keptMs: () => 5 })); // is whole
  await bench.answer(":1\r\n");
  let leftMs = 5;
  const request = new FakeRequest("k", { keptMs: () => leftMs });
  for (const index of [0, 1]) await bench.send("release", request, index);
  for (; leftMs > 3; leftMs--) {
    await bench.answer(NOSCRIPT);
    assertEquals(bench.written, wire("EVAL", KEEP.source, "1", "k", "v", String(leftMs), "1"));
  }
});

test("RedisNode keeps a release of several keys that waited for a first connection", async (bench) => {
  bench.network.mode = "refuse";
  bench.release(release("v", ["k", "é"]));
  await runMicrotasks();
  assertEquals(await bench.reconnect(), wire("EVAL", RELEASE.source, "2", "k", "é", "v"));
});

test.opened("RedisNode sends pending releases in order, before anything else on the new connection", async (bench) => {
  await bench.hangUp();
  bench.release(release("v1", "k"));
  bench.release(release("v2", "l"));
  await bench.nextStream();
  bench.events.push = () => { // in the tick in which the connection is opened
    queueMicrotask(() => bench.ask("acquire"));
    return 0;
  };
  const { writes } = bench.transport;
  await bench.feed(PONG);
  const set = wire("SET", "k", "v", "NX", "PX", "1000");
  assertEquals(writes, [PING, groupRelease("EVAL", ["k", "v1"], ["l", "v2"]) + set]);
});

for (const [count, kept] of [[1_900, true], [2_100, false]] as const) {
  test(`PendingReleases ${kept ? "keeps" : "lets go of"} what is not needed any more, if there is ${kept ? "little" : "much"}`, async (bench) => {
    const wheel = new TimerWheel(bench.clock);
    let sent = 0;
    const node = { connection: { open: false }, server: { wheel }, ask: () => sent++ };
    const releases = new PendingReleases(node);
    releases.add(release("needless"));
    await bench.clock.advance(1_000);
    for (let id = 0; id < count; id++) releases.add(release(`${id}`));
    releases.sendAll();
    assertEquals(sent, count + (kept ? 1 : 0));
  });
}

for (const needed of [999, 29_999, Infinity]) {
  Deno.test(`PendingReleases looks at all of them seldom if ${needed} are needed at a time`, () => {
    let [nowMs, looks] = [0, 0];
    const clock = { ...systemClock, monotonicMs: () => (looks++, nowMs) };
    const server = { wheel: new TimerWheel(clock) };
    const releases = new PendingReleases({ connection: { open: false }, server, ask() {} });
    for (; nowMs < 100_000; nowMs++) releases.add(release("v", "k", needed));
    assertLess(looks, 10 * 100_000);
  });
}

test.opened("RedisNode sends a release once though its key must be gone: the server may have stood still", async (bench) => {
  bench.network.mode = "refuse";
  await bench.hangUp();
  bench.release();
  await bench.clock.advance(60_000);
  for (const written of [wholeRelease(), ""]) {
    assertEquals(await bench.reconnect(), written);
    await bench.hangUp();
  }
});

test("PendingReleases keeps what a lost connection did not take, though the server had refused another", async (bench) => {
  const server = { wheel: new TimerWheel(bench.clock) };
  const sent: unknown[] = [];
  const connection = { open: true };
  const ask = (_question: string, { value }: QuorumRequest) => sent.push(value);
  const node = { connection, server, ask };
  const releases = new PendingReleases(node);
  releases.add(release("refused", "k", 60_000));
  connection.open = false;
  releases.add(release("unsent"));
  await bench.clock.advance(10_000);
  assertEquals(sent, []);
  releases.sendAll();
  assertEquals(sent, ["refused", "unsent"]);
});

// Servers that refuse for the moment

test.opened("RedisNode asks by the next release if the server refuses one for good", async (bench) => {
  for (const value of ["v1", "v2"]) bench.release(release(value, "k", 10_000));
  await runMicrotasks();
  await bench.answer("-BUSY no\r\n");
  await bench.advance(REFUSED_DELAY_MS);
  await bench.answer("-NOPERM no\r\n");
  await bench.advance(2 * REFUSED_DELAY_MS);
  assertEquals(bench.written, laterRelease("v2"));
});

test.opened("RedisNode lets go of releases whose keys are gone, while the server refuses them", async (bench) => {
  const values = ["v1", "v2", "v3"];
  for (const value of values) bench.release(release(value, "k", 4 * REFUSED_DELAY_MS));
  await runMicrotasks();
  for (const [asked, value] of values.slice(0, 2).entries()) {
    await bench.answer("-BUSY no\r\n");
    await bench.advance(REFUSED_DELAY_MS * 2 ** asked);
    assertEquals(bench.written, laterRelease(value));
  }
  await bench.answer("-BUSY no\r\n");
  await bench.advance(4 * REFUSED_DELAY_MS);
  assertEquals([bench.written, bench.wheel.size], ["", 0]);
});

test.opened("RedisNode sends all releases once the server takes one, and asks again soon if it refuses the next", async (bench) => {
  const pairs = ["k", "l", "m"].map((key) => [key, `of ${key}`] as [string, string]);
  for (const [key, value] of pairs) bench.release(release(value, key, 10_000));
  await runMicrotasks();
  for (const delayMs of [REFUSED_DELAY_MS, 2 * REFUSED_DELAY_MS]) {
    await bench.answer("-BUSY no\r\n");
    await bench.advance(delayMs);
  }
  await bench.answer(":1\r\n");
  assertEquals(bench.written, groupRelease("EVALSHA", pairs[2], pairs[0]));
  await bench.answer("-BUSY no\r\n");
  await bench.advance(REFUSED_DELAY_MS);
  assertEquals(bench.written, laterRelease("of m", "m"));
});
