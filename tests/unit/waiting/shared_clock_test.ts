import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { SharedClock } from "../../../src/waiting/shared_clock.ts";
import { FakeClock } from "../../support/fake_clock.ts";

/** One question to a node: how long it travels, and its answer, in milliseconds. */
const trip = fc.record({
  requestMs: fc.double({ min: 0, max: 500, noNaN: true }),
  replyMs: fc.double({ min: 0, max: 500, noNaN: true }),
});
const trips = fc.array(trip, { minLength: 1, maxLength: 20, size: "max" });
const leadMs = fc.integer({ min: -1_000_000_000, max: 2_000_000_000_000 });

/**
 * Asks a node whose clock is ahead of the monotonic one by `leadMs`; returns when it has answered.
 */
function ask(
  shared: SharedClock,
  nodeIndex: number,
  leadMs: number,
  sentMs: number,
  { requestMs, replyMs }: { requestMs: number; replyMs: number },
): number {
  const receivedMs = sentMs + requestMs + replyMs;
  shared.note(nodeIndex, { timeMs: sentMs + requestMs + leadMs, sentMs, receivedMs });
  return receivedMs;
}

Deno.test("SharedClock is the client's own wall clock while no node has reported its time", () => {
  const clock = new FakeClock(1_000, 1_700_000_000_000);
  const shared = new SharedClock(clock);
  assertEquals(shared.at(1_000), 1_700_000_000_000);
  assertEquals(shared.at(400), 1_700_000_000_000 - 600);
});

Deno.test("SharedClock is off by half of the shortest round trip at the most, whatever the wall clock shows", () => {
  fc.assert(fc.property(trips, leadMs, fc.integer(), (trips, leadMs, wallMs) => {
    const shared = new SharedClock(new FakeClock(0, wallMs));
    let nowMs = 0;
    for (const trip of trips) nowMs = ask(shared, 0, leadMs, nowMs, trip) + 1;
    const shortestMs = Math.min(...trips.map(({ requestMs, replyMs }) => requestMs + replyMs));
    assert(Math.abs(shared.at(nowMs) - nowMs - leadMs) <= shortestMs / 2 + 0.01);
  }));
});

Deno.test("SharedClock follows a clock that steps, within one round trip", () => {
  fc.assert(fc.property(trips, leadMs, leadMs, trip, (trips, beforeMs, leadMs, trip) => {
    const shared = new SharedClock(new FakeClock());
    let nowMs = 0;
    for (const trip of trips) nowMs = ask(shared, 0, beforeMs, nowMs, trip) + 1;
    nowMs = ask(shared, 0, leadMs, nowMs, trip);
    assert(Math.abs(shared.at(nowMs) - nowMs - leadMs) <= trip.requestMs + trip.replyMs + 0.01);
  }));
});

Deno.test("SharedClock.distanceMs believes no round trip that is more than double the last one and 5 ms", () => {
  const shared = new SharedClock(new FakeClock());
  const trip = (ms: number) => ({ requestMs: ms / 2, replyMs: ms / 2 });
  assertEquals(shared.distanceMs, 0);
  ask(shared, 0, 0, 0, trip(2));
  ask(shared, 0, 0, 10, trip(3_000)); // the client was held up
  assertEquals(shared.distanceMs, 9);
  ask(shared, 0, 0, 4_000, trip(2));
  assertEquals(shared.distanceMs, 2);
});

Deno.test("SharedClock.distanceMs is that of the median node", () => {
  const shared = new SharedClock(new FakeClock());
  [2, 4, 400].forEach((ms, nodeIndex) => {
    ask(shared, nodeIndex, 0, 0, { requestMs: ms / 2, replyMs: ms / 2 });
  });
  assertEquals(shared.distanceMs, 4);
});

Deno.test("SharedClock is the median of the nodes' clocks, so that a minority that is wrong changes nothing", () => {
  const atOnce = { requestMs: 0, replyMs: 0 };
  for (const wrong of [[], [3_600_000], [-3_600_000, -60_000], [3_600_000, -3_600_000]]) {
    const shared = new SharedClock(new FakeClock());
    const leadsMs = [1_000, 1_000, ...wrong, ...Array(3 - wrong.length).fill(1_000)];
    leadsMs.forEach((leadMs, nodeIndex) => ask(shared, nodeIndex, leadMs, 0, atOnce));
    assertEquals(shared.at(50), 1_050, `${wrong}`);
  }
  const two = new SharedClock(new FakeClock());
  [5_000, 1_000].forEach((leadMs, nodeIndex) => ask(two, nodeIndex, leadMs, 0, atOnce));
  assertEquals(two.at(50), 1_050); // the earlier
});
