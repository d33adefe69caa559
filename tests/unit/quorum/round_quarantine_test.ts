import { assert, assertEquals, assertInstanceOf } from "@std/assert";
import { LockHeldError, QuorumError } from "../../../src/errors.ts";
import type { LockRequest } from "../../../src/quorum/lock_node.ts";
import { createClientState } from "../../../src/client_state.ts";
import { Round } from "../../../src/quorum/round.ts";
import { close, rejection, settle, TTL } from "../../support/cluster_calls.ts";
import { FakeCluster } from "../../support/fake_nodes.ts";

/** Nodes of which some, with the guard on, grant and are in quarantine. */
function setUp(nodeCount: number, ...quarantined: number[]): FakeCluster {
  const cluster = new FakeCluster(nodeCount, { ...TTL, waitMs: 0, restartGuardMs: 5_000 });
  for (const number of quarantined) quarantine(cluster, number);
  return cluster;
}

function quarantine(cluster: FakeCluster, number: number): void {
  const node = cluster.nodes[number];
  for (const operation of ["acquire", "extend"] as const) {
    const ask = node[operation].bind(node);
    node[operation] = (request: LockRequest, nodeIndex: number) => {
      const grant = request.grant.bind(request);
      if (request.guardMs) {
        request.grant = (at, atMs) =>
          at === nodeIndex ? request.quarantine!(at, atMs) : grant(at, atMs);
      }
      ask(request, nodeIndex);
    };
  }
}

Deno.test("Round counts a quarantined vote like a failed one, and tells it apart", () => {
  const cluster = new FakeCluster(3);
  const round = new Round(createClientState(cluster.wheel, cluster.nodes), ["a"], "v", 1_000);
  round.quarantine(0);
  round.grant(1);
  assertEquals([round.granted, round.failed, round.decision], [1, 1, "open"]);
  round.quarantine(2);
  assertEquals([round.failed, round.decision, round.unanswered], [2, "refused", true]);
  assertEquals(round.votes.map(({ outcome }) => outcome), [
    "quarantined",
    "granted",
    "quarantined",
  ]);
  assertEquals([0, 1].map((nodeIndex) => round.grantedBy(nodeIndex)), [false, true]);
});

Deno.test("Round hands the guard on to the rounds about its lock", () => {
  const cluster = new FakeCluster(3);
  const round = new Round(createClientState(cluster.wheel, cluster.nodes), ["a"], "v", 1_000);
  assertEquals([round.guardMs, round.follow().guardMs], [0, 0]);
  round.guardMs = 70;
  assertEquals(round.follow().guardMs, 70);
});

Deno.test("acquire() with all nodes in quarantine is a QuorumError, and takes the keys back", async () => {
  const cluster = setUp(3, 0, 1, 2);
  const error = await rejection(cluster, cluster.redlock.acquire("a"));
  assertInstanceOf(error, QuorumError);
  assert(
    /^Cannot acquire lock "a": 0 of 3 nodes granted it, [23] quarantined, 2 are needed$/u
      .test(error.message),
    error.message,
  );
  await cluster.clock.advance(1);
  assertEquals(cluster.holders("a"), [undefined, undefined, undefined]);
  await close(cluster);
});

Deno.test("the guard of one call replaces the client's own", async () => {
  const cluster = setUp(3, 0, 1, 2);
  const lock = await settle(cluster, cluster.redlock.acquire("a", { restartGuardMs: 0 }));
  assert(lock.held);
  assertEquals(await settle(cluster, lock.release()), true);
  await close(cluster);
});

Deno.test("a lock that others hold on nodes without quarantine is held, not unanswered", async () => {
  const cluster = setUp(3);
  cluster.nodes[0].set("a", "other");
  cluster.nodes[1].set("a", "other");
  quarantine(cluster, 2);
  const error = await rejection(cluster, cluster.redlock.acquire("a"));
  assertInstanceOf(error, LockHeldError);
  await close(cluster);
});
