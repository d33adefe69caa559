/**
 * Calls that end while others are decided: `close()` and aborts from listeners, nodes and
 * microtasks leave no key.
 */

import { assert, assertEquals, assertInstanceOf } from "@std/assert";
import { LockLostError, RedlockError } from "../../src/errors.ts";
import type { RedlockEvent } from "../../src/events.ts";
import type { Lock } from "../../src/lock/lock.ts";
import { Cluster, REASON, TTL_MS } from "../support/cluster.ts";
import { runMicrotasks } from "../support/fake_clock.ts";

const RESOURCES = ["a", "b", "c", "d"];

/** What is left of the locks of this client. */
function left(cluster: Cluster): string[] {
  return RESOURCES.filter((name) => cluster.holders(name).some((holder) => holder !== undefined));
}

/** Expects that the client ends, with nothing left but what `cluster` shows for keys of others. */
async function expectEnd(
  cluster: Cluster,
  calls: Promise<unknown>[],
  closing: () => Promise<void>,
) {
  const settled = await cluster.settle(Promise.allSettled(calls));
  await cluster.settle(closing());
  await runMicrotasks();
  assertEquals(left(cluster), []);
  assertEquals([cluster.clock.timers, cluster.wheel.size], [0, 0]);
  return settled;
}

/**
 * What a listener closes the client at, and whether somebody else holds the first resource then.
 */
const EVENTS = [
  ["attempt", false],
  ["attempt", true],
  ["acquired", false],
  ["denied", true],
  ["released", false],
  ["lost", false],
  ["extended", false],
  ["extend-failed", false],
] as const;

for (const method of ["acquire", "tryAcquire", "using"] as const) {
  for (const [type, occupied] of EVENTS) {
    Deno.test(`close() by a listener of ${type} undoes every ${method}() that was decided in the same read${occupied ? " as a denial" : ""}`, async () => {
      let closing: Promise<void> | undefined;
      const onEvent = (event: RedlockEvent) => {
        if (armed && event.type === type) closing ??= cluster.redlock.close();
      };
      let armed = false;
      const cluster: Cluster = new Cluster(3);
      const { redlock } = cluster;
      const before = await cluster.lock({ onEvent }, "before");
      if (occupied) cluster.occupy("occupied");
      if (type === "lost" || type === "extend-failed") cluster.forget();
      cluster.set("hang");
      armed = true;
      let ran = 0;
      const first: Promise<unknown> = occupied
        ? redlock.tryAcquire("occupied", { onEvent })
        : type === "released"
        ? before.release()
        : before.extend();
      first.catch(() => {});
      const calls = RESOURCES.map((name) =>
        method === "using"
          ? redlock.using(name, { onEvent }, () => void ran++)
          : redlock[method](name, { onEvent })
      );
      await runMicrotasks();
      cluster.resume(); // every answer, and nothing between them
      const settled = await cluster.settle(Promise.allSettled(calls));
      const codes = settled.map((each) => each.status === "rejected" && each.reason.code);
      // The listener of a loss, or of a denial by all nodes, runs when calls have their locks:
      // those are lost.
      const late = ["lost", "denied"].includes(type) && method !== "using";
      assertEquals([codes, ran], [Array(4).fill(late ? false : "CLOSED"), 0]);
      await expectEnd(cluster, [first], () => closing!);
      assertEquals(cluster.holders("before"), Array(3).fill(undefined));
    });
  }
}

/** What a listener does, and at which events of a lock. */
const ACTS = {
  close: ["attempt", "acquired", "extended", "extend-failed", "lost", "released"],
  abort: ["attempt", "acquired", "extended", "extend-failed", "lost", "released"],
  release: ["extended", "extend-failed", "lost"],
  handOver: ["extended", "extend-failed"],
} as const;

for (const [does, types] of Object.entries(ACTS) as [keyof typeof ACTS, readonly string[]][]) {
  for (const type of types) {
    Deno.test(`the events of a lock keep their order if a listener calls ${does}() at ${type} before it notes the event`, async () => {
      const controller = new AbortController();
      const seen: string[] = [];
      const onEvent = (event: RedlockEvent) => {
        if (event.type === type) {
          if (does === "close") cluster.redlock.close();
          else if (does === "abort") controller.abort(REASON);
          else if (does === "release") lock!.release().catch(() => {});
          else if (lock!.held) lock!.handOver();
        }
        seen.push(event.type);
      };
      const cluster: Cluster = new Cluster(3, { onEvent });
      const { signal } = controller;
      const call = cluster.redlock.acquire("a", { signal, autoExtend: true });
      const lock: Lock | undefined = await cluster.settle(call.catch(() => undefined));
      await cluster.advance(TTL_MS);
      if (type === "extend-failed" || type === "lost") cluster.forget();
      await cluster.advance(TTL_MS);
      if (lock) await cluster.settle(lock.release().catch(() => {}));
      await cluster.advance(TTL_MS);
      const text = seen.join(" ");
      const won = "attempt acquired( extended| extend-failed)*( lost| released| handed-over)+";
      assert(new RegExp(`^(attempt( denied)?|${won})$`, "u").test(text), text);
      assert(seen.includes(type), text);
      await cluster.settle(cluster.redlock.close());
      assertEquals(left(cluster), []);
    });
  }
}

const OPERATIONS = ["acquire", "extend", "release", "raiseCounters", "inspect"] as const;

/** Has a node close the client when it is asked for something; returns what waits for that. */
function closeWhenAsked(cluster: Cluster, number: number, operation: string) {
  let closing: Promise<void> | undefined;
  const node = cluster.nodes[number] as unknown as Record<string, (...args: unknown[]) => unknown>;
  for (const method of ["ask", "inspect"]) {
    const asked = node[method];
    node[method] = (...args) => {
      const answer = asked.apply(node, args);
      if ([method, args[0]].includes(operation)) closing ??= cluster.redlock.close();
      return answer;
    };
  }
  return () => closing!;
}

for (const number of [0, 1, 2]) {
  for (const operation of OPERATIONS) {
    Deno.test(`close() by node ${number} while it is asked to ${operation} leaves no key on any node`, async () => {
      const cluster = new Cluster(3, { fencing: true });
      const { redlock } = cluster;
      cluster.nodes[2].count("a", 2 ** 52); // the counters do not agree at first
      const closing = closeWhenAsked(cluster, number, operation);
      const ask = async () => {
        const lock = await redlock.acquire("a");
        await lock.extend();
        await redlock.inspect("a");
        await lock.release();
      };
      const calls = [ask(), redlock.acquire("b"), redlock.tryAcquire("c")];
      await expectEnd(cluster, calls, closing);
    });
  }

  Deno.test(`close() by node ${number} while a lock extends itself leaves no key on any node`, async () => {
    const cluster = new Cluster(3, { autoExtend: true, onEvent: undefined });
    const lock = await cluster.lock({}, "a");
    const closing = closeWhenAsked(cluster, number, "extend");
    await cluster.advance(TTL_MS / 2);
    assert(!lock.held);
    await expectEnd(cluster, [], closing);
  });
}

for (const [how, at] of [["abort", "attempt"], ["abort", "acquired"], ["close", "acquired"]]) {
  for (let microtasks = 0; microtasks <= 8; microtasks++) {
    Deno.test(`${how} ${microtasks} microtasks after ${at} runs no routine with a signal that has aborted`, async () => {
      for (
        const [method, atLeastMs] of [
          ["using", 0],
          ["using", TTL_MS],
          ["acquire", TTL_MS],
          ["tryAcquire", 0],
        ] as const
      ) {
        const controller = new AbortController();
        const events: string[] = [];
        const act = async () => {
          for (let count = 0; count < microtasks; count++) await Promise.resolve();
          if (how === "abort") controller.abort(REASON);
          else cluster.redlock.close();
        };
        const onEvent = ({ type }: RedlockEvent) => {
          events.push(type);
          if (type === at) act();
        };
        const cluster: Cluster = new Cluster(3, {
          onEvent,
          waitMs: method === "using" ? 10_000 : 0,
          atLeastMs,
        });
        const { signal } = controller;
        let aborted: boolean | undefined;
        const call: Promise<unknown> = method === "using"
          ? cluster.redlock.using("a", { signal }, (lock) => {
            aborted = lock.signal.aborted;
          })
          : cluster.redlock[method]("a", { signal });
        const result = await cluster.settle(call.catch((error: Error) => error));
        assert(aborted !== true);
        await runMicrotasks();
        if (result instanceof LockLostError) {
          // the routine ran already
          assertEquals([left(cluster), how, aborted], [atLeastMs > 0 ? ["a"] : [], "close", false]);
        } else if (result instanceof Error) {
          assertEquals([left(cluster), aborted], [[], undefined]);
          if (how === "close") assertInstanceOf(result, RedlockError);
          else assertEquals([result, events], [REASON, ["attempt", "acquired", "released"]]);
        }
        await cluster.close();
        await cluster.advance(2 * atLeastMs);
        assertEquals(left(cluster), []);
      }
    });
  }
}
