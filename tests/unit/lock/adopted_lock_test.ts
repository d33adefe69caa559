/**
 * What an adopted lock does about nodes that have missed its adoption, and what a hand-over
 * carries.
 */

import { assert, assertEquals, assertInstanceOf } from "@std/assert";
import { type Lock, QuorumError, type RedlockOptions } from "../../../mod.ts";
import { Cluster, handedOver, TTL_MS } from "../../support/cluster.ts";
import type { KeyspaceNode } from "../../support/keyspace_node.ts";

/** An adopted lock, of which the last node was away meanwhile. */
async function missed(options: RedlockOptions = {}, nodeCount = 3) {
  const cluster = new Cluster(nodeCount, options);
  const given = await cluster.settle(cluster.peer(options).acquire("a", { ttlMs: 4 * TTL_MS }));
  const token = given.handOver();
  cluster.set("fail", nodeCount - 1);
  const lock = await cluster.settle(cluster.redlock.adopt(token));
  cluster.resume();
  assertEquals(cluster.nodes.at(-1)!.holder(), given.value);
  return { cluster, given, token, lock, away: cluster.nodes.at(-1)! };
}

Deno.test("an extension has a node adopt the lock that has missed it, and the node counts from the next one on", async () => {
  for (const options of [{}, { fencing: true }] satisfies RedlockOptions[]) {
    const { cluster, lock, away } = await missed(options);
    await cluster.settle(lock.extend({ ttlMs: 3 * TTL_MS }));
    await cluster.advance(0);
    assertEquals(cluster.holders(), [lock.value, lock.value, lock.value]);
    assertEquals(away.lifeMs(), 4 * TTL_MS);
    if (options.fencing) assertEquals(away.counter(), lock.fencingToken);
    cluster.set("fail", 0);
    await cluster.settle(lock.extend({ ttlMs: 5 * TTL_MS }));
    assertEquals(cluster.nodes.map((node) => node.lifeMs()), [4 * TTL_MS, 5 * TTL_MS, 5 * TTL_MS]);
    cluster.resume();
    assertEquals(await cluster.settle(lock.release()), true);
    await cluster.advance(0);
    assertEquals(cluster.holders(), [undefined, undefined, undefined]);
  }
});

Deno.test("an extension has a node adopt the lock that got the former value back with a longer TTL", async () => {
  const { cluster, given, lock, away } = await missed({ autoExtend: true });
  await cluster.advance(4 * TTL_MS);
  away.set("a", given.value, 10 * TTL_MS);
  await cluster.advance(TTL_MS);
  assertEquals([lock.held, away.holder()], [true, lock.value]);
});

for (
  const [what, asked, end] of [
    ["release", [1, 1, 2], (lock) => lock.release()],
    ["hand-over", [0, 0, 1], (lock) => lock.handOver()],
    ["loss", [2, 2, 3], (_lock, cluster) => cluster.advance(2 * TTL_MS)],
    ["end of the client", [1, 1, 2], (_lock, cluster) => cluster.close()],
  ] as readonly [string, number[], (lock: Lock, cluster: Cluster) => unknown][]
) {
  Deno.test(`the ${what} of an adopted lock deletes the former value on a node that has missed the adoption`, async () => {
    const { cluster, lock, away } = await missed();
    await cluster.settle(Promise.resolve(end(lock, cluster)));
    await cluster.advance(0);
    assertEquals([lock.held, away.holder()], [false, undefined]);
    await cluster.settle(lock.release());
    assertEquals(cluster.asked("release"), asked); // a closed client asks no node
  });
}

Deno.test("the end of an adopted lock deletes the former value, too, that a node which hung sets only behind it", async () => {
  const { cluster, given, token } = await handedOver();
  const away = cluster.nodes[2];
  away.delete("a");
  away.replyMs = 50;
  const lock = await cluster.settle(cluster.redlock.adopt(token));
  assertEquals(await cluster.settle(lock.release()), true);
  away.set("a", given.value, TTL_MS); // the giver's command was in another connection
  await cluster.advance(50);
  assertEquals(cluster.holders(), [undefined, undefined, undefined]);
});

Deno.test("what undoes an adoption, and what ends it, may be sent for as long as the giver's TTL may last", async () => {
  const lives: number[] = [];
  const note = ([first]: KeyspaceNode[]) => {
    first.instead.release = (request, nodeIndex) => {
      lives.push(request.ttlMs);
      first.take("release", request, nodeIndex);
    };
  };
  const cluster = new Cluster(3, { ttlMs: 500, waitMs: 0 }, note);
  const given = await cluster.settle(cluster.peer({ ttlMs: 500 }).acquire("a"));
  await cluster.settle(given.extend({ ttlMs: 60_000 }));
  const token = given.handOver();
  cluster.set("fail", 1, 2);
  await cluster.rejection(cluster.redlock.adopt(token));
  cluster.resume();
  const lock = await cluster.settle(cluster.redlock.adopt(token));
  await cluster.settle(lock.release());
  assertEquals(lives, [60_000, 60_000]);
});

Deno.test("a token carries what is left of atLeastMs, and the lock that is adopted keeps its keys for it", async () => {
  const cluster = new Cluster(3, { ttlMs: 500 });
  const giver = cluster.peer({ ttlMs: 60_000, atLeastMs: 40_000 });
  const given = await cluster.settle(giver.acquire("a"));
  await cluster.advance(10_000);
  const lock = await cluster.settle(cluster.redlock.adopt(given.handOver()));
  await cluster.advance(100);
  assertEquals(await cluster.settle(lock.release()), true);
  assertEquals(cluster.nodes.map((node) => node.lifeMs()), [29_900, 29_900, 29_900]);
  const longer = await cluster.settle(giver.acquire("b"));
  const taker = cluster.peer({ ttlMs: 60_000, atLeastMs: 50_000 });
  const other = await cluster.settle(taker.adopt(longer.handOver()));
  await cluster.settle(other.release());
  assertEquals(cluster.nodes.map((node) => node.lifeMs("b")), [50_000, 50_000, 50_000]);
});

// How long it takes

for (const [mode, attempts] of [["fail", 8], ["hang", 1]] as const) {
  Deno.test(`adopt() without waiting gives up after ${attempts} attempts at a split vote if a node ${mode}s`, async () => {
    const { cluster, token } = await handedOver();
    cluster.nodes[0].set("a", "c".repeat(40), 10_000);
    cluster.set(mode, 1);
    const adopting = cluster.redlock.adopt(token, { waitMs: 0, nodeTimeoutMs: 100 });
    const error = await cluster.rejection(adopting, 500);
    assert(error instanceof QuorumError, String(error));
    assertEquals(cluster.asked("adopt"), new Array(3).fill(attempts));
  });
}

Deno.test("adopt() without waiting gives up after one attempt that is denied before a node that hangs is due", async () => {
  const { cluster, token } = await handedOver(5);
  for (const [index, digit] of ["c", "d", "e"].entries()) {
    cluster.nodes[index].set("a", digit.repeat(40), 10_000);
  }
  cluster.set("hang", 4);
  const adopting = cluster.redlock.adopt(token, { waitMs: 0, nodeTimeoutMs: 100 });
  assertInstanceOf(await cluster.rejection(adopting, 500), QuorumError);
  assertEquals(cluster.asked("adopt"), new Array(5).fill(1));
});
