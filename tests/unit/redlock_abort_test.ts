import { assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import { getEventListeners } from "node:events";
import { LockHeldError } from "../../src/errors.ts";
import type { RedlockEvent } from "../../src/events.ts";
import { insideOf, type Redlock } from "../../src/redlock.ts";
import { OTHER_VALUE, REASON, test } from "../support/cluster.ts";
import { runMicrotasks } from "../support/fake_clock.ts";

/** How many calls share one signal. */
const CALLS = 50;

test("a call that is refused is so once, also if its listener aborts it then", async (cluster) => {
  cluster.occupy();
  const controller = new AbortController();
  const events: RedlockEvent[] = [];
  const onEvent = (event: RedlockEvent) => {
    events.push(event);
    if (event.type === "denied") controller.abort(REASON);
  };
  const error = await cluster.refusal({ waitMs: 0, signal: controller.signal, onEvent });
  assertInstanceOf(error, LockHeldError);
  assertEquals(events.map(({ type }) => type), ["attempt", "denied"]);
});

// Listeners

/** What a call with a signal may wait for. */
const WAITS: Record<string, {
  hangs?: boolean;
  held?: boolean;
  call(redlock: Redlock, resource: string, signal: AbortSignal): Promise<unknown>;
}> = {
  "the nodes' answers": {
    hangs: true,
    call: (redlock, resource, signal) => redlock.acquire(resource, { signal }),
  },
  "another's lock": {
    held: true,
    call: (redlock, resource, signal) => redlock.acquire(resource, { signal }),
  },
  "its turn in the local queue": {
    call: (redlock, _, signal) => {
      insideOf(redlock, "all").localQueues.claim("all", {});
      return redlock.acquire("all", { signal });
    },
  },
  "the end of its client's other attempts": {
    call: (redlock, resource, signal) => {
      while (insideOf(redlock, "crowd").attemptGate.enter());
      return redlock.acquire(resource, { signal });
    },
  },
  "the routine of using()": {
    call: (redlock, resource, signal) =>
      redlock.using(resource, { signal }, (lock) =>
        new Promise((_, reject) => {
          lock.signal.addEventListener("abort", () => reject(lock.signal.reason));
        })),
  },
};

for (const [what, { hangs, held, call }] of Object.entries(WAITS)) {
  test(`Redlock puts one listener on a signal of ${CALLS} calls that wait for ${what}, which it ends at once, and each is reported once`, async (cluster) => {
    if (hangs) cluster.set("hang");
    const resources = Array.from({ length: CALLS }, (_, index) => `r${index}`);
    if (held) resources.forEach((key) => cluster.occupy(key));
    const controller = new AbortController();
    const listeners = () => getEventListeners(controller.signal, "abort").length;
    const calls = resources.map((resource) => call(cluster.redlock, resource, controller.signal));
    const rejected = Promise.all(calls.map((each) => assertRejects(() => each)));
    await runMicrotasks();
    assertEquals(listeners(), 1);
    controller.abort(REASON);
    assertEquals(await rejected, Array(CALLS).fill(REASON)); // without any time passing
    assertEquals(listeners(), 0);
    const reported = cluster.events.flatMap((event) => {
      return event.type === "denied" ? event.reason : event.type === "acquired" ? event.type : [];
    });
    const end = what.includes("routine") ? "acquired" : "aborted";
    assertEquals(reported, Array(CALLS).fill(end));
    cluster.resume();
    await cluster.advance(10);
    assertEquals(cluster.clock.timersAlive, 0);
    for (const key of resources) {
      assertEquals(cluster.holders(key), Array(3).fill(held ? OTHER_VALUE : undefined));
    }
  });
}

// Events

test("Redlock reports a call of one attempt as aborted, also if the signal aborted before", async (cluster) => {
  const signal = AbortSignal.abort(NaN); // which does not equal itself
  const calls = [
    () => cluster.redlock.acquire("a", { signal }),
    () => cluster.redlock.acquire("a", { signal, waitMs: 0 }),
    () => cluster.redlock.tryAcquire("a", { signal }),
    () => cluster.redlock.using("a", { signal }, () => {}),
  ];
  for (const call of calls) assertEquals(await call().catch((reason) => reason), NaN);
  const [event] = cluster.events;
  assertEquals(event, {
    type: "denied",
    resources: ["a"],
    reason: "aborted",
    votes: [],
    attempts: 0,
    elapsedMs: 0,
  });
  assertEquals(cluster.eventTypes, Array(4).fill("denied"));
});

test("a call rejects with whatever its signal aborts with", async (cluster) => {
  const signal = AbortSignal.abort(null);
  const aborted = cluster.redlock.acquire("a", { signal }).catch((error) => [error]);
  assertEquals(await cluster.settle<unknown>(aborted), [null]);
  assertEquals(cluster.eventTypes, ["denied"]);
});
