import {
  assert,
  assertEquals,
  assertGreater,
  assertInstanceOf,
  assertMatch,
  assertRejects,
  assertStrictEquals,
} from "@std/assert";
import fc from "fast-check";
import { QuorumError, type RedlockError } from "../../../src/errors.ts";
import { counterHint } from "../../../src/fencing/token.ts";
import { handOverToken } from "../../../src/lock/hand_over_token.ts";
import type { RedlockOptions } from "../../../src/options.ts";
import { QUARANTINED } from "../../../src/quorum/outcome.ts";
import { Cluster, OTHER_VALUE, REASON, TTL_MS, VALIDITY_MS } from "../../support/cluster.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";
import type { KeyspaceNode } from "../../support/keyspace_node.ts";

/** Some counter of a resource that was used an hour ago. */
const USED = 1_699_996_400_000_000;
/** What a client proposes for a counter that is missing. */
const HINT = counterHint(1_700_000_000_000);
const SEED = 8_128;

/** A cluster whose counters of "a" are these, more than {@linkcode USED}; `undefined` is none. */
function fenced(more: (number | undefined)[], options: RedlockOptions = {}): Cluster {
  const cluster = new Cluster(more.length, { fencing: true, waitMs: 0, notify: false, ...options });
  more.forEach((more, index) => more !== undefined && cluster.nodes[index].count("a", USED + more));
  return cluster;
}

function counters(cluster: Cluster, key = "a"): (number | undefined)[] {
  return cluster.nodes.map((node) => node.counter(key));
}

async function tokenOf(cluster: Cluster): Promise<number> {
  return (await cluster.lock()).fencingToken!;
}

// One round

const NEW = Array(5).fill(undefined);

for (
  const [what, more, token, prepare] of [
    ["a fresh resource, with the hint", NEW, HINT, () => {}],
    [
      "nodes whose clocks are apart by less than the hint's lead",
      NEW.slice(2),
      HINT,
      (nodes) => nodes.forEach((node, index) => node.aheadMs = [-5_000, 0, 999][index]),
    ],
    ["a used resource, and counts on", [0, 0, 0, 0, 0], USED + 1, () => {}],
    [
      "counters of which a quorum agrees on the maximum",
      [0, 0, 0, -7, undefined],
      USED + 1,
      (nodes) => nodes[4].modes.acquire = "fail",
    ],
    [
      "a minority whose counters may be outdated",
      [-9, 0, 0],
      USED + 1,
      (nodes) => nodes[0].outdated = true,
    ],
  ] satisfies [string, (number | undefined)[], number, (nodes: KeyspaceNode[]) => unknown][]
) {
  Deno.test(`acquire() with fencing takes one round for ${what}`, async () => {
    const cluster = fenced(more);
    prepare(cluster.nodes);
    assertEquals(await tokenOf(cluster), token);
    assertEquals(cluster.steps, Array(more.length).fill("acquire"));
    for (const { calls: [{ counterHint }] } of cluster.nodes) assertEquals(counterHint, HINT);
  });
}

// Raising

Deno.test("acquire() with fencing agrees on no count that a node did not answer", async () => {
  const cluster = fenced([4, 0, 0]);
  for (const node of cluster.nodes.slice(1)) node.modes.raiseCounters = "lose-reply";
  assertInstanceOf(await cluster.refusal(), QuorumError);
  assertEquals(counters(cluster), Array(3).fill(USED + 5)); // they are, but who knows
  assertEquals(cluster.holders(), Array(3).fill(undefined));
});

Deno.test("acquire() with fencing raises above what a node whose counter is outdated may have given", async () => {
  const cluster = fenced([0, 0, 0]);
  const [first, second, third] = cluster.nodes;
  first.modes.acquire = "fail";
  second.outdated = true;
  assertEquals(await tokenOf(cluster), HINT);
  assertEquals(third.asked("raiseCounters").map(({ counterFloor }) => counterFloor), [HINT]);
});

for (const nodeCount of [1, 2, 3, 4, 5]) {
  Deno.test(`acquire() with fencing on ${nodeCount} nodes gives tokens above all before, whatever the counters are and whichever nodes are down`, async () => {
    const step = fc.record({
      down: fc.integer({ min: 0, max: 2 ** nodeCount - 1 }),
      lost: fc.integer({ min: 0, max: 2 ** nodeCount - 1 }),
      resources: fc.constantFrom(["a"], ["b"], ["a", "b"]),
    });
    const apart = fc.array(fc.nat(3), { minLength: nodeCount, maxLength: nodeCount });
    await fc.assert(
      fc.asyncProperty(apart, fc.array(step, { maxLength: 8 }), async (apart, steps) => {
        const cluster = fenced(apart, { nodeTimeoutMs: 20 });
        const highest: Record<string, number> = { a: USED, b: 0 };
        for (const { down, lost, resources } of steps) {
          cluster.nodes.forEach(({ modes }, nodeIndex) => {
            modes.acquire = down & 1 << nodeIndex ? "fail" : "answer";
            modes.raiseCounters = lost & 1 << nodeIndex ? "lose-reply" : "answer";
          });
          const lock = await cluster.lock({}, resources).catch(() => undefined);
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

// Giving up

/** Has every node count on between two raises, each by another number, so that they never agree. */
function disagreeing(options: RedlockOptions = {}): Cluster {
  const cluster = fenced([0, 1, 2], options);
  cluster.nodes.forEach((node, index) => {
    node.before.raiseCounters = () => node.count("a", node.counter()! + 10 + index);
  });
  return cluster;
}

/** Has the nodes take their keys back, if they have not yet. */
async function assertFree(cluster: Cluster): Promise<void> {
  await runMicrotasks();
  assertEquals(cluster.holders(), Array(3).fill(undefined));
}

Deno.test("acquire() with fencing gives up after eight raises, takes back what it set, and says why", async () => {
  const cluster = disagreeing();
  const error = await cluster.refusal();
  assertInstanceOf(error, QuorumError);
  const raises = Array(8).fill("raiseCounters").join(" ");
  assertEquals(cluster.steps, Array(3).fill(`acquire ${raises} release`));
  assertEquals(
    error.message,
    'Cannot acquire lock "a": 3 of 3 nodes granted it, 2 are needed, but no fencing token was agreed on',
  );
  const [attempt, denied, ...others] = cluster.events;
  assert(attempt.type === "attempt" && !attempt.granted);
  assert(denied.type === "denied" && denied.reason === "no-quorum");
  assertEquals(others, []);
  await assertFree(cluster);
});

Deno.test("acquire() with fencing raises no further when a majority says that its keys are gone", async () => {
  const cluster = disagreeing();
  for (const node of cluster.nodes.slice(1)) node.before.raiseCounters = () => node.delete("a");
  assertInstanceOf(await cluster.refusal(), QuorumError);
  assertEquals(cluster.asked("raiseCounters"), [1, 1, 1]);
  await assertFree(cluster);
});

Deno.test("acquire() with fencing does not count on a node that has lost its key since", async () => {
  const cluster = fenced([0, 1, undefined], { nodeTimeoutMs: 50 });
  const [, second, third] = cluster.nodes;
  third.modes.acquire = "fail";
  second.before.raiseCounters = () => second.set("a", "another"); // whose token is the greater
  assertInstanceOf(await cluster.refusal(), QuorumError);
  assertEquals(counters(cluster).slice(0, 2), [USED + 2, USED + 2]);
});

Deno.test("acquire() with fencing does not count on a node in quarantine, although it raises its counter", async () => {
  const cluster = fenced([1, 0, 4]);
  const [first, second] = cluster.nodes;
  first.instead.acquire = (request, nodeIndex) => {
    first.set("a", request.value, TTL_MS);
    request.answer(nodeIndex, QUARANTINED);
  };
  second.before.raiseCounters = () => second.forget();
  assertInstanceOf(await cluster.refusal(), QuorumError);
  assertEquals(first.counter(), USED + 5);
});

Deno.test("acquire() with fencing that has its token too late says that it is too late", async () => {
  const cluster = fenced([0, 0, 0], { nodeTimeoutMs: TTL_MS });
  for (const node of cluster.nodes) node.replyMs = VALIDITY_MS - 10;
  assertMatch((await cluster.refusal()).message, /, but too late for its validity$/);
});

Deno.test("acquire() with fencing that is aborted, or whose client closes, while it raises takes back what it set", async () => {
  for (const how of ["abort", "close"]) {
    const cluster = fenced([4, 0, 2]);
    const controller = new AbortController();
    for (const node of cluster.nodes) node.modes.raiseCounters = "lose-reply";
    cluster.nodes[0].before.raiseCounters = () => {
      if (how === "abort") controller.abort(REASON);
      else cluster.redlock.close();
    };
    const error = await cluster.refusal({ signal: controller.signal });
    if (how === "abort") assertStrictEquals(error, REASON);
    else assertEquals((error as RedlockError).code, "CLOSED");
    assertEquals(cluster.asked("raiseCounters"), [1, 1, 1]);
    await assertFree(cluster);
  }
});

Deno.test("Redlock refuses what a node does not support, and asks nobody", async () => {
  const token = handOverToken({ value: OTHER_VALUE, ttlMs: TTL_MS, keptMs: 0, resources: ["a"] });
  for (
    const [options, what] of [
      [{ fencing: true }, "fencing"],
      [{ restartGuardMs: TTL_MS }, "restartGuardMs"],
      [{}, "adopt"],
    ] as const
  ) {
    const cluster = new Cluster(3, options);
    Object.assign(cluster.nodes[1], { lacks: { [what]: true } });
    const { redlock } = cluster;
    const acquiring = [
      () => redlock.acquire("a"),
      () => redlock.tryAcquire("a"),
      () => redlock.using("a", () => {}),
    ];
    for (const call of [() => redlock.adopt(token), ...what === "adopt" ? [] : acquiring]) {
      const verb = acquiring.includes(call) ? "acquire" : "adopt";
      assertEquals(
        (await assertRejects(call, TypeError)).message,
        `Cannot ${verb} lock as node node1 does not support '${what}'`,
      );
    }
    assertEquals(cluster.steps, ["", "", ""]);
  }
});
