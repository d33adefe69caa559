import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertNotEquals,
  assertRejects,
  assertStrictEquals,
} from "@std/assert";
import { LockLostError, QuorumError } from "../../../src/errors.ts";
import { settle, VALIDITY_MS } from "../../support/cluster_calls.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { type Bench, CAUSE, locked } from "../../support/hold_bench.ts";
import { blocked } from "../../support/waiting_calls.ts";

/** How a node takes a release. */
type Answer = "grant" | "deny" | "fail" | "hang";

/** Every way for three nodes to take it. */
const ANSWERS: readonly Answer[] = ["grant", "deny", "fail", "hang"];
const TRIPLES = ANSWERS.flatMap((one) =>
  ANSWERS.flatMap((two) => ANSWERS.map((three) => [one, two, three]))
);

/** Releases a lock on nodes that take it so; an error is returned. */
async function released(answers: readonly Answer[]): Promise<[Bench, boolean | Error]> {
  const bench = await locked(answers.length, { nodeTimeoutMs: 30 });
  answers.forEach((answer, index) => {
    const node = bench.cluster.nodes[index];
    if (answer === "deny") node.forget();
    else if (answer !== "grant") node.mode = answer;
  });
  return [bench, await bench.settle(bench.held.release().catch((error) => error))];
}

for (const answers of TRIPLES) {
  const shown = answers.join(", ");
  const count = (...wanted: Answer[]) => answers.filter((answer) => wanted.includes(answer)).length;
  if (count("deny") === 1 && count("grant") === 0) continue; // see below
  const failed = count("fail", "hang") >= 2;
  const expected = failed ? "a QuorumError" : count("deny") < 2;

  Deno.test(`HeldLock.release() is ${expected} where nodes do ${shown}`, async () => {
    const [bench, result] = await released(answers);
    assertEquals(result instanceof QuorumError ? "a QuorumError" : result, expected);
    assertEquals(bench.releases, [1, 1, 1]);
    assertEquals(bench.cluster.eventTypes, [failed ? "release-failed" : "released"]);
    assertEquals([bench.cluster.wheel.size, bench.cluster.clock.timersAlive], [0, 0]);
  });
}

for (
  const answers of [
    ["deny", "fail", "fail"],
    ["deny", "fail", "hang"],
    ["deny", "hang", "fail"],
    ["deny", "hang", "hang"],
    ["deny", "deny", "fail", "fail", "hang"],
  ] as const
) {
  Deno.test(`HeldLock.release() is never true where no node granted it: ${answers.join(", ")}`, async () => {
    const [bench, result] = await released(answers);
    assertNotEquals(result, true);
    const event = bench.cluster.events.at(-1);
    assert(event?.type === "release-failed" || event?.type === "released" && !event.confirmed);
  });
}

Deno.test("HeldLock.release() that fails says so to its caller and its listener, with votes and causes", async () => {
  const [bench, error] = await released(["grant", "fail", "hang"]);
  assertInstanceOf(error, QuorumError);
  assertEquals(
    error.message,
    'Cannot release lock "a": 1 of 3 nodes released it, 1 failed, 1 timed out, 2 are needed; first error: node1 is down',
  );
  assertEquals([error.code, error.resources], ["NO_QUORUM", ["a"]]);
  assertInstanceOf(error.cause, AggregateError);
  assertEquals(error.cause.message, "node1: node1 is down");
  const event = bench.cluster.events.at(-1);
  assert(event?.type === "release-failed");
  assertStrictEquals(event.error, error);
  assertEquals([event.votes, event.elapsedMs], [error.votes, 30]);
});

Deno.test("HeldLock.release() of a lock that ran out a moment ago is true where a quorum still had its keys", async () => {
  const bench = await locked();
  bench.cluster.clock.block(VALIDITY_MS);
  assertEquals(await bench.settle(bench.held.release()), true);
});

Deno.test("HeldLock.release() of a lock that was lost asks again, and does not throw", async () => {
  const bench = await locked();
  bench.held.lose(CAUSE);
  bench.cluster.set("fail", 0, 1);
  assertEquals(await bench.settle(bench.held.release()), false);
  assertEquals(bench.releases, [2, 2, 2]);
  assertInstanceOf(bench.held.lostError, LockLostError);
});

Deno.test("HeldLock.release() ends the lock before any node has answered", async () => {
  const { cluster, held } = await locked();
  const { signal } = held;
  cluster.set("hang", 0, 1, 2);
  held.release().catch(() => {});
  assertEquals([held.held, held.remainingMs(), held.active], [false, 0, false]);
  assertEquals([signal.aborted, cluster.wheel.size], [false, 1]); // the round's deadline alone
  await cluster.clock.advance(100);
  assertEquals(cluster.wheel.size, 0);
});

for (
  const answered of [[], ["grant"], ["deny"], ["fail"], ["deny", "fail"], [
    "grant",
    "deny",
  ]] as const
) {
  const shown = answered.join(", ") || "nothing";
  Deno.test(`HeldLock.release() that the end of its client cuts short after ${shown} confirms nothing`, async () => {
    const bench = await locked(answered.length < 2 ? 3 : 5, { nodeTimeoutMs: 30 });
    bench.cluster.set("hang", ...bench.cluster.nodes.keys());
    answered.forEach((answer, index) => {
      bench.cluster.set(answer === "fail" ? "fail" : "answer", index);
      if (answer === "deny") bench.cluster.nodes[index].forget();
    });
    const releasing = bench.held.release().catch((error) => error);
    await runMicrotasks();
    bench.cluster.wheel.announceClose();
    assertInstanceOf(await releasing, QuorumError);
    assertEquals(bench.cluster.eventTypes, ["release-failed"]);
  });
}

Deno.test("HeldLock.release() of a lock that was lost leaves the queues alone: the ticket is another caller's", async () => {
  const callers = await blocked("first");
  const { nodes, redlock } = callers.cluster;
  callers.cluster.free();
  await callers.advance(0);
  const lock = callers.locks.get("first")!;
  callers.call("second");
  for (const node of nodes) node.forget();
  callers.cluster.occupy();
  await settle(callers.cluster, assertRejects(() => lock.extend(), LockLostError));
  await callers.advance(1_000);
  const waiting = callers.cluster.queues;
  assertEquals(waiting.map(({ length }) => length), [1, 1, 1]);
  assertEquals(await settle(callers.cluster, lock.release()), false);
  assertEquals(callers.cluster.queues, waiting);
  await settle(callers.cluster, redlock.close());
});
