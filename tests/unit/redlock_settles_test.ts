import fc from "fast-check";
import type { Lock } from "../../src/lock/lock.ts";
import { adaptedNode } from "../../src/quorum/adapted_node.ts";
import type { LockNode } from "../../src/quorum/lock_node.ts";
import { type Redlock, redlockOn } from "../../src/redlock.ts";
import { TimerWheel } from "../../src/time/timer_wheel.ts";
import { advanceUntil, FakeClock } from "../support/fake_clock.ts";
import { check } from "../../src/operate/mod.ts";

const SEED = 1_440;
const OPTIONS = { ttlMs: 1_000, nodeTimeoutMs: 50, waitMs: 300 };
const WORK_MS = 700;
/** How long any call may take, in milliseconds. */
const SETTLES_WITHIN_MS = 20_000;

// Nodes of one's own that keep to no contract: they answer never or nothing, or throw

/** How a node answers one kind of request. */
interface Behaviour {
  /** At once, later, never; or not at all, because it throws or rejects. */
  readonly when: "at once" | "later" | "never" | "throw" | "reject";
  readonly answer: unknown;
  readonly delayMs: number;
}

type Method = "acquire" | "extend" | "release" | "inspect" | "diagnose" | "close";

/** How a node behaves; it has no method without a behaviour. */
type Plan = Readonly<Record<Method, Behaviour | undefined>>;

function oddNode(name: string, clock: FakeClock, plan: Plan): LockNode {
  const behave = ({ when, delayMs, answer } = GRANTS) => (): unknown => {
    const error = new Error(`${name} does not answer`);
    if (when === "throw") throw error;
    if (when === "reject") return Promise.reject(error);
    if (when === "at once") return answer;
    return new Promise((resolve) => {
      if (when === "later") clock.setTimer(() => resolve(answer), delayMs);
    });
  };
  const { acquire, extend, release, inspect, diagnose, close } = plan;
  const state = { value: `${inspect?.answer}`, remainingMs: 1_000 };
  return {
    name,
    acquire: behave(acquire),
    extend: behave(extend),
    release: behave(release),
    inspect: behave({ ...GRANTS, ...inspect, answer: inspect?.answer === "denied" && state }),
    ...diagnose && { diagnose: behave({ ...diagnose, answer: { roundTripMs: 1 } }) },
    ...close && { close: behave(close) },
  } as LockNode;
}

const GRANTS: Behaviour = { when: "later", answer: "granted", delayMs: 1 };
const PLAIN = {} as Plan;

const behaviour: fc.Arbitrary<Behaviour> = fc.record({
  when: fc.constantFrom("at once", "later", "later", "later", "never", "throw", "reject"),
  answer: fc.constantFrom("granted", "granted", "granted", "denied", "missing", 1, undefined, "no"),
  delayMs: fc.nat(100),
});
const mostly = fc.oneof(
  { weight: 2, arbitrary: fc.constant(GRANTS) },
  { weight: 1, arbitrary: behaviour },
);
const plan: fc.Arbitrary<Plan> = fc.record({
  acquire: mostly,
  extend: mostly,
  release: mostly,
  inspect: mostly,
  diagnose: fc.option(behaviour, { nil: undefined }),
  close: fc.option(behaviour, { nil: undefined }),
});

/** A client of nodes that behave so. */
function setUp(plans: readonly Plan[]): { clock: FakeClock; redlock: Redlock } {
  const clock = new FakeClock();
  let count = 0;
  const value = () => (++count).toString(16).padStart(40, "0");
  const wheel = new TimerWheel(clock, { value, fraction: () => 0.5 });
  const nodes = plans.map((plan, index) => adaptedNode(oddNode(`node${index}`, clock, plan)));
  return { clock, redlock: redlockOn(wheel, nodes, OPTIONS) };
}

/** Waits on faked time. */
function sleep(clock: FakeClock, ms: number): Promise<void> {
  return new Promise((resolve) => clock.setTimer(resolve, ms));
}

async function work(lock: Lock | undefined): Promise<void> {
  await lock?.extend().catch(() => {});
  await lock?.release().catch(() => {});
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
  check: (redlock) => check(redlock),
};

for (const [name, call] of Object.entries(CALLS)) {
  Deno.test(`${name} settles whatever nodes do, before, while and after the client closes`, async () => {
    const { clock, redlock } = setUp([PLAIN]);
    await advanceUntil(clock, check(redlock)); // loads the module
    await fc.assert(
      fc.asyncProperty(
        fc.array(plan, { minLength: 1, maxLength: 4 }),
        fc.option(fc.nat(2 * WORK_MS), { nil: undefined }),
        async (plans, closeAfterMs) => {
          const { clock, redlock } = setUp(plans);
          const called = call(redlock, clock).catch(() => {});
          const begun = closeAfterMs === undefined ? called : sleep(clock, closeAfterMs);
          const closing = begun.then(() => redlock.close());
          await advanceUntil(clock, Promise.all([called, closing]), SETTLES_WITHIN_MS, 50);
        },
      ),
      { seed: SEED, numRuns: 100 },
    );
  });
}
