import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertStrictEquals,
  assertThrows,
} from "@std/assert";
import { LockLostError } from "../../../src/errors.ts";
import { clockedSignal } from "../../../src/lock/lock_signal.ts";
import { close, locked, settle, VALIDITY_MS } from "../../support/cluster_calls.ts";

Deno.test("Lock.signal that was kept is aborted once the validity is over, before any timer ran", async () => {
  const { cluster, lock } = await locked();
  const { signal } = lock;
  cluster.clock.block(VALIDITY_MS - 1);
  assertEquals(signal.aborted, false);
  signal.throwIfAborted();
  cluster.clock.block(1);
  const error = assertThrows(() => signal.throwIfAborted(), LockLostError);
  assertEquals(error.message, 'Cannot keep lock "a": its validity has ended');
  assertEquals(signal.aborted, true);
  assertStrictEquals(signal.reason, error);
  assertEquals(cluster.eventTypes, ["attempt", "acquired", "lost"]);
  await close(cluster);
});

for (const member of ["aborted", "reason"] as const) {
  Deno.test(`Lock.signal.${member} looks at the clock by itself`, async () => {
    const { cluster, lock } = await locked();
    const { signal } = lock;
    cluster.clock.block(VALIDITY_MS);
    assert(signal[member]);
    await close(cluster);
  });
}

Deno.test("Lock.signal asked for after a stall is aborted", async () => {
  const { cluster, lock } = await locked();
  cluster.clock.block(VALIDITY_MS);
  const { signal } = lock;
  assertInstanceOf(signal.reason, LockLostError);
  await close(cluster);
});

Deno.test("Lock.signal calls its listeners once, whether the timer or a reader is first", async () => {
  const { cluster, lock } = await locked();
  const { signal } = lock;
  let calls = 0;
  signal.addEventListener("abort", () => calls += signal.aborted ? 1 : 0);
  cluster.clock.block(VALIDITY_MS);
  assert(signal.aborted);
  await cluster.clock.advance(1_000);
  assertEquals(calls, 1);
  await close(cluster);
});

Deno.test("Lock.signal of a lock that was released is not aborted after a stall", async () => {
  const { cluster, lock } = await locked();
  const { signal } = lock;
  await settle(cluster, lock.release());
  cluster.clock.block(5_000);
  assertEquals([signal.aborted, signal.reason], [false, undefined]);
  signal.throwIfAborted();
  await close(cluster);
});

Deno.test("clockedSignal() is the controller's own signal, a real one", () => {
  const controller = new AbortController();
  const signal = clockedSignal(controller, () => {});
  assertStrictEquals(signal, controller.signal);
  assertInstanceOf(signal, AbortSignal);
  const both = AbortSignal.any([signal]);
  const reason = new Error("over");
  controller.abort(reason);
  assertStrictEquals(both.reason, reason);
});

Deno.test("clockedSignal() looks before it answers", () => {
  const controller = new AbortController();
  const reason = new Error("over");
  let looked = false;
  const signal = clockedSignal(controller, () => {
    if (!looked) looked = true, controller.abort(reason);
  });
  assertStrictEquals(assertThrows(() => signal.throwIfAborted()), reason);
});
