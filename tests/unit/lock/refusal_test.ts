import { assertEquals, assertInstanceOf, assertRejects, assertStrictEquals } from "@std/assert";
import { LockHeldError, QuorumError } from "../../../src/errors.ts";
import type { KeyState } from "../../../src/quorum/lock_node.ts";
import { Cluster, REASON } from "../../support/cluster.ts";

const DENIED = "0 of 3 nodes granted it, 3 denied, 2 are needed";

/** Nodes on which somebody else holds "a", and which answer this when they are asked about a key. */
function blocked(inspect?: (key: string) => KeyState | undefined): Cluster {
  const cluster = new Cluster();
  cluster.occupy();
  for (const node of cluster.nodes) {
    if (inspect) node.inspect = (key) => Promise.resolve(inspect(key));
  }
  return cluster;
}

// What stands in the way

for (
  const [state, waitMs, what] of [
    [{ remainingMs: 700 }, 0, "; its key expires in 700 ms unless it is extended"],
    [{ remainingMs: 500 }, 200, "; its key expires in 500 ms unless it is extended"],
    [{ remainingMs: Infinity }, 0, "; its key has no TTL, so no lock library set it"],
    [
      { remainingMs: Infinity, type: "list" },
      200,
      "; its key holds a list and has no TTL, so no lock library set it",
    ],
    [undefined, 0, ""], // gone by the end of the wait
  ] as const
) {
  Deno.test(`acquire() with a waitMs of ${waitMs} says what stood in its way: ${what.slice(2) || "nothing by now"}`, async () => {
    const cluster = blocked(() => state && { value: "other", ...state });
    const error = await cluster.refusal({ waitMs, notify: false });
    assertInstanceOf(error, LockHeldError);
    const waited = waitMs > 0 ? "; waited 200 ms" : "";
    assertEquals(
      error.message,
      `Cannot acquire lock "a": someone else holds it${waited}${what}; ${DENIED}`,
    );
    assertEquals(error.remainingMs, state?.remainingMs);
    assertEquals(error.votes.map(({ node, outcome }) => [node, outcome]), [
      ["node0", "denied"],
      ["node1", "denied"],
      ["node2", "denied"],
    ]);
  });
}

Deno.test("acquire() of several resources names the one whose key stays longest", async () => {
  const states: Record<string, KeyState> = {
    "app:a": { value: "other", remainingMs: 100 },
    "app:b": { value: "", remainingMs: Infinity, type: "hash" },
    "app:c": { value: "other", remainingMs: 900 },
  };
  const cluster = blocked((key) => states[key]);
  cluster.occupy("app:a");
  const error = await cluster.refusal({ waitMs: 0, keyPrefix: "app:" }, ["a", "b", "c"]);
  assertEquals(
    error.message,
    `Cannot acquire locks "a", "b", "c": someone else holds it; the key of "b" holds a hash and has no TTL, so no lock library set it; ${DENIED}`,
  );
});

Deno.test("acquire() asks one node that denied what stands in its way, for 100 ms at most", async () => {
  const cluster = blocked();
  cluster.set("fail", 0);
  for (const node of cluster.nodes) node.modes.inspect = "hang";
  const startMs = cluster.nowMs;
  assertInstanceOf(await cluster.refusal({ waitMs: 0, nodeTimeoutMs: 500 }), LockHeldError);
  assertEquals([cluster.nowMs - startMs, cluster.asked("inspect")], [100, [0, 1, 0]]);
});

Deno.test("acquire() ends at once if its signal aborts while it asks what stands in its way", async () => {
  const cluster = blocked();
  for (const node of cluster.nodes) node.modes.inspect = "hang";
  const controller = new AbortController();
  const { signal } = controller;
  const rejected = assertRejects(() => cluster.redlock.acquire("a", { waitMs: 0, signal }));
  await cluster.advance(10);
  controller.abort(REASON);
  assertStrictEquals(await rejected, REASON); // without any time passing
});

Deno.test("tryAcquire() does not ask what stands in its way", async () => {
  const cluster = blocked();
  assertEquals(await cluster.try(), undefined);
  assertEquals(cluster.asked("inspect"), [0, 0, 0]);
});

// Locks of one's own

for (
  const [waitMs, held, wanted, heldMs, waited] of [
    [0, "a", "a", 300, `; ${DENIED}`],
    [200, "a", "a", 500, "; waited 200 ms"],
    [0, ["a", "b"], ["b", "c"], 300, `; ${DENIED}`],
  ] as const
) {
  Deno.test(`acquire() of ${wanted} with a waitMs of ${waitMs} says that its own client holds ${held}, and for how long`, async () => {
    const cluster = new Cluster();
    await cluster.lock({ ttlMs: 10_000 }, held);
    await cluster.advance(300);
    const error = await cluster.refusal({ waitMs }, wanted);
    assertInstanceOf(error, LockHeldError);
    const names = wanted === "a" ? 'lock "a"' : 'locks "b", "c"';
    assertEquals(
      error.message,
      `Cannot acquire ${names}: this client itself has held it for ${heldMs} ms, and locks are not reentrant${waited}`,
    );
  });
}

// Refused for good

/** Has the nodes refuse for good, or, without a word in a message, for now. */
function refuse(cluster: Cluster, ...messages: string[]): void {
  messages.forEach((message, index) => {
    const permanent = message.startsWith("wrong");
    cluster.nodes[index].acquire = (request, nodeIndex) =>
      request.fail(nodeIndex, Object.assign(new Error(message), { permanent }));
  });
}

Deno.test("acquire() fails at once if more than N - quorum nodes refuse for good", async () => {
  const cluster = new Cluster();
  refuse(cluster, "not this one", "wrong password", "wrong password too");
  const startMs = cluster.nowMs;
  const error = await cluster.refusal({ waitMs: Infinity });
  assertInstanceOf(error, QuorumError);
  assertEquals(
    error.message,
    'Cannot acquire lock "a": 0 of 3 nodes granted it, 3 failed, 2 are needed; permanent error: wrong password',
  );
  assertEquals(cluster.nowMs, startMs);
  assertEquals(cluster.eventTypes, ["attempt", "denied"]);
});

Deno.test("acquire() waits if the nodes that refuse for good leave a quorum of others", async () => {
  const cluster = new Cluster();
  refuse(cluster, "wrong password");
  cluster.set("fail", 1);
  const acquiring = cluster.redlock.acquire("a");
  await cluster.advance(300);
  cluster.set("answer", 1);
  assertEquals((await cluster.settle(acquiring)).held, true);
});
