import { assertEquals, assertInstanceOf, assertMatch } from "@std/assert";
import { QuorumError } from "../../src/errors.ts";
import type { RedlockOptions } from "../../src/options.ts";
import { Cluster, OTHER_VALUE, test, TTL_MS } from "../support/cluster.ts";

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

test("once nobody waits for any one of several, a lock costs what it did before", async (cluster) => {
  await contend(cluster);
  await cluster.settle((await cluster.lock(WAITS, NAMES)).release());
  const sent = await attemptsOf(cluster, async () => {
    await cluster.settle((await cluster.lock(WAITS, NAMES)).release());
  });
  assertEquals(sent, ["a"]);
});

test("a call that has waited behind others of its client asks for none that they have", async (cluster) => {
  const sent = await attemptsOf(cluster, async () => {
    const calls = NAMES.map(() => cluster.redlock.acquire(NAMES, WAITS));
    await cluster.settle(Promise.all(calls));
  });
  assertEquals(sent.length, 2, `${sent}`);
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

test("a ticket that left the queues of many is taken out once when messages about each of them arrive, and again later", async (cluster) => {
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

test("a call whose client knows that others wait for a further one of several asks for that behind them", async (cluster) => {
  const lock = await cluster.lock({}, "b");
  for (const node of cluster.nodes) node.enqueue("b", "other:1");
  await cluster.settle(lock.release());
  cluster.occupy("a");
  cluster.fraction = 0; // a choice at random is "a"
  const sent = await attemptsOf(cluster, () => cluster.lock(WAITS, NAMES));
  assertEquals(sent, ["a", "b queues", "b queues"]);
});

for (const [other, asks] of [[["other:1"], ["a queues"]], [[], ["a queues", "b queues"]]]) {
  test(`a call that waits is told of a key that is free unless it is for another (${asks})`, async (cluster) => {
    for (const name of NAMES) cluster.occupy(name);
    cluster.fraction = 0;
    for (const node of cluster.nodes) node.enqueue("b", ...other);
    const acquiring = cluster.redlock.acquire(NAMES, WAITS).catch(() => {});
    await cluster.advance(30);
    for (const node of cluster.nodes) {
      node.delete("b");
      node.notify(node.queue("a")[0]);
    }
    const sent = await attemptsOf(cluster, () => cluster.advance(20));
    assertEquals(sent, asks);
    await cluster.close();
    await acquiring;
  });
}

for (const order of ["before", "after"]) {
  test(`a call that hears that one of several was taken, ${order} a turn for another began, asks when that is over`, async (cluster) => {
    for (const name of NAMES) cluster.occupy(name);
    const acquiring = cluster.rejection(cluster.redlock.acquire(NAMES, WAITS));
    await cluster.advance(100);
    cluster.fraction = 0; // a choice at random is "a"
    const [one, other, last] = cluster.nodes;
    const taken = () =>
      [one, other].forEach((node) => node.notify(node.queue("a")[0], "taken", 5_000));
    if (order === "before") taken();
    for (const node of [last, other]) node.notify(node.queue("b")[0], "watch", 50);
    if (order === "after") taken();
    const sent = await attemptsOf(cluster, () => cluster.advance(60));
    assertEquals(sent, ["b queues"]);
    await cluster.close();
    await acquiring;
  });
}

for (const how of [{ any: true }, { any: false, mode: "shared" }] as const) {
  test(`a call that waits keeps its place if another of its client tries and has a lock beside it (${how.mode ?? "any"})`, async (cluster) => {
    for (const name of NAMES) cluster.occupy(name);
    const acquiring = cluster.redlock.acquire(NAMES, { ...WAITS, ...how });
    await cluster.advance(100);
    for (const node of cluster.nodes) NAMES.forEach((name) => node.delete(name));
    assertEquals((await cluster.try(how, NAMES))?.held, true);
    for (const node of cluster.nodes) node.notify(node.queue(NAMES[0])[0]);
    assertEquals((await cluster.settle(acquiring, 1)).held, true);
  });
}

test("a call that was notified in vain waits for two nodes that name the same one of several", async (cluster) => {
  for (const name of NAMES) cluster.occupy(name);
  const acquiring = cluster.rejection(cluster.redlock.acquire(NAMES, WAITS));
  await cluster.advance(100);
  const [one, other, last] = cluster.nodes;
  const after = (node: typeof one, name: string) =>
    attemptsOf(cluster, () => {
      node.notify(node.queue(name)[0]);
      return cluster.advance(0);
    });
  const sent = [
    await after(one, "a"),
    await after(one, "a"),
    await after(other, "b"),
    await after(last, "a"),
  ];
  assertEquals(sent, [["a queues"], [], [], ["a queues"]]);
  await cluster.close();
  await acquiring;
});

test("a call asks for the one of several that nodes answered to be free for another, when that turn is over", async (cluster) => {
  const lock = await cluster.lock(WAITS, NAMES);
  for (const node of cluster.nodes) node.enqueue("b", "other:1");
  cluster.occupy("a");
  await cluster.settle(lock.release()); // the turn for "b" begins
  cluster.fraction = 0; // a choice at random is "a"
  const sent = await attemptsOf(cluster, async () => {
    assertEquals((await cluster.lock(WAITS, NAMES)).resources, ["b"]);
  });
  assertEquals([lock.resources, sent], [["b"], ["b queues", "b queues"]]);
});

test("a call asks when one of several expires, though another has taken the one that was free", async (cluster) => {
  const lock = await cluster.lock(WAITS, NAMES); // "b"
  for (const node of cluster.nodes) node.enqueue("b", "other:1");
  cluster.occupy("a", 3_000);
  await cluster.settle(lock.release()); // the turn for "b" begins
  const acquiring = cluster.redlock.acquire(NAMES, WAITS);
  await cluster.advance(10);
  cluster.occupy("b", 60_000);
  for (const node of cluster.nodes) node.notify(node.queue("b").at(-1)!, "taken", 60_000);
  assertEquals((await cluster.settle(acquiring, 3_100)).resources, ["a"]);
});

test("a call asks again soon if a quorum of nodes have one free, but not the same", async (cluster) => {
  const names = [...NAMES, "c"];
  for (const name of names) cluster.occupy(name);
  const acquiring = cluster.rejection(cluster.redlock.acquire(names, WAITS));
  await cluster.advance(100);
  const [one, other, last] = cluster.nodes;
  one.delete("a");
  other.delete("b");
  last.notify(last.queue("c")[0]);
  const [first, ...rest] = await attemptsOf(cluster, () => cluster.advance(50));
  assertEquals([first, rest.length > 0], ["c queues", true]);
  await cluster.close();
  await acquiring;
});

test("a call polls while clients of other libraries have all, whose releases notify nobody", async (cluster) => {
  for (const name of NAMES) cluster.occupy(name, Infinity, "of another library");
  const acquiring = cluster.redlock.acquire(NAMES, WAITS);
  await cluster.advance(3_000);
  for (const node of cluster.nodes) node.delete("b");
  assertEquals((await cluster.settle(acquiring, 500)).resources, ["b"]);
});

test("a call that polls asks again for each of several, not only for the one that it asked for last", async (cluster) => {
  for (const name of NAMES) cluster.occupy(name);
  const acquiring = cluster.redlock.acquire(NAMES, { ...WAITS, notify: false });
  await cluster.advance(1_000);
  assertEquals(attempts(cluster).slice(0, 2), ["b", "a"]);
  cluster.fraction = 0.1; // a choice at random is "a"
  cluster.free("b");
  assertEquals((await cluster.settle(acquiring, 10_000)).resources, ["b"]);
});

test("a call that too few nodes answer asks for no other", async (cluster) => {
  cluster.set("fail", 1, 2);
  const sent = await attemptsOf(cluster, async () => {
    const error = await cluster.refusal({ any: true, waitMs: 0 }, NAMES);
    assertInstanceOf(error, QuorumError);
    assertMatch(error.message, /^Cannot acquire any of locks "a", "b": 1 of 3 nodes granted it, /);
  });
  await cluster.close();
  const { message } = await cluster.refusal({ any: true }, NAMES);
  assertEquals(message, 'Cannot acquire any of locks "a", "b": the lock client is closed');
  assertEquals(sent.length, 1);
});

test("a ticket leaves the queues of a node that puts it there when the lock is won", async (cluster) => {
  for (const name of NAMES) cluster.occupy(name);
  const acquiring = cluster.redlock.acquire(NAMES, WAITS);
  await cluster.advance(100);
  const [one, other, last] = cluster.nodes;
  last.forget();
  for (const name of NAMES) last.set(name, OTHER_VALUE);
  last.mode = "hang";
  for (const node of [one, other]) node.free("b");
  assertEquals((await cluster.settle(acquiring, 50)).resources, ["b"]);
  last.resume();
  await cluster.advance(1);
  assertEquals([last.leaves.length, ...NAMES.map((name) => last.queue(name).length)], [1, 0, 0]);
});

test("a call for any one and one for all of the same wait beside each other", async (cluster) => {
  for (const name of NAMES) cluster.occupy(name);
  const calls = [true, false].map((any) => cluster.refusal({ ...WAITS, any }, NAMES));
  await cluster.advance(100);
  assertEquals(cluster.queueLengths, [2, 2, 2]);
  await cluster.close();
  await Promise.all(calls);
});
