/**
 * The interfaces of others on this library: Web Locks, verrou's stores, node-cron's coordinator.
 */

import { assert, assertEquals, assertRejects } from "@std/assert";
import { delay } from "@std/async";
import { createRedlock, type Redlock } from "@hasp/redlock";
import { E_LOCK_NOT_OWNED, LockFactory } from "@verrou/core";
import { startNodes } from "@hasp/redlock/testing";
import { coordinator } from "../examples/node_cron_coordinator.ts";
import { type Granted, Locks } from "../examples/web_locks.ts";
import { QuorumStore } from "../examples/verrou_store.ts";
import { eventually } from "../support/eventually.ts";

const TTL_MS = 2_000;

/** Two processes that share three nodes, each with a client of its own. */
async function startPair() {
  const stack = new AsyncDisposableStack();
  const nodes = stack.use(await startNodes(3));
  const clients = [1, 2].map(() => {
    return stack.use(createRedlock(nodes.addresses, { ttlMs: TTL_MS, onEvent: () => {} }));
  });
  return { clients, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** Runs a case on two clients. */
function pairTest(name: string, routine: (one: Redlock, other: Redlock) => Promise<void>): void {
  Deno.test(name, async () => {
    await using pair = await startPair();
    await routine(pair.clients[0], pair.clients[1]);
  });
}

/** A callback that stays until it is told to end. */
function held() {
  const granted = Promise.withResolvers<Granted>();
  const end = Promise.withResolvers<string>();
  return {
    callback: (lock: Granted) => {
      granted.resolve(lock);
      return end.promise;
    },
    granted: granted.promise,
    end: () => end.resolve("ended"),
  };
}

// Web Locks

pairTest(
  "Locks.request() gives the callback name and mode, returns its result and releases",
  async (one) => {
    const locks = new Locks(one);
    const lock = await locks.request("a", (lock) => Promise.resolve(lock));
    assertEquals(lock, { name: "a", mode: "exclusive" });
    assertEquals((await one.inspect("a")).held, false);
    await assertRejects(
      () =>
        locks.request("a", {}, () => {
          throw new RangeError("no");
        }),
      RangeError,
      "no",
    );
    assertEquals((await one.inspect("a")).held, false);
  },
);

pairTest(
  "Locks.request() excludes other processes, and lets who is shared in together",
  async (one, other) => {
    const [mine, theirs] = [new Locks(one), new Locks(other)];
    const first = held();
    const requests = [mine.request("a", { mode: "shared" }, first.callback)];
    assertEquals(await first.granted, { name: "a", mode: "shared" });
    const second = held();
    requests.push(theirs.request("a", { mode: "shared" }, second.callback));
    await second.granted;
    let isAlone = false;
    const writer = theirs.request("a", () => void (isAlone = true));
    await delay(50);
    assertEquals(isAlone, false);
    first.end();
    second.end();
    await Promise.all([writer, ...requests]);
    assertEquals(isAlone, true);
  },
);

pairTest(
  "Locks.request() with ifAvailable calls back with null if another process holds the lock",
  async (one, other) => {
    const first = held();
    const request = new Locks(one).request("a", first.callback);
    await first.granted;
    const seen = await new Locks(other).request("a", { ifAvailable: true }, (lock) => lock);
    assertEquals(seen, null);
    first.end();
    assertEquals(await request, "ended");
  },
);

pairTest(
  "Locks.request() rejects with the signal's reason while it waits, and ignores it later",
  async (one, other) => {
    const first = held();
    const stop = new AbortController();
    const request = new Locks(one).request("a", { signal: stop.signal }, first.callback);
    await first.granted;
    const waiting = new Locks(other).request("a", { signal: stop.signal }, () => "never");
    await eventually(async () => assertEquals((await one.inspect("a")).waiters, 1));
    stop.abort(new Error("stopped"));
    await assertRejects(() => waiting, Error, "stopped");
    first.end();
    assertEquals(await request, "ended");
    const early = new Locks(one).request("a", { signal: stop.signal }, () => "never");
    await assertRejects(() => early, Error, "stopped");
  },
);

pairTest(
  "Locks.request() with steal takes the lock: the former request rejects, and the next holder keeps it",
  async (one, other) => {
    const [mine, theirs] = [new Locks(one), new Locks(other)];
    const [first, second, third] = [held(), held(), held()];
    const stolen = mine.request("a", first.callback);
    const isStolen = assertRejects(() => stolen, DOMException, "The lock was stolen or lost");
    await first.granted;
    const taken = theirs.request("a", { steal: true }, second.callback);
    const isTaken = assertRejects(() => taken, DOMException, "The lock was stolen or lost");
    await second.granted;
    await isStolen; // with its next extension
    assertEquals((await one.inspect("a")).held, true);
    const again = theirs.request("a", { steal: true }, third.callback);
    await isTaken; // at once: the same process
    third.end();
    assertEquals(await again, "ended");
  },
);

pairTest("Locks.request() refuses what the standard does not allow", async (one) => {
  const locks = new Locks(one);
  const { signal } = new AbortController();
  for (
    const [name, options] of [
      ["-a", {}],
      ["a", { steal: true, ifAvailable: true }],
      ["a", { steal: true, mode: "shared" }],
      ["a", { signal, steal: true }],
      ["a", { signal, ifAvailable: true }],
    ] as const
  ) {
    const error = await assertRejects(() => locks.request(name, options, () => {}), DOMException);
    assertEquals(error.name, "NotSupportedError");
  }
  await assertRejects(() => locks.request("a", {}, "no" as unknown as () => void), TypeError);
});

// verrou

pairTest("verrou's locks exclude each other on a quorum, and are released", async (one, other) => {
  const [mine, theirs] = [one, other].map((redlock) => new LockFactory(new QuorumStore(redlock)));
  const lock = mine.createLock("a");
  assertEquals(await lock.acquire(), true);
  assertEquals([await lock.isLocked(), await theirs.createLock("a").isLocked()], [true, true]);
  assertEquals(await theirs.createLock("a").acquireImmediately(), false);
  await lock.release();
  assertEquals(await lock.isLocked(), false);
  assertEquals(await theirs.createLock("a").run(() => Promise.resolve("done")), [true, "done"]);
  assertEquals((await one.inspect("a")).held, false);
});

pairTest(
  "verrou's store refuses to extend or release a lock of another owner",
  async (one, other) => {
    const store = new QuorumStore(one);
    assertEquals(await store.save("a", "owner", 5_000), true);
    for (const someone of [store, new QuorumStore(other)]) {
      await assertRejects(() => someone.delete("a", "another"), E_LOCK_NOT_OWNED);
      await assertRejects(() => someone.extend("a", "another", 5_000), E_LOCK_NOT_OWNED);
    }
    assertEquals(await store.exists("a"), true);
    await store.delete("a", "owner");
    await assertRejects(() => store.delete("a", "owner"), E_LOCK_NOT_OWNED);
  },
);

pairTest(
  "verrou's store forgets a lock whose TTL is over, extends one, and keeps one without a TTL",
  async (one) => {
    const store = new QuorumStore(one);
    await store.save("short", "owner", 300);
    await store.save("long", "owner", TTL_MS);
    await store.save("forever", "owner", null);
    await store.extend("long", "owner", 60_000);
    await eventually(async () => assertEquals(await store.exists("short"), false));
    await assertRejects(() => store.extend("short", "owner", 300), E_LOCK_NOT_OWNED);
    await delay(TTL_MS + 200);
    assertEquals([await store.exists("long"), await store.exists("forever")], [true, true]);
  },
);

pairTest("verrou's store takes a lock away from its holder", async (one, other) => {
  const store = new QuorumStore(one);
  await store.save("a", "owner", 60_000);
  await new QuorumStore(other).forceDelete("a");
  assertEquals(await store.exists("a"), false);
  await store.forceDelete("a"); // nobody holds it
});

// node-cron

pairTest(
  "the coordinator elects one instance for each run of a task, also one whose clock is late",
  async (one, other) => {
    const instances = [one, other, one].map(coordinator);
    for (const run of ["report:10:00", "report:10:01"]) {
      const elected = await Promise.all(instances.map(({ shouldRun }) => shouldRun(run, 60_000)));
      assertEquals(elected.filter(Boolean).length, 1);
      assertEquals(await instances[1].shouldRun(run, 60_000), false);
    }
    assert((await one.inspect("cron:report:10:00")).held);
  },
);
