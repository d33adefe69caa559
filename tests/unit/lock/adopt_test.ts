import { assert, assertEquals, assertLess, assertRejects, assertThrows } from "@std/assert";
import { LockLostError, QuorumError, type RedlockEvent } from "../../../mod.ts";
import { holderOf } from "../../../src/holder.ts";
import { handOverToken } from "../../../src/lock/hand_over_token.ts";
import {
  Cluster,
  handedOver,
  locked,
  OTHER_VALUE,
  REASON,
  test,
  TTL_MS,
  VALIDITY_MS,
} from "../../support/cluster.ts";
import { runMicrotasks } from "../../support/fake_clock.ts";

/** Two keys, and the value of a third one that is not locked. */
const PAIR = ["a", "b"];

/** The one that a client with this lock's value replaced. */
function eventsOf<Type extends RedlockEvent["type"]>(events: RedlockEvent[], type: Type) {
  return events.filter((event): event is Extract<RedlockEvent, { type: Type }> => {
    return event.type === type;
  });
}

test.locked("handOver() ends the handle and asks no node", async ({ cluster, lock }) => {
  const { value } = lock;
  const steps = cluster.steps;
  const token = lock.handOver();
  assertEquals(token, handOverToken({ value, ttlMs: TTL_MS, keptMs: 0, resources: ["a"] }));
  assertEquals([lock.held, lock.remainingMs(), lock.signal.aborted], [false, 0, false]);
  assertEquals([await lock.release(), await lock.release()], [false, false]);
  await lock[Symbol.asyncDispose]();
  await cluster.advance(TTL_MS / 2);
  assertEquals([cluster.steps, cluster.holders()], [steps, [value, value, value]]);
  assertEquals([lock.signal.aborted, cluster.timers], [false, [0, 0]]);
});

test.locked("handOver() throws a LockLostError if the lock is not held", async ({ cluster, lock }) => {
  lock.handOver();
  const again = assertThrows(
    () => lock.handOver(),
    LockLostError,
    'Cannot hand over lock "a": it was handed over',
  );
  assertEquals([again.code, again.reason, again.resources], ["LOCK_LOST", "released", ["a"]]);
  await assertRejects(
    () => lock.extend(),
    LockLostError,
    'Cannot extend lock "a": it was handed over',
  );
  const released = (await locked()).lock;
  const releasing = released.release();
  assertThrows(
    () => released.handOver(),
    LockLostError,
    'Cannot hand over lock "a": it was released',
  );
  await releasing;
  const expired = await locked();
  await expired.cluster.advance(VALIDITY_MS);
  assertThrows(() => expired.lock.handOver(), LockLostError, 'Cannot keep lock "a"');
  await cluster.close();
});

Deno.test("adopt() gives every key a new value and its own TTL, and the former holder can do nothing to it", async () => {
  for (const resource of ["a", PAIR]) {
    const { cluster, given, token } = await handedOver(3, resource, { ttlMs: 5_000 });
    await cluster.advance(TTL_MS / 2);
    const lock = await cluster.settle(cluster.redlock.adopt(token));
    assertEquals([lock.resources, lock.held], [given.resources, true]);
    assert(lock.value !== given.value);
    for (const key of given.resources) {
      assertEquals(cluster.holders(key), [lock.value, lock.value, lock.value]);
      assertEquals(cluster.nodes.map((node) => node.lifeMs(key)), [5_000, 5_000, 5_000]);
    }
    await given.release();
    await cluster.advance(TTL_MS);
    assert(lock.held);
    assertEquals([await cluster.settle(lock.release()), cluster.holders()], [
      true,
      [undefined, undefined, undefined],
    ]);
  }
});

Deno.test("adopt() never shortens a key's TTL", async () => {
  const { cluster, token } = await handedOver(3, "a", { ttlMs: 100 });
  const lock = await cluster.settle(cluster.redlock.adopt(token));
  assertEquals([cluster.nodes[0].lifeMs(), lock.remainingMs()], [TTL_MS, 97]);
});

test.handedOver("adopt() gets a lock that others wait for, in this client and others, and its release notifies them", async ({ cluster, token }) => {
  const taker = cluster.redlock;
  const waiting = [taker, cluster.peer()].map((redlock) => redlock.acquire("a", { waitMs: 5_000 }));
  await cluster.advance(50);
  const lock = await cluster.settle(taker.adopt(token, { waitMs: 5_000, autoExtend: true }));
  assertEquals(await cluster.settle(lock.release()), true);
  const first = await cluster.settle(Promise.race(waiting));
  await cluster.settle(first.release());
  const both = await cluster.settle(Promise.all(waiting));
  assertEquals(new Set([lock.value, ...both.map(({ value }) => value)]).size, 3);
});

Deno.test("adopt() counts no node in quarantine, and gives back what it took there", async () => {
  const cluster = new Cluster(3, { restartGuardMs: TTL_MS });
  const given = await cluster.lock();
  const token = given.handOver();
  cluster.nodes[0].quarantined = cluster.nodes[1].quarantined = true;
  const error = await cluster.rejection(cluster.redlock.adopt(token));
  assert(error instanceof QuorumError);
  assertEquals(error.votes.map(({ outcome }) => outcome).sort(), [
    "granted",
    "quarantined",
    "quarantined",
  ]);
  assertEquals(cluster.holders(), [given.value, given.value, given.value]);
});

// Two takers and more

test.handedOver("adopt() tries for waitMs while too few nodes answer, and more often if the TTL is short", async ({ cluster, token }) => {
  cluster.set("fail");
  const adopting = cluster.redlock.adopt(token, { waitMs: 5 * TTL_MS });
  await cluster.advance(TTL_MS * 0.9);
  cluster.resume();
  const lock = await cluster.settle(adopting);
  assert(lock.held);
  cluster.set("fail");
  const [before] = cluster.asked("adopt");
  await cluster.rejection(cluster.redlock.adopt(lock.handOver(), { waitMs: 50 * TTL_MS }));
  assertLess(cluster.asked("adopt")[0] - before, 150); // it may live for a fiftieth of that
});

test.handedOver("adopt() tries no longer than waitMs, whatever the delays between its attempts are", async ({ cluster, token }) => {
  cluster.set("fail");
  const options = { waitMs: 200, retryDelayMs: 3_000, retryDelayMaxMs: 3_000 };
  assert(
    await cluster.rejection(cluster.redlock.adopt(token, options), 201) instanceof QuorumError,
  );
});

test.handedOver("adopt() gives up if nobody has a quorum and the keys do not come back", async ({ cluster, token }) => {
  cluster.nodes[0].set("a", "c".repeat(40));
  cluster.nodes[1].delete("a");
  const error = await cluster.rejection(cluster.redlock.adopt(token), 60_000);
  assertEquals(
    [error instanceof QuorumError, error.message],
    [
      true,
      'Cannot adopt lock "a": 1 of 3 nodes granted it, 2 denied, 2 are needed; waited 10000 ms',
    ],
  );
});

// What is over

Deno.test("adopt() rejects with a LockLostError if the lock is gone, or somebody else holds it", async () => {
  const gone = 'Cannot adopt lock "a": its key is gone, or somebody else has it';
  const taken = 'Cannot adopt lock "a": somebody else holds it';
  const cases: [prepare: (cluster: Cluster, token: string) => unknown, message: string][] = [
    [(cluster) => cluster.advance(TTL_MS + 1), gone],
    [(cluster) => cluster.forget(0, 1), gone],
    [(cluster) => cluster.occupy("a"), taken],
    [(cluster, token) => cluster.settle(cluster.peer().adopt(token)), taken],
    [async (cluster, token) => {
      const lock = await cluster.settle(cluster.peer().adopt(token));
      await cluster.settle(lock.release());
    }, gone],
  ];
  for (const [prepare, message] of cases) {
    const { cluster, given, token } = await handedOver();
    await prepare(cluster, token);
    const holders = cluster.holders().map((value) => value === given.value ? undefined : value);
    const error = await cluster.rejection(cluster.redlock.adopt(token));
    assert(error instanceof LockLostError, String(error));
    assertEquals([error.message, error.reason, error.resources], [message, "gone", ["a"]]);
    assertEquals(cluster.holders(), holders);
  }
  const { cluster, token } = await handedOver(3, PAIR);
  cluster.occupy("b");
  const error = await cluster.rejection(cluster.redlock.adopt(token), TTL_MS / 2);
  assert(error instanceof LockLostError, String(error));
});

test.handedOver("adopt() rejects at once when its signal aborts while it looks who has the lock", async ({ cluster, token }) => {
  for (const node of cluster.nodes.slice(1)) node.set("a", OTHER_VALUE, TTL_MS);
  for (const node of cluster.nodes) node.modes.inspect = "hang";
  const controller = new AbortController();
  const { signal } = controller;
  cluster.clock.setTimer(() => controller.abort(REASON), 1);
  const error = await cluster.rejection(cluster.redlock.adopt(token, { signal }), 1);
  assertEquals(error, REASON);
});

test.handedOver("adopt() rejects with the reason of its signal if the validity ends while the lock is given back", async ({ cluster, given, token }) => {
  const { clock, redlock } = cluster;
  const controller = new AbortController();
  const onEvent = ({ type }: RedlockEvent) => {
    if (type !== "acquired") return;
    controller.abort(REASON);
    const nowMs = clock.monotonicMs();
    let looks = 0;
    clock.monotonicMs = () => nowMs + (looks++ > 0 ? VALIDITY_MS : 0);
  };
  const { signal } = controller;
  const adopting = redlock.adopt(token, { signal, onEvent }).catch((error) => error);
  await runMicrotasks();
  assertEquals([await adopting, cluster.holders()], [REASON, Array(3).fill(given.value)]);
});

Deno.test("adopt() frees a node of a lock that somebody else holds, unless atLeastMs keeps it", async () => {
  for (const atLeastMs of [0, TTL_MS / 2]) {
    const cluster = new Cluster();
    const given = await cluster.settle(cluster.peer().acquire("a", { atLeastMs }));
    const token = given.handOver();
    for (const node of cluster.nodes.slice(1)) node.set("a", OTHER_VALUE, TTL_MS);
    const error = await cluster.rejection(cluster.redlock.adopt(token));
    assert(error instanceof LockLostError, String(error));
    const left = atLeastMs > 0 ? given.value : undefined;
    assertEquals(cluster.holders(), [left, OTHER_VALUE, OTHER_VALUE]);
  }
});

Deno.test("adopt() rejects at once if the lock is gone, also if nodes that fail decide before the others answer", async () => {
  const { cluster, token } = await handedOver(5);
  cluster.forget(2, 3, 4);
  cluster.set("fail", 0, 1);
  cluster.nodes.slice(2).forEach((node, index) => node.replyMs = 1 + index);
  const error = await cluster.rejection(cluster.redlock.adopt(token), TTL_MS / 2);
  assertEquals([error instanceof LockLostError, error.message], [
    true,
    'Cannot adopt lock "a": its key is gone, or somebody else has it',
  ]);
});

test("events link the former holder to the one that adopts", async (cluster) => {
  const lock = await cluster.lock();
  await cluster.advance(10);
  const token = lock.handOver();
  const events: RedlockEvent[] = [];
  const onEvent = (event: RedlockEvent) => void events.push(event);
  const taker = cluster.peer({ onEvent });
  const adopted = await cluster.settle(taker.adopt(token));
  const holder = holderOf(lock.value);
  const [handed] = eventsOf(cluster.events, "handed-over");
  assertEquals(handed, { type: "handed-over", resources: ["a"], holder, heldMs: 10 });
  const [acquired] = eventsOf(events, "acquired");
  assertEquals([acquired.holder, acquired.adoptedFrom], [adopted.holder, holder]);
  assertEquals("adoptedFrom" in eventsOf(cluster.events, "acquired")[0], false);
  await cluster.rejection(cluster.peer({ onEvent }).adopt(token));
  const [denied] = eventsOf(events, "denied");
  assertEquals([denied.reason, denied.attempts], ["gone", 1]);
  for (const event of [...cluster.events, ...events]) {
    assert(!JSON.stringify(event).includes(lock.value));
  }
});
