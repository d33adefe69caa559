import { assertEquals, assertInstanceOf } from "@std/assert";
import { Redlock } from "../../../mod.ts";
import { check } from "../../../src/operate/mod.ts";
import type { LockNode } from "../../../src/nodes/mod.ts";
import { publishedNode } from "../../../src/nodes/published_node.ts";
import { startFakeClock } from "../../../src/testing/mod.ts";
import { systemClock } from "../../../src/time/clock.ts";
import { HOSTILE } from "../../support/hostile.ts";
import { KeyspaceNode } from "../../support/keyspace_node.ts";

/** What a node does, in each of its methods. */
const WAYS: Readonly<Record<string, (make: () => unknown) => () => unknown>> = {
  "throws": (make) => () => {
    throw make();
  },
  "rejects with": (make) => () => Promise.reject(make()),
  "returns": (make) => make,
};

for (const [what, make] of Object.entries(HOSTILE)) {
  for (const [how, way] of Object.entries(WAYS)) {
    Deno.test(`Redlock keeps it in its vote that a node ${how} ${what}`, async () => {
      using clock = startFakeClock();
      await clock.tickUntil(useBesideTwo(hostileNode(way(make))));
    });
  }
}

function hostileNode(act: () => unknown): LockNode {
  const methods = [
    "acquire",
    "extend",
    "release",
    "raiseCounters",
    "inspect",
    "diagnose",
    "close",
  ];
  const acts = Object.fromEntries(methods.map((name) => [name, act]));
  return Object.assign(acts, { name: "hostile" }) as unknown as LockNode;
}

/** Two locks, a wait, an inspection, a check and the close, with one hostile node in three. */
async function useBesideTwo(hostile: LockNode): Promise<void> {
  const others = ["a", "b"].map((name) => publishedNode(new KeyspaceNode(name, systemClock)));
  const redlock = new Redlock([hostile, ...others], { nodeTimeoutMs: 100, fencing: true });
  const lock = await redlock.acquire("invoice:42", { ttlMs: 2_000 });
  const waiting = redlock.acquire("invoice:42", { ttlMs: 2_000, waitMs: 1_000 });
  await lock.extend();
  assertEquals((await redlock.inspect("invoice:42")).held, true);
  const { nodes } = await check(redlock);
  Deno.inspect(nodes);
  assertEquals(await lock.release(), true);
  await (await waiting).release();
  await redlock.close();
  for (const { error } of lock.votes) if (error) assertInstanceOf(error, Error);
}
