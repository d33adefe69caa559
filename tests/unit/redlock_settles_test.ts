import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import type { Lock } from "../../src/lock/lock.ts";
import { type Redlock, redlockOn } from "../../src/redlock.ts";
import { TimerWheel } from "../../src/time/timer_wheel.ts";
import { advanceUntil, FakeClock, runMicrotasks } from "../support/fake_clock.ts";
import { type OddBehaviour, OddNode, type OddPlan } from "../support/odd_nodes.ts";

const SEED = 1_440;
const TTL_MS = 1_000;
const NODE_TIMEOUT_MS = 50;
const WAIT_MS = 300;
const WORK_MS = 700;
/** How long any call may take, in milliseconds: the longest waits for a first connection that is never made. */
const SETTLES_WITHIN_MS = 120_000;

const GRANTS: OddBehaviour = { when: "later", answer: "grant", delayMs: 1, times: 1 };
const HANGS: OddBehaviour = { ...GRANTS, when: "never" };
const PLAIN: OddPlan = {
  acquire: GRANTS,
  extend: GRANTS,
  release: GRANTS,
  inspect: GRANTS,
  diagnose: undefined,
  close: undefined,
  subscribe: undefined,
  readyMs: undefined,
};

const behaviour: fc.Arbitrary<OddBehaviour> = fc.record({
  when: fc.constantFrom("inside", "later", "later", "later", "never", "throw", "reject"),
  answer: fc.constantFrom("grant", "grant", "grant", "deny", "fail", "quarantine", "enqueue"),
  delayMs: fc.nat(100),
  times: fc.integer({ min: 1, max: 2 }),
});
const well = fc.constant(GRANTS);
const mostly = fc.oneof({ weight: 2, arbitrary: well }, { weight: 1, arbitrary: behaviour });
const plan: fc.Arbitrary<OddPlan> = fc.record({
  acquire: mostly,
  extend: mostly,
  release: mostly,
  inspect: mostly,
  diagnose: fc.option(behaviour, { nil: undefined }),
  close: fc.option(behaviour, { nil: undefined }),
  subscribe: fc.option(mostly, { nil: undefined }),
  readyMs: fc.constantFrom<number | null | undefined>(undefined, undefined, 0, 30, Infinity, null),
});

/** A client of nodes that behave so. */
function setUp(plans: readonly OddPlan[]): { clock: FakeClock; redlock: Redlock } {
  const clock = new FakeClock();
  let count = 0;
  const value = () => (++count).toString(16).padStart(40, "0");
  const wheel = new TimerWheel(clock, { value, fraction: () => 0.5 });
  const nodes = plans.map((plan, index) => new OddNode(`node${index}`, clock, plan));
  const options = { ttlMs: TTL_MS, nodeTimeoutMs: NODE_TIMEOUT_MS, waitMs: WAIT_MS };
  return { clock, redlock: redlockOn(wheel, nodes, options) };
}

/** Waits on faked time. */
function sleep(clock: FakeClock, ms: number): Promise<void> {
  return new Promise((resolve) => clock.setTimer(resolve, ms));
}

/** What became of a call. */
async function settle(call: () => Promise<unknown>): Promise<unknown> {
  try {
    return await call();
  } catch (error) {
    return error;
  }
}

async function work(lock: Lock | undefined): Promise<void> {
  if (!lock) return;
  await settle(() => lock.extend());
  await settle(() => lock.release());
}

const CALLS: Record<string, (redlock: Redlock, clock: FakeClock) => Promise<unknown>> = {
  acquire: async (redlock) => await work(await redlock.acquire("a")),
  "acquire and hold": (redlock) => redlock.acquire("b", { autoExtend: true }),
  tryAcquire: async (redlock) => await work(await redlock.tryAcquire("c")),
  using: (redlock, clock) => redlock.using("d", () => sleep(clock, WORK_MS)),
  "using until the abort": (redlock) =>
    redlock.using(
      "e",
      { extensionsMax: 3 },
      ({ signal }) =>
        new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    ),
  inspect: (redlock) => redlock.inspect("a"),
  check: (redlock) => redlock.check(),
};

for (const name of Object.keys(CALLS)) {
  Deno.test(`${name} settles whatever nodes do, before, while and after the client closes`, async () => {
    const { clock, redlock } = setUp([PLAIN]);
    await advanceUntil(clock, redlock.check()); // loads the module
    await fc.assert(
      fc.asyncProperty(
        fc.array(plan, { minLength: 1, maxLength: 4 }),
        fc.option(fc.nat(2 * WORK_MS), { nil: undefined }),
        async (plans, closeAfterMs) => {
          const { clock, redlock } = setUp(plans);
          const call = settle(() => CALLS[name](redlock, clock));
          const begun = closeAfterMs === undefined ? call : sleep(clock, closeAfterMs);
          const closing = begun.then(() => redlock.close());
          await advanceUntil(clock, Promise.all([call, closing]), SETTLES_WITHIN_MS, 50);
        },
      ),
      { seed: SEED, numRuns: 100 },
    );
  });
}

Deno.test("close() settles although a node's own never does", async () => {
  const { clock, redlock } = setUp([{ ...PLAIN, close: HANGS }]);
  await advanceUntil(clock, redlock.close(), 10_000);
  assertEquals(clock.timersAlive, 0);
});

Deno.test("release() settles as the client closes over nodes that hang", async () => {
  const { clock, redlock } = setUp([{ ...PLAIN, release: HANGS }]);
  const lock = await advanceUntil(clock, redlock.acquire("a"));
  lock.signal.addEventListener("abort", () => void (released = settle(() => lock.release())));
  let released: Promise<unknown> | undefined;
  const closing = redlock.close();
  await runMicrotasks();
  assert(released !== undefined);
  await advanceUntil(clock, Promise.all([closing, released]), 10_000);
  assertEquals(await released, false);
  assertEquals(clock.timers, 0);
});
