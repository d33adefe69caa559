import { assert, assertEquals, assertThrows } from "@std/assert";
import { createRedlock } from "../../src/create_redlock.ts";
import { publishedNode } from "../../src/nodes/published_node.ts";
import type { RedlockOptions } from "../../src/options.ts";
import { Redlock, redlockOn } from "../../src/redlock.ts";
import { Cluster } from "../support/cluster.ts";
import { runMicrotasks } from "../support/fake_clock.ts";
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

/** The TTL of a request, and its first key. */
function asked({ nodes: [{ calls }] }: Pick<Cluster, "nodes">): [ttlMs: number, key: string][] {
  return calls.map(({ ttlMs, keys }) => [ttlMs, keys[0]]);
}

const plain = (ttlMs: number) => ({ ttlMs, keyPrefix: `app${ttlMs}:` });
const KINDS: Record<string, (ttlMs: number) => RedlockOptions> = {
  "a plain object": plain,
  "an object with a prototype": (ttlMs) => Object.create(plain(ttlMs)),
  "an object without a prototype": (ttlMs) => Object.assign(Object.create(null), plain(ttlMs)),
  "an instance of a class": (ttlMs) => new Configuration(ttlMs),
};

for (const [kind, make] of Object.entries(KINDS)) {
  Deno.test(`acquire() with ${kind} as options uses the values of this call alone`, async () => {
    const cluster = new Cluster(1, { ttlMs: 4_000 });
    for (const options of [make(1_000), make(2_000), {}]) await cluster.lock(options);
    assertEquals(asked(cluster), [[1_000, "app1000:a"], [2_000, "app2000:a"], [4_000, "a"]]);
  });

  Deno.test(`Redlock and createRedlock() with ${kind} as options have one key for a resource, whatever options a call has`, async () => {
    const cluster = new Cluster(1);
    const nodes = cluster.nodes.map((node) => node.peer());
    const redlock = redlockOn(cluster.wheel, nodes, make(1_000));
    for (const options of [undefined, {}, { autoExtend: false }]) {
      await cluster.settle(redlock.tryAcquire("a", options));
    }
    assertEquals(asked({ nodes }), Array(3).fill([1_000, "app1000:a"]));
    const network = new FakeNetwork();
    const options = Object.defineProperty(make(1_000), "connect", { value: network.connect });
    const created = createRedlock(["redis://h"], options);
    const trying = created.tryAcquire("a").catch(() => {});
    await runMicrotasks();
    const [value] = network.last.written.match(/[0-9a-f]{40}:[0-9a-z]{6}:.*/u)!;
    assertEquals(network.last.writes, [wire("SET", "app1000:a", value, "NX", "PX", "1000")]);
    network.last.end();
    await trying;
    await created.close();
  });
}

Deno.test("Redlock reads a getter of its options, and of a call's, once", async () => {
  const cluster = new Cluster(1);
  let reads = 0;
  const options = () => ({
    get ttlMs() {
      return [1_000, 2_000, 5][reads++];
    },
  });
  const nodes = cluster.nodes.map((node) => node.peer());
  const redlock = redlockOn(cluster.wheel, nodes, options());
  await cluster.settle(redlock.acquire("a"));
  await cluster.settle(redlock.acquire("b", {}));
  await cluster.settle(redlock.acquire("c", options()));
  assertEquals([asked({ nodes }), reads], [[[1_000, "a"], [1_000, "b"], [2_000, "c"]], 2]);
});

Deno.test("acquire() sees options that were changed between two calls, and takes undefined for the client's own", async () => {
  const cluster = new Cluster(1, { ttlMs: 1_000 });
  const options: RedlockOptions = {};
  for (const ttlMs of [2_000, 3_000, undefined, 4_000]) {
    options.ttlMs = ttlMs;
    await cluster.lock(options, `${ttlMs}`);
  }
  for (const [index, other] of [{ waitMs: 1 }, {}, undefined].entries()) {
    await cluster.settle(cluster.redlock.acquire(`other ${index}`, other));
  }
  const ttls = asked(cluster).map(([ttlMs]) => ttlMs);
  assertEquals(ttls, [2_000, 3_000, 1_000, 4_000, 1_000, 1_000, 1_000]);
  options.ttlMs = 1;
  for (let time = 0; time < 2; time++) assert(await cluster.refusal(options) instanceof RangeError);
});

Deno.test("Redlock refuses an unknown option beside known ones, also an inherited one, each time", async () => {
  const cluster = new Cluster(1);
  await cluster.lock({ ttlMs: 1_000 });
  for (const options of [{ ttlMs: 1_000, ttl: 1 }, Object.create({ ttlMs: 1_000, ttl: 1 })]) {
    for (let time = 0; time < 2; time++) {
      const error = await cluster.refusal(options, "b");
      assert(error instanceof TypeError);
      const start = "Cannot acquire lock as option 'ttl' is unknown: valid options are ttlMs, ";
      assert(error.message.startsWith(start));
    }
    assertThrows(() => new Redlock([publishedNode(cluster.nodes[0])], options), TypeError);
    assertThrows(() => createRedlock(["redis://h"], options), TypeError);
  }
});
