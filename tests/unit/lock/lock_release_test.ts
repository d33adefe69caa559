import { assert, assertEquals, assertInstanceOf, assertStrictEquals } from "@std/assert";
import { QuorumError } from "../../../src/errors.ts";
import { quorumSize } from "../../../src/vote.ts";
import { locked, test, VALIDITY_MS } from "../../support/cluster.ts";
import { combinations } from "../../support/combinations.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import type { KeyspaceNode } from "../../support/keyspace_node.ts";

/** How a node takes a release. */
type Answer = "grant" | "deny" | "fail" | "hang";
const ANSWERS: readonly Answer[] = ["grant", "deny", "fail", "hang"];

/** Has a node take a release so. */
function prepare(node: KeyspaceNode, answer: Answer): void {
  if (answer === "deny") node.forget();
  else if (answer !== "grant") node.mode = answer;
}

for (const nodeCount of [1, 2, 3, 4]) {
  Deno.test(`Lock.release() on ${nodeCount} nodes is true, false or a QuorumError by count, for every combination of answers`, async () => {
    for (const answers of combinations(ANSWERS, nodeCount)) {
      const { cluster, lock } = await locked(nodeCount, { nodeTimeoutMs: 30 });
      answers.forEach((answer, index) => prepare(cluster.nodes[index], answer));
      cluster.events.length = 0;
      const result = await cluster.settle(lock.release().catch((error: Error) => error));
      const count = (...some: Answer[]) => answers.filter((answer) => some.includes(answer)).length;
      const spare = nodeCount - quorumSize(nodeCount);
      const shown = answers.join(", ");
      const failed = count("fail", "hang") > spare;
      // A majority of denials decides before the nodes that hang have had their time.
      if (count("deny") > spare && failed) {
        assert(result === false || result instanceof QuorumError, shown);
      } else if (failed) assertInstanceOf(result, QuorumError, shown);
      else assertEquals(result, count("deny") <= spare, shown);
      const end = result ? ["released"] : ["lost", "released"];
      const types = result instanceof Error ? ["release-failed"] : end;
      assertEquals(cluster.eventTypes, types, shown);
      assertEquals(cluster.asked("release"), Array(nodeCount).fill(1));
      assertEquals([lock.held, ...cluster.timers], [false, 0, 0]);
    }
  });
}

test("Lock.release() waits for no more than a majority of denials if its call stood in the queues", async (cluster) => {
  cluster.occupy();
  const call = cluster.redlock.acquire("a");
  await cluster.advance(50);
  cluster.free();
  const lock = await cluster.settle(call);
  cluster.forget();
  cluster.nodes.forEach((node, index) => node.replyMs = 20 + 5 * index);
  assertEquals(await cluster.settle(lock.release()), false);
  assertEquals(Reflect.get(cluster.events.at(-1)!, "elapsedMs"), 25);
});

test.locked("Lock.release() is false if the lock ran out while the machine slept, though no node answers", async ({ cluster, lock }) => {
  cluster.clock.stepWall(2 * VALIDITY_MS);
  cluster.set("fail");
  assertEquals(await cluster.settle(lock.release()), false);
});

test.locked("Lock.release() that a client may have sent twice shows no loss", async ({ cluster, lock }) => {
  cluster.nodes[0].resends = true;
  cluster.forget();
  assertEquals(await cluster.settle(lock.release()), false);
  assertEquals(cluster.eventTypes, ["attempt", "acquired", "released"]);
});

Deno.test("Lock.release() that fails gives its caller and its listener votes and causes", async () => {
  const { cluster, lock } = await locked(3, { nodeTimeoutMs: 30 });
  cluster.set("fail", 1);
  cluster.set("hang", 2);
  const error = await cluster.rejection(lock.release());
  assertInstanceOf(error, QuorumError);
  assertEquals(
    error.message,
    'Cannot release lock "a": 1 of 3 nodes released it, 1 failed, 1 timed out, 2 are needed; first error: node1 is down',
  );
  assertEquals([error.code, error.resources], ["NO_QUORUM", ["a"]]);
  assertInstanceOf(error.cause, AggregateError);
  assertEquals(error.cause.message, "node1 is down; node2: no answer");
  const event = cluster.events.at(-1);
  assert(event?.type === "release-failed");
  assertStrictEquals(event.error, error);
  assertEquals([event.votes, event.elapsedMs, event.heldMs], [error.votes, 30, 30]);
});

test.locked("Lock.release() reports how long the lock was held, and whether its end was confirmed", async ({ cluster, lock }) => {
  await cluster.advance(100);
  for (const node of cluster.nodes) node.replyMs = 10;
  await cluster.settle(lock.release());
  const released = cluster.events.at(-1);
  assert(released?.type === "released");
  const { confirmed, heldMs, elapsedMs, votes } = released;
  assertEquals([confirmed, heldMs, elapsedMs, votes.length], [true, 110, 10, 2]);
});

test.locked("Lock.release() of a lock that ran out a moment ago is true if a quorum still had its keys", async ({ cluster, lock }) => {
  cluster.clock.block(VALIDITY_MS);
  assertEquals([lock.held, await cluster.settle(lock.release())], [false, true]);
});

for (const answers of ["", "grant", "deny", "fail", "deny, fail", "grant, deny", "cut short"]) {
  Deno.test(`Lock.release() that hangs while its client closes confirms nothing and loses nothing, after the answers: ${answers}`, async () => {
    const isCut = answers === "cut short"; // by the end of the client, before its own
    const given = isCut ? [] : answers.split(", ").filter(Boolean) as Answer[];
    const nodeTimeoutMs = isCut ? 5_000 : 30;
    const { cluster, lock } = await locked(given.length < 2 ? 3 : 5, { nodeTimeoutMs });
    cluster.set("hang");
    given.forEach((answer, index) => {
      cluster.set("answer", index);
      prepare(cluster.nodes[index], answer);
    });
    const releasing = lock.release().catch((error) => error);
    await runMicrotasks();
    const closing = cluster.redlock.close();
    assertInstanceOf(await cluster.settle(releasing, isCut ? 3_000 : 30), QuorumError);
    await cluster.settle(closing);
    assertEquals(cluster.eventTypes, ["attempt", "acquired", "release-failed"]);
    assertEquals(lock.signal.aborted, false);
  });
}
