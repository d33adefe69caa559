import { assertEquals, assertLess } from "@std/assert";
import { Gate } from "../../../src/time/gate.ts";
import { TimerWheel } from "../../../src/time/timer_wheel.ts";
import { FakeClock, runMicrotasks } from "../../support/fake_clock.ts";

/** A gate for two, both of them inside, on faked time. */
function fullGate() {
  const clock = new FakeClock();
  const wheel = new TimerWheel(clock);
  const gate = new Gate(wheel, 2);
  /** Who came in or gave up, in order. */
  const log: string[] = [];
  const wait = async (name: string, limitMs = 1_000, signal?: AbortSignal, isUrgent = false) => {
    log.push(`${name} ${await gate.wait(limitMs, signal, isUrgent) ? "enters" : "gives up"}`);
  };
  assertEquals([gate.enter(), gate.enter(), gate.enter()], [true, true, false]);
  return { clock, wheel, gate, log, wait };
}

Deno.test("Gate lets those in that wait, first come, first served, one for each that leaves", async () => {
  const { gate, log, wait } = fullGate();
  for (const name of ["a", "b", "c"]) wait(name);
  await runMicrotasks();
  assertEquals(log, []);
  gate.leave();
  await runMicrotasks();
  assertEquals([log, gate.enter()], [["a enters"], false]);
  gate.leave();
  gate.leave();
  gate.leave();
  await runMicrotasks();
  assertEquals(log, ["a enters", "b enters", "c enters"]);
  assertEquals([gate.enter(), gate.enter()], [true, false]);
});

Deno.test("Gate lets one that is urgent in ahead of all that wait, and the others in their order", async () => {
  const { gate, log, wait } = fullGate();
  wait("urgent alone", 1_000, undefined, true);
  for (const name of ["a", "b"]) wait(name);
  wait("urgent", 1_000, undefined, true);
  wait("c");
  await runMicrotasks();
  for (let left = 0; left < 5; left++) gate.leave();
  await runMicrotasks();
  const order = ["urgent alone", "urgent", "a", "b", "c"];
  assertEquals(log, order.map((name) => `${name} enters`));
});

Deno.test("Gate gives a place to one that began to wait in the tick in which another left", async () => {
  const { gate, log, wait } = fullGate();
  wait("a");
  gate.leave();
  await runMicrotasks();
  assertEquals([log, gate.enter()], [["a enters"], false]);
});

for (const how of ["its time is over", "its signal aborts", "the client closes"]) {
  Deno.test(`Gate has one that waits give up when ${how}, and lets the next one in`, async () => {
    const { clock, wheel, gate, log, wait } = fullGate();
    const controller = new AbortController();
    wait("a", 1_000, controller.signal);
    if (how !== "the client closes") wait("b", 5_000);
    await clock.advance(how === "its time is over" ? 1_000 : 10);
    if (how === "its signal aborts") controller.abort();
    if (how === "the client closes") wheel.announceClose();
    await runMicrotasks();
    assertEquals(log, ["a gives up"]);
    gate.leave();
    await runMicrotasks();
    assertEquals(log.slice(1), how === "the client closes" ? [] : ["b enters"]);
    assertEquals(wheel.size, 0);
  });
}

Deno.test("Gate does not count the tick in which a crowd asks as a part of its wait", async () => {
  const { clock, gate, log, wait } = fullGate();
  wait("a", 100);
  clock.block(5_000); // the rest of the tick
  await clock.advance(99);
  assertEquals(log, []);
  gate.leave();
  await runMicrotasks();
  assertEquals(log, ["a enters"]);
});

Deno.test("Gate lets each of a large crowd in as fast as each of a small one", async () => {
  /** How long each takes, in milliseconds. */
  const each = async (count: number) => {
    const { gate } = fullGate();
    for (let index = 0; index < count; index++) gate.wait(1_000);
    await runMicrotasks();
    const startMs = performance.now();
    for (let index = 0; index < count; index++) gate.leave();
    return (performance.now() - startMs) / count;
  };
  await each(10_000); // so that it is compiled
  const small = Math.min(await each(1_000), await each(1_000), await each(1_000));
  const large = Math.min(await each(100_000), await each(100_000));
  assertLess(large, 40 * small);
});
