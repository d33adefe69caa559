import { assert, assertEquals, assertInstanceOf, assertRejects, assertThrows } from "@std/assert";
import { LockHeldError } from "../../src/errors.ts";
import type { RedlockOptions } from "../../src/options.ts";
import { slots } from "../../src/resources.ts";
import { Cluster, OTHER_VALUE, test } from "../support/cluster.ts";

const ANY = { any: true, waitMs: 0 } as const;
const NAMES = ["a", "b", "c"];

/** The keys of all attempts, as the first node saw them. */
function attempts({ nodes }: Cluster): string[] {
  return nodes[0].asked("acquire").map(({ keys }) => keys.join("+"));
}

Deno.test("the key is the prefix and the resource, and the caller's array stays as it is", async () => {
  const cluster = new Cluster(3, { keyPrefix: "app:" });
  const names = [...NAMES];
  const lock = await cluster.lock(ANY, names);
  const [name] = lock.resources;
  assertEquals([names, cluster.holders(`app:${name}`)[0]], [NAMES, lock.value]);
});

test("a call for any one asks as a plain one does first, and for the one that it had last", async (cluster) => {
  const first = await cluster.lock(ANY, NAMES);
  const [name] = first.resources;
  await cluster.settle(first.release());
  await cluster.lock({}, "other");
  const acquired = cluster.events.filter(({ type }) => type === "acquired");
  assertEquals(acquired.map((event) => Reflect.get(event, "anyOf")), [NAMES, undefined]);
  for (let fraction = 0; fraction < 1; fraction += 0.25) {
    cluster.fraction = fraction;
    await cluster.settle((await cluster.lock(ANY, NAMES)).release());
  }
  assertEquals(attempts(cluster), [name, "other", name, name, name, name]);
});

Deno.test("nodes say which of the resources are free, and the next attempt is for one of them", async () => {
  const names = slots("gpu", 20);
  const cluster = new Cluster();
  for (const name of names) if (name !== "gpu:17") cluster.occupy(name);
  const lock = await cluster.lock(ANY, names);
  assertEquals(lock.resources, ["gpu:17"]);
  assert(attempts(cluster).length <= 3, `${attempts(cluster)}`);
});

Deno.test("of those that are free, the one that is so on most nodes is asked for", async () => {
  const cluster = new Cluster(5);
  const names = [...NAMES, "d", "e"];
  for (const name of names) cluster.occupy(name);
  cluster.nodes.slice(0, 3).forEach((node) => node.delete("c"));
  cluster.nodes.slice(1).forEach((node) => node.delete("d"));
  cluster.fraction = 0; // it begins with the first two
  assertEquals((await cluster.lock(ANY, names)).resources, ["d"]);
  assertEquals(attempts(cluster), ["a", "b", "d"]);
});

Deno.test("of those that are free on as many nodes, one is asked for at random", async () => {
  const names = [...NAMES, "d"];
  for (const [fraction, name] of [[0, "c"], [0.9, "d"]] as const) {
    const cluster = new Cluster();
    for (const held of ["a", "b"]) cluster.occupy(held);
    cluster.fraction = 0;
    cluster.nodes[0].before.acquire = () => {
      if (attempts(cluster).length === 2) cluster.fraction = fraction;
    };
    assertEquals((await cluster.lock(ANY, names)).resources, [name]);
  }
});

test("LockHeldError has all resources, and says that each of them is held", async (cluster) => {
  for (const name of NAMES) cluster.occupy(name, 700);
  const error = await cluster.refusal(ANY, NAMES);
  assertInstanceOf(error, LockHeldError);
  assertEquals(error.resources, NAMES);
  assertEquals(
    error.message,
    'Cannot acquire any of locks "a", "b", "c": each of them is held, or others compete for it; ' +
      "0 of 3 nodes granted it, 3 denied, 2 are needed",
  );
  const waited = await cluster.refusal({ any: true, waitMs: 300 }, NAMES);
  assertInstanceOf(waited, LockHeldError);
  assertEquals([waited.resources, waited.waiters], [NAMES, 1]);
  assertEquals(cluster.nodes.flatMap((node) => NAMES.flatMap((name) => node.queue(name))), []);
});

Deno.test("a call that waits stands in all queues, and gets the first that is released", async () => {
  const cluster = new Cluster(3, { retryDelayMaxMs: 60_000 });
  for (const name of NAMES) cluster.occupy(name);
  const acquiring = cluster.redlock.acquire(NAMES, { any: true, waitMs: 50_000 });
  await cluster.advance(100);
  const queues = NAMES.map((name) => cluster.nodes.map((node) => node.queue(name).length));
  assertEquals(queues, [[1, 1, 1], [1, 1, 1], [1, 1, 1]]);
  const scores = NAMES.map((name, index) => {
    const [ticket] = cluster.nodes[0].queue(name);
    assert(ticket.endsWith(`.${index + 1}`));
    return cluster.nodes[0].score(ticket, name);
  });
  assertEquals(new Set(scores).size, 1);
  const before = attempts(cluster).length;
  cluster.free("b");
  const lock = await cluster.settle(acquiring, 10);
  assertEquals([lock.resources, attempts(cluster).slice(before)], [["b"], ["b"]]);
  assertEquals(cluster.nodes.flatMap((node) => NAMES.flatMap((name) => node.queue(name))), []);
});

Deno.test("calls of one client wait behind each other, and each has a ticket of its own", async () => {
  const cluster = new Cluster(3, { retryDelayMaxMs: 60_000 });
  for (const name of NAMES) cluster.occupy(name);
  const options: RedlockOptions = { any: true, waitMs: 50_000 };
  const calls = [1, 2, 3].map(() => cluster.redlock.acquire(NAMES, options));
  await cluster.advance(100);
  assertEquals(cluster.nodes[0].queue("a").length, 1);
  for (const name of ["c", "a", "b"]) {
    cluster.free(name);
    assertEquals((await cluster.settle(calls.shift()!, 50)).resources, [name]);
  }
});

Deno.test("an attempt that got its key on too few nodes is undone, and its ticket goes back to all queues", async () => {
  const cluster = new Cluster(3, { retryDelayMaxMs: 60_000 });
  for (const name of NAMES) cluster.occupy(name);
  cluster.redlock.acquire(NAMES, { any: true, waitMs: 50_000 }).catch(() => {});
  await cluster.advance(100);
  cluster.nodes[0].free("b");
  await cluster.advance(5);
  assertEquals(cluster.nodes[0].messages.length, 1); // not again when it is put back
  assertEquals(cluster.holders("b"), [undefined, OTHER_VALUE, OTHER_VALUE]);
  assertEquals(NAMES.map((name) => cluster.nodes[0].queue(name).length), [1, 1, 1]);
  await cluster.close();
});

const REFUSED = [
  ["a", TypeError, "'resource' must be an array if 'any' is true"],
  [
    [],
    TypeError,
    "'resource' must be a non-empty string or a non-empty array of them: current type is 'empty Array'",
  ],
  [["a", "a"], TypeError, 'resource "a" is listed twice'],
  [
    Array.from({ length: 53 }, (_, index) => `${index}`),
    RangeError,
    "'resource' must have at most 52 elements if 'any' is true: current value is 53",
  ],
] as const;

for (const [resource, Class, reason] of REFUSED) {
  Deno.test(`acquire() with any: true refuses ${JSON.stringify(resource).slice(0, 20)}`, async () => {
    const { redlock } = new Cluster();
    const error = await assertRejects(() => redlock.acquire(resource, { any: true }), Class);
    assertEquals(error.message, `Cannot acquire lock as ${reason}`);
  });
}

Deno.test("slots() names as many as there are, and refuses what is no name or no count", () => {
  assertEquals(slots("gpu", 3), ["gpu:0", "gpu:1", "gpu:2"]);
  assertEquals([slots("a", 1).length, slots("a", 52).length], [1, 52]);
  for (const count of [0, 53, 1.5, NaN, -1]) {
    const message = assertThrows(() => slots("a", count), RangeError).message;
    assertEquals(
      message,
      `Cannot name slots as 'count' must be an integer from 1 to 52: current value is ${count}`,
    );
  }
  for (const name of ["", 1 as unknown as string]) {
    assertThrows(() => slots(name, 1), TypeError, "'name' must be a non-empty string");
  }
  assertThrows(() => slots("a", "2" as unknown as number), TypeError, "'count'");
});
