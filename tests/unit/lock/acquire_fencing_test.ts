import {
  assert,
  assertEquals,
  assertGreater,
  assertLess,
  assertLessOrEqual,
  assertRejects,
  assertStrictEquals,
} from "@std/assert";
import fc from "fast-check";
import { QuorumError, RedlockError } from "../../../src/errors.ts";
import { counterHint } from "../../../src/fencing/token.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import { FakeCluster } from "../../support/fake_nodes.ts";
import { FencingCluster } from "../../support/fencing_nodes.ts";

/** Some counter of a resource that is used. */
const USED = 1_600_000_000_000_000;
const SEED = 8_128;

async function tokenOf(cluster: FencingCluster, resource: string | string[] = "a") {
  const lock = await cluster.settle(cluster.redlock.acquire(resource));
  return lock.fencingToken;
}

// One round

Deno.test("attempt() with fencing on a fresh resource takes one round, and its token is the hint", async () => {
  const cluster = new FencingCluster(5);
  const hint = counterHint(cluster.clock.wallMs());
  assertEquals(await tokenOf(cluster), hint);
  assertEquals(cluster.steps, Array(5).fill("acquire"));
  for (const { calls: [{ counterFloor }] } of cluster.nodes) assertEquals(counterFloor, hint);
});

Deno.test("attempt() with fencing takes one round where the nodes' clocks are apart by less than the hint's lead", async () => {
  const cluster = new FencingCluster(3);
  cluster.nodes.forEach((node, index) => node.aheadMs = [-5_000, 0, 999][index]);
  assertEquals(await tokenOf(cluster), counterHint(cluster.clock.wallMs()));
  assertEquals(cluster.steps, Array(3).fill("acquire"));
});

Deno.test("attempt() with fencing on a used resource takes one round, and counts on", async () => {
  const cluster = new FencingCluster(5);
  cluster.count("a", ...Array(5).fill(USED));
  assertEquals(await tokenOf(cluster), USED + 1);
  assertEquals(cluster.steps, Array(5).fill("acquire"));
});

Deno.test("attempt() with fencing takes one round where a quorum agrees on the maximum", async () => {
  const cluster = new FencingCluster(5);
  cluster.count("a", USED, USED, USED, USED - 7, undefined);
  cluster.nodes[4].modes.acquire = "fail";
  assertEquals(await tokenOf(cluster), USED + 1);
  assertEquals(cluster.steps, Array(5).fill("acquire"));
});

Deno.test("attempt() without fencing tells no hint, and its lock has no token", async () => {
  const cluster = new FencingCluster(3, { fencing: false });
  assertEquals(await tokenOf(cluster), undefined);
  assertEquals(cluster.counters("a"), Array(3).fill(undefined));
  for (const { calls } of cluster.nodes) {
    assertEquals(calls.map(({ counterFloor }) => counterFloor), [undefined]);
  }
});

Deno.test("attempt() with fencing counts for all of several resources at once", async () => {
  const cluster = new FencingCluster(3);
  cluster.count("a", USED, USED, USED);
  cluster.count("b", USED + 9, USED + 9, USED + 9);
  assertEquals(await tokenOf(cluster, ["a", "b"]), USED + 10);
  assertEquals(
    [cluster.counters("a"), cluster.counters("b")],
    Array(2).fill(Array(3).fill(USED + 10)),
  );
});

// Raising

Deno.test("attempt() with fencing raises counters that are apart, in one more round", async () => {
  const cluster = new FencingCluster(3);
  cluster.count("a", USED + 4, USED, USED + 2);
  assertEquals(await tokenOf(cluster), USED + 5);
  assertEquals(cluster.steps, Array(3).fill("acquire raiseCounters"));
  assertEquals(cluster.counters("a"), Array(3).fill(USED + 5));
  for (const { calls: [acquire, raise] } of cluster.nodes) {
    assertEquals([raise.counterFloor, raise.value, raise.keys], [USED + 5, acquire.value, ["a"]]);
  }
});

Deno.test("attempt() with fencing takes a node that is above the token for a new maximum, and raises once more", async () => {
  const cluster = new FencingCluster(3);
  cluster.count("a", USED + 4, USED, USED);
  cluster.nodes[2].modes.acquire = "fail";
  const [first, second] = cluster.nodes;
  second.before.raiseCounters = () => {
    second.counters.set("a", USED + 20);
    delete second.before.raiseCounters;
  };
  assertEquals(await tokenOf(cluster), USED + 20);
  assertEquals(first.asked("raiseCounters").map(({ counterFloor }) => counterFloor), [
    USED + 5,
    USED + 20,
  ]);
  assertEquals(cluster.counters("a").slice(0, 2), [USED + 20, USED + 20]);
});

Deno.test("attempt() with fencing does not count a node that denied, and leaves its counter alone", async () => {
  const cluster = new FencingCluster(3);
  cluster.count("a", USED + 4, USED, USED + 100);
  cluster.nodes[2].holders.set("a", "other");
  assertEquals(await tokenOf(cluster), USED + 5);
  assertEquals(cluster.steps, Array(3).fill("acquire raiseCounters"));
  assertEquals(cluster.counters("a"), [USED + 5, USED + 5, USED + 100]);
});

Deno.test("attempt() with fencing does not take a count for agreed that a node gave no answer to", async () => {
  const cluster = new FencingCluster(3);
  cluster.count("a", USED + 4, USED, USED);
  for (const node of cluster.nodes.slice(1)) node.modes.raiseCounters = "lose-reply";
  const refused = assertRejects(() => cluster.redlock.acquire("a"), QuorumError);
  await cluster.settle(refused);
  assertEquals(cluster.counters("a"), Array(3).fill(USED + 5)); // they are, but who knows
  assertEquals(cluster.holders("a"), Array(3).fill(undefined));
});

Deno.test("attempt() with fencing settles on an answer that comes late", async () => {
  const cluster = new FencingCluster(3, { nodeTimeoutMs: 100 });
  cluster.count("a", USED + 4, USED, USED + 4);
  const [, second, third] = cluster.nodes;
  third.replyMs = 30; // its count arrives while the others are asked to raise
  second.modes.raiseCounters = "lose-reply";
  third.modes.raiseCounters = "lose-reply";
  assertEquals(await tokenOf(cluster), USED + 5);
});

for (const nodeCount of [1, 2, 3, 4, 5]) {
  Deno.test(`attempt() with fencing over ${nodeCount} nodes gives tokens above all before, whatever the counters are and whoever is down`, async () => {
    const step = fc.record({
      down: fc.integer({ min: 0, max: 2 ** nodeCount - 1 }),
      lost: fc.integer({ min: 0, max: 2 ** nodeCount - 1 }),
      resources: fc.constantFrom(["a"], ["b"], ["a", "b"]),
    });
    const apart = fc.array(fc.nat(3), { minLength: nodeCount, maxLength: nodeCount });
    await fc.assert(
      fc.asyncProperty(apart, fc.array(step, { maxLength: 8 }), async (apart, steps) => {
        const cluster = new FencingCluster(nodeCount, { nodeTimeoutMs: 20 });
        cluster.count("a", ...apart.map((more) => USED + more));
        const highest: Record<string, number> = { a: USED, b: 0 };
        for (const { down, lost, resources } of steps) {
          cluster.nodes.forEach(({ modes }, nodeIndex) => {
            modes.acquire = down & 1 << nodeIndex ? "fail" : "answer";
            modes.raiseCounters = lost & 1 << nodeIndex ? "lose-reply" : "answer";
          });
          const acquiring = cluster.redlock.acquire(resources).catch(() => undefined);
          const lock = await cluster.settle(acquiring);
          if (!lock) continue;
          const token = lock.fencingToken!;
          for (const resource of resources) {
            assertGreater(token, highest[resource]);
            highest[resource] = token;
          }
          await cluster.settle(lock.release());
        }
      }),
      { seed: SEED, numRuns: 60 },
    );
  });
}

Deno.test("attempt() with fencing raises above what a node whose counter is an old one may have given", async () => {
  const cluster = new FencingCluster(3);
  const [first, second, third] = cluster.nodes;
  cluster.count("a", USED, USED, USED);
  first.modes.acquire = "fail";
  second.old = true;
  const hint = counterHint(cluster.clock.wallMs());
  assertEquals(await tokenOf(cluster), hint);
  assertEquals(third.asked("raiseCounters").map(({ counterFloor }) => counterFloor), [hint]);
});

Deno.test("attempt() with fencing does without a node whose counter is an old one, where a quorum agrees", async () => {
  const cluster = new FencingCluster(3);
  cluster.count("a", USED - 9, USED, USED);
  cluster.nodes[0].old = true;
  assertEquals(await tokenOf(cluster), USED + 1);
  assertEquals(cluster.steps, Array(3).fill("acquire"));
});

// Giving up

/** Has every node count on between two raises, each by another number, so that they never agree. */
function disagreeForEver(cluster: FencingCluster): void {
  cluster.count("a", ...cluster.nodes.map((_, index) => USED + index));
  cluster.nodes.forEach((node, index) => {
    node.before.raiseCounters = () => {
      node.counters.set("a", node.counters.get("a")! + 10 + index);
    };
  });
}

Deno.test("attempt() with fencing gives up after eight raises, takes back what it set, and says why", async () => {
  const cluster = new FencingCluster(3);
  disagreeForEver(cluster);
  const refused = assertRejects(() => cluster.redlock.acquire("a"), QuorumError);
  const error = await cluster.settle(refused);
  const [first] = cluster.nodes;
  assertEquals(first.asked("raiseCounters").length, 8);
  assertEquals(first.steps, ["acquire", ...Array(8).fill("raiseCounters"), "release"]);
  assertEquals(cluster.holders("a"), Array(3).fill(undefined));
  assertEquals(
    error.message,
    'Cannot acquire lock "a": 3 of 3 nodes granted it, 2 are needed, but they did not agree on a fencing token',
  );
  assertEquals(cluster.events.map(({ type }) => type), ["attempt", "denied"]);
  const [attempt, denied] = cluster.events;
  assert(attempt.type === "attempt" && !attempt.granted);
  assert(denied.type === "denied" && denied.reason === "no-quorum");
});

Deno.test("attempt() with fencing gives all its raises the time of one answer, and takes back what it set", async () => {
  const nodeTimeoutMs = 400;
  const cluster = new FencingCluster(3, { nodeTimeoutMs });
  disagreeForEver(cluster);
  for (const node of cluster.nodes) node.replyMs = 300;
  const startMs = cluster.clock.monotonicMs();
  const refused = assertRejects(() => cluster.redlock.acquire("a"), QuorumError);
  await cluster.settle(refused);
  assertLessOrEqual(cluster.clock.monotonicMs() - startMs, 2 * nodeTimeoutMs + 1);
  assertEquals(cluster.nodes[0].asked("raiseCounters").length, 2);
  await runMicrotasks();
  assertEquals(cluster.holders("a"), Array(3).fill(undefined));
});

Deno.test("attempt() with fencing raises no further when a majority says that its keys are gone", async () => {
  const cluster = new FencingCluster(3);
  disagreeForEver(cluster);
  const [first, ...others] = cluster.nodes;
  for (const node of others) node.before.raiseCounters = () => node.holders.clear();
  await cluster.settle(assertRejects(() => cluster.redlock.acquire("a"), QuorumError));
  assertEquals(first.asked("raiseCounters").length, 1);
  assertEquals(cluster.holders("a"), Array(3).fill(undefined));
});

Deno.test("attempt() with fencing does not count on a node that has lost its key since", async () => {
  const cluster = new FencingCluster(3, { nodeTimeoutMs: 50 });
  cluster.count("a", USED, USED + 1, undefined);
  const [, second, third] = cluster.nodes;
  third.modes.acquire = "fail";
  second.before.raiseCounters = () => second.holders.set("a", "another"); // whose token is the greater
  await cluster.settle(assertRejects(() => cluster.redlock.acquire("a"), QuorumError));
  assertEquals(cluster.counters("a").slice(0, 2), [USED + 2, USED + 2]);
});

Deno.test("attempt() with fencing that agrees too late for its validity is none", async () => {
  const cluster = new FencingCluster(3, { nodeTimeoutMs: 900 });
  cluster.count("a", USED + 4, USED, USED + 2);
  for (const node of cluster.nodes) node.replyMs = 493.5;
  const refused = assertRejects(() => cluster.redlock.acquire("a"), QuorumError);
  const error = await cluster.settle(refused);
  assertEquals(
    error.message,
    'Cannot acquire lock "a": 3 of 3 nodes granted it, 2 are needed, but too late for its validity',
  );
  assertEquals(cluster.holders("a"), Array(3).fill(undefined));
});

Deno.test("attempt() with fencing whose wait is not over tries again, with a value of its own", async () => {
  const cluster = new FencingCluster(3, { waitMs: 5_000 });
  disagreeForEver(cluster);
  const acquiring = cluster.redlock.acquire("a");
  await runMicrotasks();
  for (const node of cluster.nodes) delete node.before.raiseCounters;
  const lock = await cluster.settle(acquiring);
  const [first] = cluster.nodes;
  const values = first.asked("acquire").map(({ value }) => value);
  assertGreater(values.length, 1);
  assertEquals([new Set(values).size, values.at(-1)], [values.length, lock.value]);
  assertGreater(lock.fencingToken!, USED);
  assertEquals(cluster.counters("a"), Array(3).fill(lock.fencingToken));
});

Deno.test("attempt() with fencing that is aborted while it raises rejects with the reason, and takes back what it set", async () => {
  const controller = new AbortController();
  const cluster = new FencingCluster(3, { signal: controller.signal });
  cluster.count("a", USED + 4, USED, USED + 2);
  const reason = new Error("changed my mind");
  for (const node of cluster.nodes) node.modes.raiseCounters = "lose-reply";
  cluster.nodes[0].before.raiseCounters = () => controller.abort(reason);
  const rejected = assertRejects(() => cluster.redlock.acquire("a"));
  assertStrictEquals(await cluster.settle(rejected), reason);
  assertEquals(cluster.nodes[0].asked("raiseCounters").length, 1);
  await runMicrotasks();
  assertEquals(cluster.holders("a"), Array(3).fill(undefined));
});

Deno.test("attempt() with fencing whose client closes while it raises takes back what it set", async () => {
  const cluster = new FencingCluster(3);
  cluster.count("a", USED + 4, USED, USED + 2);
  for (const node of cluster.nodes) node.modes.raiseCounters = "lose-reply";
  const rejected = assertRejects(() => cluster.redlock.acquire("a"), RedlockError);
  await runMicrotasks();
  await cluster.settle(cluster.redlock.close());
  const error = await cluster.settle(rejected);
  assertEquals([error.code, cluster.nodes[0].asked("raiseCounters").length], ["CLOSED", 1]);
  assertEquals(cluster.holders("a"), Array(3).fill(undefined));
});

// Before and after

Deno.test("attempt() with fencing carries no token from one resource to another", async () => {
  const cluster = new FencingCluster(3);
  cluster.count("a", 4e15, 4e15, 4e15);
  assertEquals(await tokenOf(cluster), 4e15 + 1);
  const lock = await cluster.settle(cluster.redlock.acquire("b"));
  assertEquals(lock.fencingToken, cluster.nodes[0].calls.at(-1)?.counterFloor);
  assertEquals(lock.fencingToken, counterHint(cluster.clock.wallMs()));
});

Deno.test("Lock.extend() with fencing keeps the token, and tells it to nodes that are filled in", async () => {
  const cluster = new FencingCluster(3);
  const lock = await cluster.settle(cluster.redlock.acquire("a"));
  const token = lock.fencingToken!;
  const [, , third] = cluster.nodes;
  third.holders.clear();
  third.counters.clear();
  await cluster.settle(lock.extend());
  await runMicrotasks();
  assertEquals(lock.fencingToken, token);
  assertEquals(third.asked("extend").map(({ counterFloor }) => counterFloor), [token]);
  assertEquals(cluster.counters("a"), Array(3).fill(token));
  assertEquals(cluster.holders("a"), Array(3).fill(lock.value));
});

Deno.test("Redlock refuses fencing where a node has none, and asks nobody", async () => {
  const cluster = new FakeCluster(3);
  for (
    const call of [
      () => cluster.redlock.acquire("a", { fencing: true }),
      () => cluster.redlock.tryAcquire("a", { fencing: true }),
      () => cluster.redlock.using("a", { fencing: true }, () => {}),
    ]
  ) {
    const error = await assertRejects(call, TypeError);
    assertEquals(
      error.message,
      "Cannot acquire lock as node node0 does not support fencing tokens",
    );
  }
  assertEquals(cluster.nodes.flatMap(({ calls }) => calls), []);
  assertLess(cluster.wheel.size, 1);
});
