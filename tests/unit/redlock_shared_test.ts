import { assert, assertEquals, assertInstanceOf, assertRejects, assertThrows } from "@std/assert";
import { LockHeldError } from "../../src/errors.ts";
import type { RedlockOptions } from "../../src/options.ts";
import { describeHolder } from "../../src/holder.ts";
import { SHARED } from "../../src/redis_node/scripts/readers.ts";
import { forceRelease } from "../../src/operate/mod.ts";
import { Cluster, test, TTL_MS } from "../support/cluster.ts";

const READ = { mode: "shared", waitMs: 0 } as const;
const WAIT: RedlockOptions = { waitMs: 50_000, ttlMs: 20_000, retryDelayMaxMs: 60_000 };
const READ_LATER = { ...WAIT, mode: "shared" } as const;

/** The readers on each node. */
function readers({ nodes }: Cluster, key = "a"): string[][] {
  return nodes.map((node) => node.readers(key));
}

test("any number of locks in shared mode are held together, and none beside an exclusive one", async (cluster) => {
  const other = cluster.peer();
  const locks = [];
  for (const client of [cluster.redlock, other, cluster.redlock]) {
    locks.push(await cluster.settle(client.acquire("a", READ)));
  }
  assertEquals(locks.map(({ held, mode }) => [held, mode]), Array(3).fill([true, "shared"]));
  const values = locks.map(({ value }) => value).sort();
  assertEquals(readers(cluster).map((found) => found.sort()), [values, values, values]);
  assertEquals(cluster.holders(), [SHARED, SHARED, SHARED]);
  assertInstanceOf(await cluster.refusal({ waitMs: 0 }), LockHeldError);
  for (const lock of locks) {
    assertEquals(await cluster.try(), undefined);
    assertEquals(await cluster.settle(lock.release()), true);
    assertEquals([lock.held, await cluster.settle(lock.release())], [false, true]);
  }
  const lock = await cluster.lock();
  assertEquals(lock.mode, "exclusive");
  assertEquals(readers(cluster), [[], [], []]);
  assertEquals(await cluster.try(READ), undefined);
  assertEquals(await cluster.settle(other.tryAcquire("a", READ)), undefined);
  const events = cluster.events.filter((event) => "mode" in event && event.mode === "shared");
  assertEquals(events.map(({ type }) => type), ["acquired", "acquired", "denied"]);
});

test("readers of one client ask beside each other if no other client is known to wait", async (cluster) => {
  const calls = [1, 2].map(() => cluster.redlock.acquire("a", READ_LATER));
  assertEquals(cluster.nodes.map((node) => node.asked("acquire").length), [2, 2, 2]);
  for (const lock of await cluster.settle(Promise.all(calls))) await cluster.settle(lock.release());
});

test("a key lives as long as its longest reader, and goes with the last", async (cluster) => {
  const [long, short] = [
    await cluster.lock({ ...READ, ttlMs: 5_000 }),
    await cluster.lock({ ...READ, ttlMs: 1_000 }),
  ];
  const lives = () => cluster.nodes.map((node) => Math.round(node.lifeMs() / 100) * 100);
  assertEquals(lives(), [5_000, 5_000, 5_000]);
  await cluster.settle(long.release());
  assertEquals(lives(), [1_000, 1_000, 1_000]);
  await cluster.settle(short.release());
  assertEquals(cluster.holders(), [undefined, undefined, undefined]);
});

test("a node that lost its keys is filled in by an extension, though a writer waits there", async (cluster) => {
  const lock = await cluster.lock(READ);
  cluster.forget(0);
  await cluster.settle(lock.extend());
  await cluster.advance(1);
  assertEquals(readers(cluster), [[lock.value], [lock.value], [lock.value]]);
  cluster.forget(0);
  cluster.nodes[0].enqueue("a", "other:1");
  const beside = await cluster.settle(cluster.peer().tryAcquire("a", { ...READ, ttlMs: 5_000 }));
  assertEquals(beside?.held, true);
  await cluster.settle(lock.extend());
  await cluster.advance(1);
  assertEquals(readers(cluster)[0].includes(lock.value), true);
});

test("a lost lock in shared mode leaves its own place, and the others keep theirs", async (cluster) => {
  const lost = await cluster.lock(READ);
  const kept = await cluster.lock({ ...READ, ttlMs: 5_000 });
  await cluster.advance(TTL_MS + 50);
  assertEquals([lost.held, kept.held], [false, true]);
  assertEquals(readers(cluster), [[kept.value], [kept.value], [kept.value]]);
});

// Waiting

test("a reader waits in the nodes' queues beside a writer of its client, and for no other key", async (cluster) => {
  cluster.occupy("a");
  const { nodes, redlock } = cluster;
  const calls = [redlock.acquire("a", READ_LATER), redlock.acquire("a", WAIT)];
  await cluster.advance(100);
  assertEquals(nodes.map((node) => node.queue().length), [2, 2, 2]);
  await cluster.settle((await cluster.settle(redlock.acquire("b", READ_LATER))).release());
  cluster.free("a");
  for (const call of calls) await cluster.settle((await cluster.settle(call)).release());
});

test("a reader that only tries does not pass a writer that waits, also while the key is free", async (cluster) => {
  const [first, other] = cluster.nodes;
  for (const node of cluster.nodes) node.enqueue("a", "other:1:50");
  assertEquals([await cluster.try(READ), await cluster.try(READ)], [undefined, undefined]);
  assertEquals(first.messages, ["other:1:50"]); // told once
  await cluster.advance(40);
  assertEquals(await cluster.try(READ), undefined);
  await cluster.advance(50);
  const lock = await cluster.try(READ); // the writer is stopped: its turn is over
  assertEquals([lock?.held, other.queue()], [true, ["other:1:50"]]);
  await cluster.settle(lock!.release());
  assertEquals(await cluster.try(READ), undefined); // it has another turn
  for (const node of cluster.nodes) node.leaveChannel("other");
  assertEquals((await cluster.try(READ))?.held, true);
});

// What is seen, and what is refused

test("inspect() and list() say how many share a resource; forceRelease() takes one of them away", async (cluster) => {
  const [one, other] = [await cluster.lock(READ), await cluster.lock(READ)];
  const { held, mode, holders, foreign } = await cluster.settle(cluster.redlock.inspect("a"));
  assertEquals([held, mode, foreign], [true, "shared", undefined]);
  assertEquals(holders, [one, other].map(({ value }) => describeHolder(value)));
  const { redlock } = cluster;
  assertEquals(await cluster.settle(forceRelease(redlock, "a", { holder: one.holder })), true);
  assertEquals(readers(cluster), Array(3).fill([other.value]));
  assertEquals((await cluster.settle(redlock.inspect("a"))).holders.length, 1);
  assertEquals(await cluster.settle(forceRelease(redlock, "a", { holder: one.holder })), false);
  await cluster.settle(other.release());
  assertEquals((await cluster.settle(redlock.inspect("a"))).holders, []);
  await cluster.lock();
  assertEquals((await cluster.settle(redlock.inspect("a"))).mode, "exclusive");
});

test("LockHeldError says that this client itself reads what it asks to write or, behind a writer, to read, or writes what it asks to read", async (cluster) => {
  const readers = [await cluster.lock(READ_LATER), await cluster.lock(READ_LATER)];
  for (const node of cluster.nodes) node.enqueue("a", "other:1");
  const third = await cluster.refusal({ ...READ_LATER, waitMs: 200 });
  assert(third.message.includes("held it in shared mode for 200 ms, and a writer waits for that"));
  for (const node of cluster.nodes) node.drop("a", "other:1");
  for (const reader of readers.reverse()) { // one of two is enough
    const error = await cluster.refusal({ waitMs: 200 });
    assertInstanceOf(error, LockHeldError);
    const text = "another call of this client has held it in shared mode for ";
    assert(error.message.includes(text), error.message);
    assert(error.message.includes(", and a reader cannot become the writer"), error.message);
    assertEquals(error.holders.length, 1);
    await cluster.settle(reader.release());
  }
  const writer = await cluster.lock();
  const error = await cluster.refusal({ ...READ, waitMs: 200 });
  assert(error.message.includes("another call of this client has held it for "), error.message);
  await cluster.settle(writer.release());
  cluster.occupy("a");
  const other = await cluster.refusal({ waitMs: 200 });
  assert(!other.message.includes("of this client"), other.message);
});

for (const name of ["fencing", "any"] as const) {
  Deno.test(`mode: "shared" goes not together with ${name}`, async () => {
    const { redlock } = new Cluster();
    const options = { mode: "shared", [name]: true } as const;
    const error = await assertRejects(() => redlock.acquire(["a"], options), TypeError);
    const rule = `'mode' must be 'exclusive' if '${name}' is true`;
    assertEquals(error.message, `Cannot acquire lock as ${rule}`);
    assertThrows(() => new Cluster(3, options), TypeError, rule);
  });
}

Deno.test("a mode that there is not is refused", async () => {
  const { redlock } = new Cluster();
  const options = { mode: "read" } as unknown as RedlockOptions;
  const error = await assertRejects(() => redlock.acquire("a", options), RangeError);
  assertEquals(
    error.message,
    "Cannot acquire lock as 'mode' must be 'exclusive' or 'shared': current value is \"read\"",
  );
});

test("a lock in shared mode, or of a node that cannot adopt, is not handed over and stays held", async (cluster) => {
  const [reader, writer] = [await cluster.lock(READ), await cluster.lock({}, "b")];
  Object.assign(cluster.nodes[1], { lacks: { adopt: true } });
  const messages = [reader, writer].map((it) =>
    assertThrows(() => it.handOver(), TypeError).message
  );
  assertEquals(messages, [
    'Cannot hand over lock "a" as it is in shared mode',
    'Cannot hand over lock "b" as node1 cannot adopt',
  ]);
  assertEquals([reader.held, writer.held], [true, true]);
});
