import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertLessOrEqual,
  assertMatch,
} from "@std/assert";
import { LockHeldError, QuorumError } from "../../../src/errors.ts";
import { insideOf } from "../../../src/redlock.ts";
import { quorumSize } from "../../../src/vote.ts";
import { ROUNDS_MAX } from "../../../src/quorum/round.ts";
import { expiryMarginMs } from "../../../src/time/validity.ts";
import { Cluster, test, VALIDITY_MS } from "../../support/cluster.ts";
import { combinations } from "../../support/combinations.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";

/** The default for a TTL of a second. */
const NODE_TIMEOUT_MS = 50;
const DENIED = "0 of 3 nodes granted it, 3 denied, 2 are needed";

/** What a node does when it is asked. */
type Answer = "grant" | "deny" | "fail" | "hang" | "lose-reply";
const ANSWERS: readonly Answer[] = ["grant", "deny", "fail", "hang", "lose-reply"];

/** Most attempts of a call that does not wait, and the longest moment or pause in between. */
const ATTEMPTS_MAX = 5, MOMENT_MS = 8;

for (const nodeCount of [1, 2, 3, 4]) {
  Deno.test(`tryAcquire() on ${nodeCount} nodes wins, is refused or fails by count, and leaves no key without a lock, for every combination of answers`, async () => {
    for (const answers of combinations(ANSWERS, nodeCount)) {
      const cluster = new Cluster(nodeCount);
      answers.forEach((answer, index) => {
        const node = cluster.nodes[index];
        if (answer === "deny") node.set("a", "other");
        else if (answer !== "grant") node.modes.acquire = answer;
      });
      const startMs = cluster.nowMs;
      const result = await cluster.try().catch((error: Error) => error);
      const passedMs = cluster.nowMs - startMs;
      const count = (...some: Answer[]) => answers.filter((answer) => some.includes(answer)).length;
      const quorum = quorumSize(nodeCount);
      const shown = answers.join(", ");
      if (count("grant") >= quorum) {
        assertEquals(passedMs, 0, shown); // the others cost nothing
        assert(result && !(result instanceof Error), shown);
        continue;
      }
      // If the nodes that hang cannot help any more, they are not waited for.
      const waited = count("grant", "hang", "lose-reply") >= quorum;
      const silent = waited ? count("fail", "hang", "lose-reply") : count("fail");
      assertEquals(result instanceof QuorumError, silent > nodeCount - quorum, shown);
      assertEquals(result === undefined, silent <= nodeCount - quorum, shown);
      // One that some nodes granted is followed by others, and one that none did waits a moment for
      // late grants.
      const unanswered = silent > nodeCount - quorum;
      const attempts = count("grant") > 0 && !unanswered ? ATTEMPTS_MAX : 1;
      const attemptMs = (waited ? NODE_TIMEOUT_MS + 1 : 0) + (unanswered ? 0 : MOMENT_MS);
      assertLessOrEqual(passedMs, attempts * attemptMs, shown);
      if (attempts === 1) assertLessOrEqual(Math.max(...cluster.asked()), 1, shown);
      cluster.resume();
      await cluster.advance(0);
      const left = answers.map((answer) => answer === "deny" ? "other" : undefined);
      assertEquals(cluster.holders(), left, shown);
    }
  });
}

Deno.test("acquire() that may not wait for others waits for its own client's attempts, however late they end", async () => {
  const cluster = new Cluster(1, { waitMs: 0 });
  const [node] = cluster.nodes;
  node.modes.acquire = "lose-reply";
  const others = Array.from(
    { length: ROUNDS_MAX },
    (_, index) => cluster.redlock.tryAcquire(`b:${index}`),
  );
  const ended = Promise.allSettled(others);
  const acquiring = cluster.redlock.acquire("a");
  await runMicrotasks();
  delete node.modes.acquire;
  cluster.clock.block(100 * NODE_TIMEOUT_MS); // the process stands still
  const lock = await cluster.settle(acquiring);
  assert(lock.remainingMs() > VALIDITY_MS - NODE_TIMEOUT_MS);
  const results = await cluster.settle(ended);
  assertEquals(results.filter(({ status }) => status === "fulfilled"), []);
});

test("acquire() has no quorum if its client's other attempts take as long as it may wait", async (cluster) => {
  while (insideOf(cluster.redlock, "crowd").attemptGate.enter());
  const error = await cluster.refusal({ waitMs: 20 });
  assertInstanceOf(error, QuorumError);
  assertMatch(error.message, /, because 4096 other attempts of this client were under way; waited/);
  assertEquals(cluster.asked(), [0, 0, 0]);
});

Deno.test("acquire() names resources, not keys, in errors and events", async () => {
  const cluster = new Cluster(3, { keyPrefix: "app:", waitMs: 0 });
  cluster.occupy("app:b");
  const error = await cluster.refusal({}, ["a", "b"]);
  assertEquals(cluster.nodes[0].calls[0].keys, ["app:a", "app:b"]);
  assertInstanceOf(error, LockHeldError);
  assertEquals(error.resources, ["a", "b"]);
  assert(
    error.message.startsWith('Cannot acquire locks "a", "b": someone else holds one of them; '),
  );
  assert(error.message.endsWith(DENIED));
  const named = cluster.events.map((event) => "resources" in event && event.resources);
  assertEquals(named, [["a", "b"], ["a", "b"]]);
});

// Validity

test("acquire() counts validity from before the first byte", async (cluster) => {
  for (const node of cluster.nodes) [node.requestMs, node.replyMs] = [10, 15];
  const lock = await cluster.lock();
  assertEquals(lock.remainingMs(), VALIDITY_MS - 25);
  assertEquals(lock.votes.map(({ elapsedMs }) => elapsedMs).slice(0, 2), [25, 25]);
});

const LEAST_MS = expiryMarginMs(VALIDITY_MS) + 0.25;

for (const [leftMs, won] of [[LEAST_MS, true], [LEAST_MS - 0.25, false]] as const) {
  test(`acquire() ${won ? "wins" : "does not win"} by grants that are concluded after ${VALIDITY_MS - leftMs} ms`, async (cluster) => {
    cluster.nodes[0].before.acquire = () => cluster.clock.block(VALIDITY_MS - leftMs);
    const acquiring = cluster.redlock.acquire("a", { waitMs: 0 });
    if (won) {
      assertEquals((await cluster.settle(acquiring)).remainingMs(), LEAST_MS);
      assertEquals(cluster.steps[0], "acquire");
    } else {
      assertEquals(
        (await cluster.rejection(acquiring)).message,
        'Cannot acquire lock "a": 3 of 3 nodes granted it, 2 are needed, but too late for its validity',
      );
      assertEquals(cluster.steps, Array(3).fill("acquire release"));
    }
  });
}

for (const [stepMs, leftMs] of [[60_000, undefined], [-60_000, VALIDITY_MS - 20]] as const) {
  test(`acquire() during which the wall clock steps by ${stepMs} ms has ${leftMs ?? "no"} ms left`, async (cluster) => {
    for (const node of cluster.nodes) node.replyMs = 20;
    const trying = cluster.redlock.tryAcquire("a");
    await runMicrotasks();
    cluster.clock.stepWall(stepMs); // ahead, as also after the machine slept
    if (leftMs) return assertEquals((await cluster.settle(trying))?.remainingMs(), leftMs);
    assertInstanceOf(await cluster.rejection(trying), QuorumError);
    await runMicrotasks();
    assertEquals(cluster.holders(), [undefined, undefined, undefined]);
  });
}

for (const [beforeMs, duringMs] of [[3_600_000, 0], [-10_000, 10_000]]) {
  test(`acquire() reads both clocks before it asks: the wall clock steps by ${beforeMs} ms, then by ${duringMs} ms`, async (cluster) => {
    const holder = await cluster.settle(cluster.peer({ ttlMs: 60_000 }).acquire("a"));
    const acquiring = cluster.redlock.acquire("a");
    await cluster.advance(100);
    for (const node of cluster.nodes) node.replyMs = 20;
    cluster.clock.stepWall(beforeMs); // the timer wheel has not noticed that
    holder.release().catch(() => {});
    await runMicrotasks();
    const attempts = cluster.asked();
    cluster.clock.stepWall(duringMs); // the machine sleeps
    const lock = await cluster.settle(acquiring);
    assertEquals(lock.remainingMs(), VALIDITY_MS - 20);
    const more = cluster.asked().map((count, index) => count - attempts[index]);
    assertEquals(more.some((count) => count > 0), duringMs > 0); // it is not won by an old grant
  });
}

test("tryAcquire() rejects with the reason of its signal, even if that is the LockHeldError of another call", async (cluster) => {
  cluster.occupy("a");
  const reason = await cluster.rejection(cluster.redlock.acquire("a", { waitMs: 0 }));
  const signal = AbortSignal.abort(reason);
  assert(await cluster.rejection(cluster.redlock.tryAcquire("b", { signal })) === reason);
});

// Attempt after attempt

Deno.test("acquire() undoes each attempt under its own value before the next, but where nothing was set", async () => {
  const cluster = new Cluster(3, { notify: false });
  for (const node of cluster.nodes.slice(0, 2)) node.set("a", "other", 2_000);
  const lock = await cluster.lock();
  const { values } = cluster;
  assert(values.length > 3 && new Set(values).size === values.length);
  const [denying, , granting] = cluster.nodes.map(({ calls }) => {
    return calls.map(({ operation, value }) => `${operation} ${value}`);
  });
  assertEquals(denying, values.map((value) => `acquire ${value}`));
  const expected = values.flatMap((value) => [`acquire ${value}`, `release ${value}`]);
  assertEquals(granting, expected.slice(0, -1));
  assertEquals(cluster.holders(), Array(3).fill(lock.value));
  assertEquals(lock.value, values.at(-1));
});

for (const [waitMs, attempts] of [[0, 1], [1, 2], [100, 2], [101, 3]] as const) {
  Deno.test(`acquire() with a waitMs of ${waitMs} and a delay of 100 makes ${attempts} attempts, the last at the end`, async () => {
    const cluster = new Cluster(1, { retryDelayMs: 100, retryDelayMaxMs: 100, notify: false });
    cluster.fraction = 1;
    cluster.occupy();
    const startMs = cluster.nowMs;
    assertInstanceOf(await cluster.refusal({ waitMs }), LockHeldError);
    assertEquals([cluster.asked(), cluster.nowMs - startMs], [[attempts], waitMs]);
    assertEquals(cluster.nodes[0].asked("acquire").at(-1)?.atMs, startMs + waitMs);
  });
}

Deno.test("acquire() does not hang with a retryDelayMs of 0, however often it tries", async () => {
  const cluster = new Cluster(1);
  cluster.nodes[0].set("a", "other", 1_500);
  cluster.nodes[0].replyMs = 1;
  const acquiring = cluster.redlock.acquire("a", { retryDelayMs: 0, retryDelayMaxMs: 1 });
  assert((await cluster.settle(acquiring, 3_000)).held);
});

// What it reports

Deno.test("acquire() reports each attempt with its own time, and the end with the call's", async () => {
  const cluster = new Cluster(1, { retryDelayMs: 100, notify: false });
  const [node] = cluster.nodes;
  node.set("a", "other", 105);
  node.replyMs = 10;
  cluster.fraction = 1;
  const lock = await cluster.lock();
  assertEquals(lock.remainingMs(), VALIDITY_MS - 10);
  const [first, second, acquired, ...others] = cluster.events;
  assert(first.type === "attempt" && second.type === "attempt" && acquired.type === "acquired");
  assertEquals(others, []);
  assertEquals([first.attempt, first.granted, first.elapsedMs], [1, false, 10]);
  assertEquals(first.votes, [{ node: "node0", outcome: "denied", elapsedMs: 10 }]);
  assertEquals([second.attempt, second.granted, second.elapsedMs], [2, true, 10]);
  assertEquals([acquired.attempts, acquired.elapsedMs], [2, 120]);
  assertEquals([acquired.remainingMs, acquired.resources], [VALIDITY_MS - 10, ["a"]]);
});

Deno.test("acquire() that ends without a lock reports its attempts, votes and time, and why", async () => {
  for (const reason of ["held", "no-quorum"] as const) {
    const cluster = new Cluster(1, { retryDelayMs: 100, waitMs: 250, notify: false });
    if (reason === "held") cluster.occupy();
    else cluster.set("fail");
    cluster.fraction = 1;
    const error = await cluster.refusal();
    assert(error instanceof LockHeldError || error instanceof QuorumError);
    const denied = cluster.events.at(-1);
    assert(denied?.type === "denied");
    assertEquals([denied.reason, denied.attempts, denied.elapsedMs], [reason, 3, 250]);
    assertEquals([denied.resources, denied.votes], [["a"], error.votes]);
  }
});
