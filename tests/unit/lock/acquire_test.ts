import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertRejects,
  assertStrictEquals,
} from "@std/assert";
import { attempt } from "../../../src/lock/acquire.ts";
import { LockHeldError, QuorumError, RedlockError } from "../../../src/errors.ts";
import { HeldLock } from "../../../src/lock/held_lock.ts";
import { acquireAtOnce, acquireInTurn, LockCall } from "../../../src/lock/lock_call.ts";
import { refusalNow } from "../../../src/lock/refusal.ts";
import { type RedlockOptions, resolveOptions } from "../../../src/options.ts";
import { quorumSize } from "../../../src/quorum/quorum.ts";
import type { Round } from "../../../src/quorum/round.ts";
import { type ClientState, createClientState } from "../../../src/client_state.ts";
import { expiryMarginMs } from "../../../src/time/validity.ts";
import { advanceUntil, runMicrotasks } from "../../support/fake_clock.ts";
import { FakeCluster, type Mode } from "../../support/fake_nodes.ts";

/** TTL less 1 % less 2 ms. */
const VALIDITY_MS = 988;

/** Nodes in memory, and calls for locks on them. */
class Bench {
  readonly cluster: FakeCluster;
  readonly client: ClientState;
  /** The last attempt, if it did not win. */
  denied: Round | undefined = undefined;

  constructor(nodeCount = 3) {
    this.cluster = new FakeCluster(nodeCount);
    const { nodes, wheel } = this.cluster;
    this.client = createClientState(wheel, nodes);
  }

  /** A call for "a", or what else is named. */
  call(options: RedlockOptions = {}, resources = ["a"], autoExtend = false): LockCall {
    const onEvent = this.cluster.events.push.bind(this.cluster.events) as () => void;
    const settings = resolveOptions("test", { ttlMs: 1_000, onEvent, ...options });
    return new LockCall(this.client, settings, resources, autoExtend);
  }

  settle<T>(promise: Promise<T>): Promise<T> {
    return advanceUntil(this.cluster.clock, promise, 60_000, 1);
  }

  /** Makes one attempt. */
  async attempt(call: LockCall): Promise<HeldLock | undefined> {
    const result = await this.settle(attempt(call));
    if (result instanceof HeldLock) return result;
    this.denied = result;
    return undefined;
  }

  /** Makes attempts until the wait is over. */
  acquire(call: LockCall): Promise<HeldLock> {
    const use = (held: HeldLock) => held;
    if (call.settings.waitMs > 0) return acquireInTurn(call, use);
    return acquireAtOnce(call, use);
  }

  /** Why the last attempt did not win. */
  refusal(call: LockCall): LockHeldError | QuorumError {
    return refusalNow(call, this.denied);
  }

  /** What each node was asked, in order. */
  get steps(): string[][] {
    return this.cluster.nodes.map(({ calls }) => calls.map(({ operation }) => operation));
  }
}

/** What a node makes of being asked. */
type Answer = "grant" | "deny" | "fail" | "hang";

/** Every way for `count` nodes to answer. */
function combinations(count: number): Answer[][] {
  if (count === 0) return [[]];
  const answers = ["grant", "deny", "fail", "hang"] as const;
  return combinations(count - 1).flatMap((rest) => answers.map((answer) => [...rest, answer]));
}

for (const nodeCount of [1, 2, 3, 4]) {
  Deno.test(`attempt() over ${nodeCount} nodes wins, is held off or can't tell by count, for every combination of answers`, async () => {
    for (const answers of combinations(nodeCount)) {
      const bench = new Bench(nodeCount);
      answers.forEach((answer, index) => {
        const node = bench.cluster.nodes[index];
        if (answer === "deny") node.set("a", "other");
        else if (answer !== "grant") node.mode = answer satisfies Mode;
      });
      const call = bench.call();
      const held = await bench.attempt(call);
      const count = (wanted: readonly Answer[]) =>
        answers.filter((answer) => wanted.includes(answer)).length;
      const quorum = quorumSize(nodeCount);
      const shown = answers.join(", ");
      assertEquals(held !== undefined, count(["grant"]) >= quorum, shown);
      if (held) continue;
      // Where no grant of the hanging ones could help any more, they were not waited for.
      const waited = count(["grant", "hang"]) >= quorum;
      const untold = count(waited ? ["fail", "hang"] : ["fail"]) > nodeCount - quorum;
      const Class = untold ? QuorumError : LockHeldError;
      assertEquals(call.isUnanswered(bench.denied), untold, shown);
      assertEquals(bench.refusal(call).constructor, Class, shown);
    }
  });
}

Deno.test("refusalNow() counts every kind of vote in its message", async () => {
  const bench = new Bench(5);
  bench.cluster.nodes[1].set("a", "other");
  bench.cluster.set("fail", 2);
  bench.cluster.set("hang", 3, 4);
  const call = bench.call({ nodeTimeoutMs: 30 });
  assertEquals(await bench.attempt(call), undefined);
  const error = bench.refusal(call);
  assertInstanceOf(error, QuorumError);
  assertEquals(
    error.message,
    'Cannot acquire lock "a": 1 of 5 nodes granted it, 1 denied, 1 failed, 2 timed out, 3 are needed; first error: node2 is down',
  );
  assertEquals(error.votes.map(({ outcome, elapsedMs }) => [outcome, elapsedMs]), [
    ["granted", 0],
    ["denied", 0],
    ["failed", 0],
    ["timed-out", 30],
    ["timed-out", 30],
  ]);
  assertInstanceOf(error.cause, AggregateError);
  assertEquals(error.cause.message, "node2: node2 is down");
});

Deno.test("refusalNow() for others alone has no cause", async () => {
  const bench = new Bench();
  for (const node of bench.cluster.nodes) node.set("a", "other");
  const call = bench.call();
  await bench.attempt(call);
  const error = bench.refusal(call);
  assertInstanceOf(error, LockHeldError);
  assertEquals(
    error.message,
    'Cannot acquire lock "a": someone else holds it; 0 of 3 nodes granted it, 3 denied, 2 are needed',
  );
  assertEquals(error.cause, undefined);
});

Deno.test("attempt() names resources, not keys, in errors and events", async () => {
  const bench = new Bench(1);
  const call = bench.call({ keyPrefix: "app:" }, ["a", "b"]);
  bench.cluster.nodes[0].set("app:b", "other");
  await bench.attempt(call);
  const error = bench.refusal(call);
  assertEquals(bench.cluster.nodes[0].calls[0].keys, ["app:a", "app:b"]);
  assertEquals(error.resources, ["a", "b"]);
  assertEquals(
    error.message,
    'Cannot acquire locks "a", "b": someone else holds it; 0 of 1 node granted it, 1 denied, 1 is needed',
  );
  assertEquals(bench.cluster.events.map((event) => "resources" in event && event.resources), [
    ["a", "b"],
    ["a", "b"],
  ]);
});

const LEAST_MS = expiryMarginMs(VALIDITY_MS) + 0.25;

for (
  const [passedMs, won] of [[VALIDITY_MS - LEAST_MS, true], [
    VALIDITY_MS - LEAST_MS + 0.25,
    false,
  ]] as const
) {
  Deno.test(`attempt() ${won ? "wins" : "does not win"} by grants that are concluded after ${passedMs} ms`, async () => {
    const bench = new Bench();
    const call = bench.call();
    const ask = call.ask.bind(call);
    call.ask = async (round) => {
      await ask(round);
      bench.cluster.clock.block(passedMs);
    };
    const held = await bench.attempt(call);
    assertEquals(held?.remainingMs(), won ? LEAST_MS : undefined);
    if (!won) assertEquals(call.isUnanswered(bench.denied), true);
    assertEquals(bench.steps[0], won ? ["acquire"] : ["acquire", "release"]);
  });
}

Deno.test("attempt() without a lock releases under the attempt's value but where nothing was set, and waits for none", async () => {
  const bench = new Bench();
  bench.cluster.nodes[0].set("a", "other");
  bench.cluster.set("hang", 1);
  bench.cluster.set("fail", 2);
  const call = bench.call();
  assertEquals(await bench.attempt(call), undefined);
  assertEquals(bench.steps, [["acquire"], ["acquire", "release"], ["acquire", "release"]]);
  for (const { calls: [acquire, release] } of bench.cluster.nodes.slice(1)) {
    assertEquals(release.value, acquire.value);
  }
  assertEquals([bench.cluster.wheel.size, bench.cluster.clock.timersAlive], [0, 0]);
});

Deno.test("attempt() asks each time under a value of its own", async () => {
  const bench = new Bench(1);
  const call = bench.call();
  bench.cluster.nodes[0].set("a", "other");
  await bench.attempt(call);
  await bench.attempt(call);
  const values = bench.cluster.nodes[0].asked("acquire").map(({ value }) => value);
  assertEquals(values, bench.cluster.values);
  assertEquals(new Set(values).size, 2);
});

for (
  const [autoExtend, byDefault, extended] of [
    [undefined, false, false],
    [undefined, true, true],
    [false, true, false],
    [true, false, true],
  ]
) {
  Deno.test(`LockCall with an autoExtend of ${autoExtend} where ${byDefault} is usual ${extended ? "extends" : "does not extend"} its lock`, async () => {
    const bench = new Bench();
    const held = await bench.settle(bench.acquire(bench.call({ autoExtend }, ["a"], byDefault)));
    await bench.cluster.clock.advance(500);
    assertEquals(held.extensions, extended ? 1 : 0);
  });
}

// Events

Deno.test("acquireInTurn() reports each attempt with its own time, and the end with the call's", async () => {
  const bench = new Bench(1);
  const [node] = bench.cluster.nodes;
  node.set("a", "other", 105);
  node.replyMs = 10;
  bench.cluster.fraction = 1;
  const held = await bench.settle(bench.acquire(bench.call({ retryDelayMs: 100 })));
  assertEquals(held.remainingMs(), VALIDITY_MS - 10);
  assertEquals(bench.cluster.eventTypes, ["attempt", "attempt", "acquired"]);
  const [first, second, acquired] = bench.cluster.events;
  assert(first.type === "attempt" && second.type === "attempt" && acquired.type === "acquired");
  assertEquals([first.attempt, first.granted, first.elapsedMs], [1, false, 10]);
  assertEquals(first.votes, [{ node: "node0", outcome: "denied", elapsedMs: 10 }]);
  assertEquals([second.attempt, second.granted, second.elapsedMs], [2, true, 10]);
  assertEquals([acquired.attempts, acquired.elapsedMs], [2, 120]);
  assertEquals(acquired.remainingMs, VALIDITY_MS - 10);
});

Deno.test("acquireInTurn() reports a call that ended without a lock: attempts, votes and the call's time", async () => {
  const bench = new Bench(1);
  bench.cluster.nodes[0].set("a", "other");
  bench.cluster.fraction = 1;
  const acquiring = bench.acquire(bench.call({ retryDelayMs: 100, waitMs: 250 }));
  const error = await bench.settle(assertRejects(() => acquiring, LockHeldError));
  const denied = bench.cluster.events.at(-1);
  assert(denied?.type === "denied");
  assertEquals([denied.reason, denied.attempts, denied.elapsedMs], ["held", 3, 250]);
  assertEquals([denied.resources, denied.votes], [["a"], error.votes]);
});

Deno.test("attempt() without a listener fails as one with a listener does", async () => {
  const bench = new Bench(1);
  bench.cluster.set("fail", 0);
  const call = bench.call({ onEvent: undefined });
  assertEquals(await bench.attempt(call), undefined);
  assertInstanceOf(bench.refusal(call), QuorumError);
  assertEquals(bench.cluster.events, []);
});

Deno.test("attempt() aborted by the listener that hears of the lock tells that it is lost", async () => {
  const bench = new Bench();
  const controller = new AbortController();
  const heard: string[] = [];
  const reason = new Error("changed my mind");
  const call = bench.call({
    signal: controller.signal,
    onEvent: ({ type }) => {
      heard.push(type);
      if (type === "acquired") controller.abort(reason);
    },
  });
  const error = await assertRejects(() => bench.attempt(call));
  assertStrictEquals(error, reason);
  await runMicrotasks();
  assertEquals(heard, ["attempt", "acquired", "lost"]);
  assertEquals(bench.cluster.holders("a"), Array(3).fill(undefined));
});

// Ends

Deno.test("attempt() of a closed client asks nobody, and has no votes", async () => {
  const bench = new Bench();
  bench.client.closed = true;
  const error = await assertRejects(() => bench.acquire(bench.call()), RedlockError);
  assertEquals(error.message, 'Cannot acquire lock "a": the lock client is closed');
  assertEquals([error.code, error.resources, error.votes], ["CLOSED", ["a"], []]);
  assertEquals(bench.steps, [[], [], []]);
});

Deno.test("attempt() whose client closes during the attempt gives back what it won, and says how it was answered", async () => {
  const bench = new Bench();
  for (const node of bench.cluster.nodes) node.replyMs = 10;
  const acquiring = bench.acquire(bench.call());
  const rejected = assertRejects(() => acquiring, RedlockError);
  await runMicrotasks();
  bench.client.closed = true;
  const error = await bench.settle(rejected);
  assertEquals(error.code, "CLOSED");
  assertEquals(error.votes.map(({ outcome }) => outcome), ["granted", "granted"]);
  await runMicrotasks();
  assertEquals(bench.cluster.holders("a"), Array(3).fill(undefined));
  assertEquals(bench.cluster.eventTypes, ["attempt"]);
});

Deno.test("attempt() prefers the signal's reason where the client is closed too", async () => {
  const bench = new Bench();
  bench.client.closed = true;
  const reason = new Error("changed my mind");
  const call = bench.call({ signal: AbortSignal.abort(reason) });
  assertStrictEquals(await assertRejects(() => bench.acquire(call)), reason);
});

for (const [waitMs, attempts] of [[0, 1], [1, 2], [100, 2], [101, 3]] as const) {
  Deno.test(`LockCall with a waitMs of ${waitMs} and a delay of 100 makes ${attempts} attempts`, async () => {
    const bench = new Bench(1);
    bench.cluster.nodes[0].set("a", "other");
    bench.cluster.fraction = 1;
    const options = { waitMs, retryDelayMs: 100, retryDelayMaxMs: 100 };
    const acquiring = bench.acquire(bench.call(options));
    const startMs = bench.cluster.clock.monotonicMs();
    await bench.settle(assertRejects(() => acquiring, LockHeldError));
    assertEquals(bench.cluster.nodes[0].asked("acquire").length, attempts);
    assertEquals(bench.cluster.clock.monotonicMs() - startMs, waitMs);
  });
}
