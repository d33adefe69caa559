import { assertEquals, assertGreaterOrEqual, assertLessOrEqual } from "@std/assert";
import fc from "fast-check";
import type { Clock } from "../../../src/time/clock.ts";
import { ContinuousClock } from "../../../src/time/continuous_clock.ts";
import { FakeClock } from "../../support/fake_clock.ts";

const SEED = 86_400;
/**
 * By how much a reading may be too low: gains that may be noise, and the rounding of the wall
 * clock.
 */
const MISSING_MS = 3;

/** A step of both clocks: how far the monotonic and how far the wall clock goes. */
type Step = readonly [monotonicMs: number, wallMs: number];

/** What the clock counts while the two clocks take these steps, with a look after each. */
function counted(steps: readonly Step[], wall = (ms: number) => ms): number {
  const fake = new FakeClock(1_000, 2_000);
  const clock = {
    monotonicMs: () => fake.monotonicMs(),
    wallMs: () => wall(fake.wallMs()),
  } as Clock;
  const continuous = new ContinuousClock(clock);
  const startMs = continuous.nowMs();
  let nowMs = startMs;
  for (const [monotonicMs, wallMs] of steps) {
    fake.block(monotonicMs);
    fake.stepWall(wallMs - monotonicMs);
    const lastMs = nowMs;
    nowMs = continuous.nowMs();
    assertGreaterOrEqual(nowMs, lastMs, "it fell");
  }
  return nowMs - startMs;
}

const HOUR_MS = 3_600_000;
const ELAPSED: readonly (readonly [what: string, elapsedMs: number, steps: readonly Step[]])[] = [
  ["both clocks agree", 1_234.5, [[1_000, 1_000], [234.5, 234.5]]],
  ["the machine slept", 60_010, [[10, 60_010]]],
  ["the wall clock was set back", 10, [[10, 10 - HOUR_MS]]],
  ["the wall clock was set back after a sleep", 2_400, [[300, 2_300], [100, -1_400]]],
  ["the wall clock was set back before a sleep", 2_400, [[300, 300 - HOUR_MS], [100, 2_100]]],
  ["the machine slept twice, and the wall clock was set back between and after", 4_000, [
    [0, 2_000],
    [0, -2_000],
    [0, 2_000],
    [0, -HOUR_MS],
  ]],
  ["a loss and a sleep between the same two looks hide each other", 0, [[0, 5_000 - HOUR_MS]]],
  ["a gain is too small to be more than noise", 10, [[5, 7], [5, 3]]],
];

for (const [what, elapsedMs, steps] of ELAPSED) {
  Deno.test(`ContinuousClock counts ${elapsedMs} ms: ${what}`, () => {
    assertEquals(counted(steps), elapsedMs);
  });
}

Deno.test("ContinuousClock counts a wall clock that runs fast by a tenth, even if somebody looks each millisecond", () => {
  const elapsedMs = counted(Array.from({ length: 10_000 }, () => [1, 1.1] as const));
  assertLessOrEqual(elapsedMs, 11_000.001);
  assertGreaterOrEqual(elapsedMs, 11_000 - MISSING_MS);
});

Deno.test("ContinuousClock does not add up the rounding of the wall clock, or that of both clocks", () => {
  const steps = Array.from({ length: 10_000 }, (_, index) => {
    const ms = (index * 0.37) % 1.9;
    return [ms, ms] as const;
  });
  const totalMs = steps.reduce((total, [ms]) => total + ms, 0);
  assertLessOrEqual(Math.abs(counted(steps, Math.floor) - totalMs), 0.001);
  const rounded = steps.map(([ms], index) => {
    // Each clock shows what its own rounding makes of the time, the one down and the other up.
    return [index % 2 === 0 ? Math.ceil(ms) : Math.floor(ms), ms] as const;
  });
  const monotonicMs = rounded.reduce((total, [ms]) => total + ms, 0);
  assertLessOrEqual(counted(rounded, Math.floor), Math.max(monotonicMs, totalMs) + MISSING_MS);
});

Deno.test("ContinuousClock counts what the faster clock counts from look to look, whatever the clocks do, and never falls", () => {
  const step = fc.tuple(fc.integer({ min: 0, max: 500 }), fc.integer({ min: -5_000, max: 5_000 }));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 50, size: "max" }), (steps) => {
      // Gains below the noise that are lost again do not count, so each step is a gain or a loss
      // that does.
      const clear = steps.filter(([monotonicMs, wallMs]) => Math.abs(wallMs - monotonicMs) > 2);
      const fasterMs = clear.reduce((total, step) => total + Math.max(...step), 0);
      assertEquals(counted(clear), fasterMs);
    }),
    { seed: SEED, numRuns: 2_000 },
  );
});

for (
  const [reading, noiseMs] of [["the first reading", 0], ["the second, after noise", -0.5]] as const
) {
  Deno.test(`ContinuousClock does not take a process that stands still in ${reading} for a loss of the wall clock`, () => {
    const fake = new FakeClock();
    let readings = 0;
    const clock = {
      monotonicMs() {
        if (readings-- === 1) fake.block(20);
        return fake.monotonicMs();
      },
      wallMs: () => fake.wallMs(),
    } as Clock;
    const continuous = new ContinuousClock(clock);
    for (let looks = 0; looks < 100; looks++) {
      fake.stepWall(noiseMs);
      readings = looks % 2 * (noiseMs === 0 ? 1 : 2);
      continuous.look();
    }
    assertEquals(continuous.steppedMs, 0);
  });
}
