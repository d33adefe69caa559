import { assertEquals } from "@std/assert";
import type { RedlockOptions } from "../../src/options.ts";
import { Cluster, TTL_MS } from "../support/cluster.ts";

const NAMES = ["a", "b"];
const WAITS: RedlockOptions = { any: true, waitMs: 50_000, retryDelayMaxMs: 60_000 };

/** The keys that attempts with a ticket and without one were for, as the first node saw them. */
function attempts({ nodes: [node] }: Cluster): string[] {
  return node.asked("acquire").map(({ keys, priority }) => `${keys}${priority ? " queues" : ""}`);
}

/** What the attempts are during a call. */
async function attemptsOf(cluster: Cluster, call: () => Promise<unknown>): Promise<string[]> {
  const before = attempts(cluster).length;
  await call();
  return attempts(cluster).slice(before);
}

/** Has somebody else have all of them until a call waits for any, and then release "a". */
async function contend(cluster: Cluster): Promise<void> {
  for (const name of NAMES) cluster.occupy(name);
  const acquiring = cluster.redlock.acquire(NAMES, WAITS);
  await cluster.advance(100);
  for (const name of NAMES) cluster.free(name);
  await cluster.settle((await cluster.settle(acquiring, 50)).release());
}

Deno.test("a client that released one of several while others wait comes behind them with its next call", async () => {
  const cluster = new Cluster();
  const lock = await cluster.lock(WAITS, NAMES);
  const [name] = lock.resources;
  for (const node of cluster.nodes) node.enqueue(name, "other:1");
  await cluster.settle(lock.release());
  cluster.fraction = 0.9;
  const next = cluster.redlock.acquire(NAMES, WAITS);
  await cluster.advance(10);
  assertEquals(cluster.holders(name), [undefined, undefined, undefined]); // it is kept for the one who waits
  await cluster.settle((await cluster.settle(next)).release());
});

Deno.test("once nobody waits for any one of several, a lock costs what it did before", async () => {
  const cluster = new Cluster();
  await contend(cluster);
  await cluster.settle((await cluster.lock(WAITS, NAMES)).release());
  const sent = await attemptsOf(cluster, async () => {
    await cluster.settle((await cluster.lock(WAITS, NAMES)).release());
  });
  assertEquals(sent, ["a"]);
});

Deno.test("a call that has waited behind others of its client asks for none that they have", async () => {
  const cluster = new Cluster();
  const sent = await attemptsOf(cluster, async () => {
    const calls = NAMES.map(() => cluster.redlock.acquire(NAMES, WAITS));
    await cluster.settle(Promise.all(calls));
  });
  assertEquals(sent.length, 2, `${sent}`);
});

Deno.test("a call whose time is over after its first answers asks for those that are free, as one that may not wait", async () => {
  for (const waitMs of [0, 1]) {
    for (const contended of [false, true]) {
      const cluster = new Cluster();
      if (contended) await contend(cluster);
      cluster.fraction = 0;
      cluster.occupy("a");
      for (const node of cluster.nodes) node.requestMs = 5;
      assertEquals((await cluster.lock({ any: true, waitMs }, NAMES)).resources, ["b"]);
    }
  }
});

Deno.test("a call asks for none that is in its cooldown, if this client has the others", async () => {
  const cluster = new Cluster(3, { cooldownMs: 5_000, ttlMs: 10 * TTL_MS });
  await cluster.lock({}, "b");
  await cluster.lock({ ttlMs: TTL_MS }, "a");
  await cluster.advance(TTL_MS);
  for (const fraction of [0, 0.9]) {
    cluster.fraction = fraction;
    assertEquals(await cluster.try({ any: true }, NAMES), undefined);
  }
});

Deno.test("a call that has waited for the end of a cooldown asks for what is in none", async () => {
  const cluster = new Cluster(3, { cooldownMs: 5_000 });
  await cluster.lock({}, "a");
  await cluster.advance(2 * TTL_MS);
  await cluster.lock({}, "b");
  await cluster.advance(TTL_MS);
  cluster.fraction = 0.9;
  const sent = await attemptsOf(cluster, () => cluster.lock(WAITS, NAMES));
  assertEquals(sent, ["a"]);
});

Deno.test("a ticket that left the queues of many is taken out once when messages about each of them arrive, and again later", async () => {
  const cluster = new Cluster();
  for (const name of NAMES) cluster.occupy(name);
  const acquiring = cluster.redlock.acquire(NAMES, WAITS);
  await cluster.advance(100);
  const members = NAMES.map((name) => cluster.nodes[0].queue(name)[0]);
  cluster.free("a");
  await cluster.settle(acquiring, 50);
  const leaves = () => cluster.nodes.map((node) => node.leaves.length);
  assertEquals(leaves(), [0, 0, 0]);
  for (const times of [1, 2]) {
    for (const node of cluster.nodes) members.forEach((member) => node.notify(member));
    assertEquals(leaves(), [times, times, times]);
    await cluster.advance(1_000);
  }
});
