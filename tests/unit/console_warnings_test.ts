import { assertEquals } from "@std/assert";
import { TimerWheel } from "../../src/time/timer_wheel.ts";
import { CLIENTS_OPEN_MAX, manyClientsText, watchNodes } from "../../src/console_warnings.ts";
import { Cluster, TTL_MS } from "../support/cluster.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { create } from "../support/faked_redlock.ts";
import { startFakeClock } from "../../src/testing/mod.ts";

/** Keeps what is written by `console.warn`, until the end of the block. */
class Warnings implements Disposable {
  /** The texts. */
  readonly texts: unknown[] = [];
  readonly #warn = console.warn;

  /** @param warn What the console does instead of writing; by default, nothing. */
  constructor(warn: () => unknown = () => {}) {
    console.warn = (...data: unknown[]) => {
      this.texts.push(...data);
      return warn();
    };
  }

  [Symbol.dispose](): void {
    console.warn = this.#warn;
  }
}

const ADVICE = "Shown once; 'onEvent' replaces these warnings.";
const LOST = `@hasp/redlock: Lost lock "a" after 963 ms: its validity has ended. ` +
  `Its work may have run without the lock. ${ADVICE}`;
const TERM = '@hasp/redlock: A term with lock "a" failed. The next term begins in 1.5 s.';
const REFUSED = "Connection to redis://h:6379 could not be made: connection refused";

/** A client that has no listener. */
function silent(options: object = {}): Cluster {
  return new Cluster(3, { onEvent: undefined, ...options });
}

/** A watch of nodes, on a faked clock. */
function watched(nodeCount: number) {
  const clock = new FakeClock();
  const wheel = new TimerWheel(clock);
  const watch = watchNodes(wheel, nodeCount);
  const connect = (node: string) => watch({ type: "node-connected", node });
  const disconnect = (node: string, error = new Error(REFUSED)) =>
    watch({ type: "node-disconnected", node, error });
  return { clock, wheel, connect, disconnect };
}

Deno.test("a client without a listener warns of the first lock that is lost, and of no later one", async () => {
  using warnings = new Warnings();
  const cluster = silent();
  await cluster.redlock.acquire("a");
  await cluster.redlock.acquire("b");
  assertEquals(warnings.texts, []);
  await cluster.advance(TTL_MS);
  assertEquals(warnings.texts, [LOST]);
  await cluster.redlock.close();
});

Deno.test("a client warns of no lock that is released, or that ends because it is closed", async () => {
  using warnings = new Warnings();
  const cluster = silent();
  await cluster.redlock.using("a", () => {});
  await cluster.redlock.acquire("b");
  const closing = cluster.redlock.close();
  await cluster.advance(TTL_MS);
  await closing;
  assertEquals(warnings.texts, []);
});

for (
  const [what, warn] of [
    ["throws", () => {
      throw new Error("no console");
    }],
    ["rejects", () => Promise.reject(new Error("no console"))],
  ] as const
) {
  Deno.test(`a client goes on if console.warn ${what}`, async () => {
    using warnings = new Warnings(warn);
    const cluster = silent();
    const lock = await cluster.redlock.acquire("a");
    await cluster.advance(TTL_MS);
    assertEquals([warnings.texts, lock.signal.aborted], [[LOST], true]);
    const leading = cluster.rejection(cluster.redlock.lead("a", {}, () => Promise.reject("no")));
    await cluster.advance(10);
    await cluster.redlock.close();
    await leading;
    assertEquals(warnings.texts.slice(1), [TERM, "no"]);
  });
}

Deno.test("a client goes on if there is no console", async () => {
  const { console } = globalThis;
  try {
    globalThis.console = undefined as unknown as Console;
    const cluster = silent();
    const lock = await cluster.redlock.acquire("a");
    await cluster.advance(TTL_MS);
    assertEquals(lock.signal.aborted, true);
    await cluster.redlock.close();
  } finally {
    globalThis.console = console;
  }
});

Deno.test("the hundredth client that is open warns, once; none warns if each is closed after its use", async () => {
  using warnings = new Warnings();
  for (let calls = 0; calls < 2 * CLIENTS_OPEN_MAX; calls++) {
    await create(["redis://h"]).redlock.close();
  }
  assertEquals(warnings.texts, []);
  const { onEvent } = { onEvent: () => {} };
  const open = Array.from({ length: CLIENTS_OPEN_MAX - 1 }, () => silent().redlock);
  assertEquals(warnings.texts, []);
  open.push(silent({ onEvent }).redlock); // has a listener
  await open.pop()!.close();
  assertEquals(warnings.texts, []);
  for (const _ of [1, 2]) {
    open.push(silent().redlock);
    await open.pop()!.close();
  }
  assertEquals(warnings.texts, [manyClientsText()]);
  for (const redlock of open) await redlock.close();
});

Deno.test("watchNodes() warns of the first node that is unreachable for a minute, once", async () => {
  using warnings = new Warnings();
  const { clock, disconnect } = watched(3);
  disconnect("redis://h:6379");
  await clock.advance(59_900);
  assertEquals(warnings.texts, []);
  disconnect("redis://i:6379");
  await clock.advance(200);
  assertEquals(warnings.texts, [
    `@hasp/redlock: Node redis://h:6379 has been unreachable for a minute: ${REFUSED}. ` +
    `No lock can be acquired meanwhile. ${ADVICE}`,
  ]);
  await clock.advance(120_000);
  assertEquals(warnings.texts.length, 1);
});

Deno.test("watchNodes() starts the minute again when the node was reachable meanwhile", async () => {
  using warnings = new Warnings();
  const { clock, connect, disconnect } = watched(1);
  connect("a");
  for (let times = 0; times < 3; times++) {
    disconnect("a");
    await clock.advance(59_000);
    connect("a");
    await clock.advance(2_000);
  }
  assertEquals(warnings.texts, []);
  disconnect("a");
  await clock.advance(60_100);
  assertEquals(warnings.texts, [
    `@hasp/redlock: Node a has been unreachable for a minute: ${REFUSED}. ` +
    `No lock can be acquired meanwhile. ${ADVICE}`,
  ]);
});

Deno.test("watchNodes() keeps no process alive, and warns of nothing after the end of its client", async () => {
  using warnings = new Warnings();
  const { clock, wheel, disconnect } = watched(1);
  disconnect("a");
  assertEquals(clock.timersAlive, 0);
  wheel.close();
  await clock.advance(120_000);
  assertEquals([warnings.texts, clock.timers], [[], 0]);
});

Deno.test("watchNodes() shows no control characters of a server's text", async () => {
  using warnings = new Warnings();
  const { clock, disconnect } = watched(3);
  disconnect("a", new Error("\x1b[2J\nforged"));
  await clock.advance(60_100);
  assertEquals(String(warnings.texts).includes("\\u{1b}[2J\\u{a}forged. 2 of 3"), true);
});

Deno.test("createRedlock() warns of a node that is unreachable for a minute, without its password", async () => {
  using clock = startFakeClock();
  using warnings = new Warnings();
  const options = { onEvent: undefined, waitMs: 0 };
  const { redlock, network } = create(
    ["redis://user:hunter2@h", "redis://user:hunter2@i"],
    options,
  );
  const other = create(["redis://j"], { ...options, onEvent: () => {} });
  network.mode = other.network.mode = "refuse";
  await redlock.tryAcquire("a").catch(() => {});
  await other.redlock.tryAcquire("a").catch(() => {});
  await clock.tick(61_000);
  assertEquals(warnings.texts, [
    `@hasp/redlock: Node redis://h:6379 has been unreachable for a minute: ${REFUSED}. ` +
    `No lock can be acquired meanwhile. ${ADVICE}`,
  ]);
  await redlock.close();
  await other.redlock.close();
});
