import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { createRedlock } from "../../src/create_redlock.ts";
import type { RedlockOptions } from "../../src/options.ts";
import { Redlock, redlockOn } from "../../src/redlock.ts";
import { close, settle } from "../support/cluster_calls.ts";
import { runMicrotasks } from "../support/fake_clock.ts";
import { FakeCluster } from "../support/fake_nodes.ts";
import { FakeNetwork, wire } from "../support/fake_transport.ts";

/** Options as people write them, beside a plain object. */
class Configuration implements RedlockOptions {
  readonly #ttlMs: number;

  constructor(ttlMs: number) {
    this.#ttlMs = ttlMs;
  }

  get ttlMs(): number {
    return this.#ttlMs;
  }

  get keyPrefix(): string {
    return `app${this.#ttlMs}:`;
  }

  /** Not enumerable, so no unknown option. */
  describe(): string {
    return "a configuration";
  }
}

const KINDS: readonly (readonly [kind: string, make: (ttlMs: number) => RedlockOptions])[] = [
  ["a plain object", (ttlMs) => ({ ttlMs, keyPrefix: `app${ttlMs}:` })],
  ["an object with a prototype", (ttlMs) => Object.create({ ttlMs, keyPrefix: `app${ttlMs}:` })],
  [
    "an object without a prototype",
    (ttlMs) => Object.assign(Object.create(null), { ttlMs, keyPrefix: `app${ttlMs}:` }),
  ],
  ["an instance of a class", (ttlMs) => new Configuration(ttlMs)],
  ["an object with getters", (ttlMs) => ({
    get ttlMs() {
      return ttlMs;
    },
    get keyPrefix() {
      return `app${ttlMs}:`;
    },
  })],
];

for (const [kind, make] of KINDS) {
  Deno.test(`Redlock.acquire() with ${kind} uses the values of this call alone`, async () => {
    const cluster = new FakeCluster(1, { ttlMs: 4_000 });
    for (const ttlMs of [1_000, 2_000]) {
      await settle(cluster, cluster.redlock.acquire("a", make(ttlMs)));
    }
    await settle(cluster, cluster.redlock.acquire("a", {}));
    assertEquals(
      cluster.nodes[0].calls.map(({ keys: [key], ttlMs }) => [key, ttlMs]),
      [["app1000:a", 1_000], ["app2000:a", 2_000], ["a", 4_000]],
    );
    await close(cluster);
  });

  Deno.test(`Redlock made with ${kind} has one key for a resource, with and without options of a call`, async () => {
    const cluster = new FakeCluster(1);
    const redlock = redlockOn(cluster.wheel, cluster.nodes, make(1_000));
    await settle(cluster, redlock.acquire("a"));
    for (const options of [{}, { waitMs: 0 }, undefined]) {
      assertEquals(await settle(cluster, redlock.tryAcquire("a", options)), undefined);
    }
    const keys = cluster.nodes[0].calls.map(({ keys: [key], ttlMs }) => [key, ttlMs]);
    assertEquals(keys, Array(4).fill(["app1000:a", 1_000]));
    await close(cluster);
  });

  Deno.test(`createRedlock() takes the options of ${kind}`, async () => {
    const network = new FakeNetwork();
    const options = Object.defineProperty(make(1_000), "connect", { value: network.connect });
    const redlock = createRedlock(["redis://h"], options);
    const trying = redlock.tryAcquire("a").catch(() => {});
    await runMicrotasks();
    const [value] = network.last.written.match(/[0-9a-f]{40}/u)!;
    assertEquals(network.last.writes, [wire("SET", "app1000:a", value, "NX", "PX", "1000")]);
    network.last.end();
    await trying;
    await redlock.close();
  });
}

Deno.test("Redlock keeps what a getter of its options answered when it was made", async () => {
  let prefix = "one:";
  const cluster = new FakeCluster(1);
  const redlock = redlockOn(cluster.wheel, cluster.nodes, {
    get keyPrefix() {
      return prefix;
    },
  });
  prefix = "two:";
  await settle(cluster, redlock.acquire("a"));
  await settle(cluster, redlock.acquire("b", {}));
  assertEquals(cluster.nodes[0].calls.map(({ keys: [key] }) => key), ["one:a", "one:b"]);
  await close(cluster);
});

Deno.test("Redlock reads a getter of a call's options once", async () => {
  const cluster = new FakeCluster(1);
  let reads = 0;
  const options = {
    get ttlMs() {
      return [1_000, 5][reads++];
    },
  };
  await settle(cluster, cluster.redlock.acquire("a", options));
  assertEquals([cluster.nodes[0].calls[0].ttlMs, reads], [1_000, 1]);
  await close(cluster);
});

Deno.test("Redlock refuses an unknown option beside known ones, also an inherited one, each time", async () => {
  const cluster = new FakeCluster(1);
  await settle(cluster, cluster.redlock.acquire("a", { ttlMs: 1_000 }));
  for (const options of [{ ttlMs: 1_000, ttl: 1 }, Object.create({ ttlMs: 1_000, ttl: 1 })]) {
    for (let time = 0; time < 2; time++) {
      const error = await assertRejects(() => cluster.redlock.acquire("b", options), TypeError);
      assert(
        error.message.startsWith("Cannot acquire lock as option 'ttl' is unknown: valid options"),
      );
    }
    assertThrows(() => new Redlock(cluster.nodes, options), TypeError);
    assertThrows(() => createRedlock(["redis://h"], options), TypeError);
  }
  await close(cluster);
});
