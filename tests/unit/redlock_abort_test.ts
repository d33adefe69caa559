import { assertEquals, assertRejects } from "@std/assert";
import type { Redlock } from "../../src/redlock.ts";
import { Cluster, OTHER_VALUE, REASON } from "../support/cluster.ts";
import { countListeners } from "../support/count_listeners.ts";
import { runMicrotasks } from "../support/fake_clock.ts";

/** How many calls share one signal. */
const CALLS = 50;

Deno.test("acquire() aborted in the tick in which the quorum is won gives the lock back, and ignores a later abort", async () => {
  for (const abortMs of [5, 6]) {
    const cluster = new Cluster();
    const controller = new AbortController();
    for (const node of cluster.nodes) node.replyMs = 5;
    const acquiring = cluster.redlock.acquire("a", { signal: controller.signal });
    cluster.clock.setTimer(() => controller.abort(REASON), abortMs);
    const lock = await cluster.settle(acquiring.catch((error: Error) => error));
    await cluster.advance(1);
    if (lock instanceof Error) {
      assertEquals([abortMs, lock], [5, REASON]);
      assertEquals(cluster.holders(), [undefined, undefined, undefined]);
    } else assertEquals([abortMs, lock.held, lock.signal.aborted], [6, true, false]);
  }
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
    held: true,
    call: (redlock, _, signal) => redlock.acquire("all", { signal }),
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
  Deno.test(`Redlock puts one listener on a signal of ${CALLS} calls that wait for ${what}, which it ends at once`, async () => {
    const cluster = new Cluster();
    if (hangs) cluster.set("hang");
    const resources = Array.from({ length: CALLS }, (_, index) => `r${index}`);
    if (held) { for (const key of [...resources, "all"]) cluster.occupy(key); }
    const controller = new AbortController();
    const listeners = countListeners(controller.signal);
    const calls = resources.map((resource) => call(cluster.redlock, resource, controller.signal));
    const rejected = Promise.all(calls.map((each) => assertRejects(() => each)));
    await runMicrotasks();
    assertEquals(listeners(), 1);
    controller.abort(REASON);
    assertEquals(await rejected, Array(CALLS).fill(REASON)); // without any time passing
    assertEquals(listeners(), 0);
    cluster.resume();
    await cluster.advance(10);
    assertEquals(cluster.clock.timersAlive, 0);
    for (const key of resources) {
      assertEquals(cluster.holders(key), Array(3).fill(held ? OTHER_VALUE : undefined));
    }
  });
}
