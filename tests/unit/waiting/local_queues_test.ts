import { assert, assertEquals, assertInstanceOf, assertLess } from "@std/assert";
import { LockLostError } from "../../../src/errors.ts";
import type { RedlockEvent } from "../../../src/events.ts";
import { createNodeSet } from "../../support/node_set.ts";
import { TimerWheel } from "../../../src/time/timer_wheel.ts";
import { LocalQueues } from "../../../src/waiting/local_queues.ts";
import { keysName } from "../../../src/resources.ts";
import { Callers, held } from "../../support/callers.ts";
import { REASON } from "../../support/cluster.ts";

Deno.test("keysName() is one for the same keys in any order, and differs for different keys", () => {
  const texts = ["a", "b", "ab", "a,b", "a\0b", "a|b b|a", "a|c", "ab|c", "a|bc", "a|b|c c|a|b"];
  const sets = texts.map((text) => text.split(" ").map((order) => order.split("|")));
  const names = sets.map((orders) => new Set(orders.map(keysName)));
  for (const [index, name] of names.entries()) assertEquals(name.size, 1, `${sets[index]}`);
  assertEquals(new Set(names.flatMap((name) => [...name])).size, sets.length);
  const keys = ["b", "a"];
  keysName(keys);
  assertEquals(keys, ["b", "a"]);
});

Deno.test("LocalQueues remembers 4,096 contended locks, and forgets the oldest for one more", () => {
  const queues = new LocalQueues(createNodeSet(new TimerWheel(), []), undefined);
  for (let index = 0; index < 4_096; index++) queues.remember(`${index}`);
  queues.remember("4095"); // known
  const call = (name: string) => ({ name, keys: [name], pool: 0 });
  assert(queues.isContended(call("0")));
  queues.noteReleased(["4096"], true);
  const names = ["0", "1", "4096", "other"].filter((name) => queues.isContended(call(name)));
  assertEquals(names, ["1", "4096"]);
});

Deno.test("LocalQueues takes no longer for a name that was often used while many locks are held", () => {
  const [fewMs, manyMs] = [10, 100_000].map((held) => {
    const queues = new LocalQueues(createNodeSet(new TimerWheel(), []), undefined);
    for (let index = 0; index < held; index++) queues.claim(`${index}`, queues);
    const timesMs = Array.from({ length: 20 }, () => {
      const startMs = performance.now();
      for (let times = 0; times < 1_000; times++) {
        assert(queues.claim("other", queues));
        queues.lockEnded(["other"], queues);
      }
      return performance.now() - startMs;
    });
    return Math.min(...timesMs.slice(10)); // no busy machine delays all of them
  });
  assertLess(manyMs, 50 * fewMs);
});

// Turns

Deno.test("calls of one client are first in, first out; each asks once, and none while another has the lock", async () => {
  const callers = await held("second", "third");
  callers.call("using");
  callers.redlock.using("a", () => callers.won.push("the routine"));
  callers.call("last");
  await callers.advance(500_000);
  assertEquals([callers.asked(), callers.won], [[1, 1, 1], ["first"]]);
  assertEquals(callers.clock.timersAlive, 1);
  for (const who of ["first", "second", "third", "using"]) await callers.release(who);
  assertEquals(callers.won, ["first", "second", "third", "using", "the routine", "last"]);
  assertEquals([callers.asked(), callers.priorities], [[6, 6, 6], Array(6).fill("none")]);
  assertEquals(callers.nodes.map(({ subscribes }) => subscribes), [0, 0, 0]);
  await callers.release("last");
  assertEquals([callers.holders(), ...callers.timers], [Array(3).fill(undefined), 0, 0]);
});

for (const how of ["tryAcquire()", "acquire() with a waitMs of 0"]) {
  const attempt = ({ redlock }: Callers) =>
    how === "tryAcquire()" ? redlock.tryAcquire("a") : redlock.acquire("a", { waitMs: 0 });

  Deno.test(`${how} has later calls wait for its lock without asking, and leaves nothing without one`, async () => {
    const callers = new Callers();
    callers.occupy();
    await callers.settle(attempt(callers).catch(() => {}));
    callers.free();
    const lock = await callers.settle(attempt(callers));
    callers.call("second");
    await callers.advance(100_000);
    assertEquals([callers.asked(), callers.won], [[2, 2, 2], []]);
    await callers.settle(lock!.release());
    await callers.advance(0);
    assertEquals([callers.asked(), callers.won], [[3, 3, 3], ["second"]]);
    assertEquals(callers.nodes[0].subscribes, 0);
  });
}

// Giving up

for (const [how, options] of [["whose time is over", { waitMs: 1_500 }], ["that is aborted", {}]]) {
  Deno.test(`a first call ${how} has the next of its client go on in its place in the nodes' queues`, async () => {
    const callers = new Callers();
    const controller = new AbortController();
    callers.occupy();
    callers.call("first", { signal: controller.signal, ...options as object });
    for (const who of ["second", "third"]) callers.call(who);
    await callers.advance(1_500);
    const tickets = callers.nodes.map((node) => node.queue());
    assertEquals(callers.queueLengths, [1, 1, 1]);
    controller.abort(REASON);
    await callers.advance(1_000);
    assertEquals([...callers.errors.keys()], ["first"]);
    assertEquals(callers.nodes.map((node) => node.queue()), tickets);
    callers.free();
    await callers.advance(0);
    await callers.release("second");
    assertEquals(callers.won, ["second", "third"]);
  });
}

// Locks that end otherwise than by a release

Deno.test("the next call of a client goes on at once when its lock is lost, whose release then frees nothing", async () => {
  const callers = await held("second");
  const first = callers.locks.get("first")!;
  callers.occupy();
  assertInstanceOf(await callers.rejection(first.extend()), LockLostError);
  await callers.advance(1_000);
  assertEquals(callers.priorities.slice(0, 2), ["none", "none"]);
  callers.free();
  await callers.advance(0);
  assertEquals(callers.won, ["first", "second"]);
  assertEquals(await callers.settle(first.release()), false);
  callers.call("third");
  await callers.advance(1_000);
  assertEquals(callers.won, ["first", "second"]);
});

for (const how of ["lost", "given up"]) {
  Deno.test(`the next call of a client goes on although the lock is ${how} in the listener that gets it`, async () => {
    const controller = new AbortController();
    const callers = new Callers({ ttlMs: 1_000 });
    const onEvent = ({ type }: RedlockEvent) => {
      if (type !== "acquired") return;
      if (how === "lost") callers.clock.advanceSync(1_001);
      else controller.abort(REASON);
    };
    callers.call("first", { onEvent, signal: controller.signal });
    callers.call("second");
    await callers.advance(0);
    assertEquals(callers.won, how === "lost" ? ["first", "second"] : ["second"]);
    await callers.release("second");
    callers.call("third");
    await callers.advance(1_000);
    assertEquals(callers.won.at(-1), "third");
  });
}

// Closing
