import { assertEquals } from "@std/assert";
import type { Redlock } from "../../src/redlock.ts";
import { close, REASON, rejection, settle, TTL } from "../support/cluster_calls.ts";
import { runMicrotasks } from "../support/fake_clock.ts";
import { countListeners, FakeCluster } from "../support/fake_nodes.ts";

const CALLS = 50;

/** What a call with a signal may wait for. */
const WAITS: Record<string, {
  nodes?: "hang";
  held?: boolean;
  call(redlock: Redlock, resource: string, signal: AbortSignal): Promise<unknown>;
}> = {
  "the nodes' answers": {
    nodes: "hang",
    call: (redlock, resource, signal) => redlock.acquire(resource, { ...TTL, signal }),
  },
  "another's lock": {
    held: true,
    call: (redlock, resource, signal) => redlock.acquire(resource, { ...TTL, signal }),
  },
  "its turn in the local queue": {
    held: true,
    call: (redlock, _, signal) => redlock.acquire("all", { ...TTL, signal }),
  },
  "a token from elsewhere": {
    call: (redlock, resource, signal) =>
      redlock.acquire(resource, { ...TTL, signal, tokenSource: () => new Promise(() => {}) }),
  },
  "the routine of using()": {
    call: (redlock, resource, signal) =>
      redlock.using(
        resource,
        { ...TTL, signal },
        (lock) =>
          new Promise((_, reject) =>
            lock.signal.addEventListener("abort", () => reject(lock.signal.reason))
          ),
      ),
  },
};

for (const [what, { nodes, held, call }] of Object.entries(WAITS)) {
  Deno.test(`Redlock puts one listener on a signal of ${CALLS} calls that wait for ${what}`, async () => {
    const cluster = new FakeCluster();
    if (nodes) cluster.set(nodes, 0, 1, 2);
    const resources = Array.from({ length: CALLS }, (_, index) => `r${index}`);
    if (held) {
      for (const key of [...resources, "all"]) {
        for (const node of cluster.nodes) node.set(key, "another");
      }
    }
    const controller = new AbortController();
    const listeners = countListeners(controller.signal);
    const calls = resources.map((resource) => call(cluster.redlock, resource, controller.signal));
    const rejected = calls.map((each) => rejection(cluster, each));
    await runMicrotasks();
    assertEquals(listeners(), 1);
    controller.abort(REASON);
    for (const each of rejected) assertEquals(await each, REASON);
    assertEquals(listeners(), 0);
    await close(cluster);
  });
}

Deno.test("Redlock leaves no listener on a signal whose calls have ended", async () => {
  const cluster = new FakeCluster();
  const { signal } = new AbortController();
  const listeners = countListeners(signal);
  for (let times = 0; times < 3; times++) {
    const lock = await settle(cluster, cluster.redlock.acquire("a", { ...TTL, signal }));
    await settle(cluster, lock.extend({ signal }));
    await settle(cluster, lock.release());
    await settle(cluster, cluster.redlock.using("a", { ...TTL, signal }, () => {}));
    assertEquals(listeners(), 0);
  }
  await close(cluster);
});
