import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import type { Lock } from "../../src/lock/lock.ts";
import type { LockNode, LockRequest } from "../../src/quorum/lock_node.ts";
import { type Redlock, redlockOn } from "../../src/redlock.ts";
import { TimerWheel } from "../../src/time/timer_wheel.ts";
import { advanceUntil, FakeClock, runMicrotasks } from "../support/fake_clock.ts";

const SEED = 1_440;
const OPTIONS = { ttlMs: 1_000, nodeTimeoutMs: 50, waitMs: 300 };
const WORK_MS = 700;
/** How long any call may take, in milliseconds: the longest waits for a first connection that is never made. */
const SETTLES_WITHIN_MS = 120_000;

// Nodes of one's own that keep to no contract: they answer never, twice, from inside the call, or throw

const ANSWERS = {
  grant: (request, nodeIndex) => request.grant(nodeIndex),
  deny: (request, nodeIndex) => request.deny(nodeIndex),
  fail: (request, nodeIndex) => request.fail(nodeIndex, new Error("odd")),
  quarantine: (request, nodeIndex) => request.quarantine?.(nodeIndex),
  enqueue: (request, nodeIndex) =>
    request.enqueued?.(nodeIndex, { remainingMs: 50, ahead: 1, length: 2 }),
} satisfies Record<string, (request: LockRequest, nodeIndex: number) => void>;

/** How a node answers one kind of request. */
interface Behaviour {
  /** From inside the call, later, never; or not at all, because it throws or rejects. */
  readonly when: "inside" | "later" | "never" | "throw" | "reject";
  readonly answer: keyof typeof ANSWERS;
  readonly delayMs: number;
  /** How often. */
  readonly times: number;
}

type Method = "acquire" | "extend" | "release" | "inspect" | "diagnose" | "close" | "subscribe";

/** How a node behaves; it has no method without a behaviour. */
type Plan = Readonly<Record<Method, Behaviour | undefined>> & {
  /** Since when it can be asked, from the beginning on; `null` throws. */
  readonly readyMs: number | null | undefined;
};

function oddNode(name: string, clock: FakeClock, plan: Plan): LockNode {
  const startMs = clock.monotonicMs();
  const behave = ({ when, delayMs, times }: Behaviour, act: () => void) => {
    if (when === "throw" || when === "reject") throw new Error(`${name} threw`);
    for (let time = 1; time <= times; time++) {
      if (when === "inside") act();
      if (when === "later") clock.setTimer(act, delayMs * time);
    }
  };
  const answers = (behaviour = GRANTS) => (request: LockRequest, nodeIndex: number) =>
    behave(behaviour, () => ANSWERS[behaviour.answer](request, nodeIndex));
  const promises = <T>(behaviour = GRANTS, value: T) => (): Promise<T> => {
    if (behaviour.when === "reject") return Promise.reject(new Error(`${name} rejected`));
    return new Promise((resolve) => behave(behaviour, () => resolve(value)));
  };
  const { acquire, extend, release, inspect, diagnose, close, subscribe, readyMs } = plan;
  const state = { value: `${inspect?.answer}`, remainingMs: 1_000 };
  const nothing = () => behave(subscribe!, () => {});
  return {
    name,
    get readyAtMs() {
      if (readyMs === null) throw new Error(`${name} threw`);
      if (readyMs === undefined) return 0;
      return startMs + readyMs <= clock.monotonicMs() ? startMs + readyMs : Infinity;
    },
    acquire: (request, nodeIndex) => {
      request.maybeSet |= 1 << nodeIndex;
      answers(acquire)(request, nodeIndex);
    },
    extend: answers(extend),
    release: answers(release),
    inspect: promises(inspect, inspect?.answer === "grant" ? undefined : state),
    ...diagnose && { diagnose: promises(diagnose, { roundTripMs: 1 }) },
    ...close && { close: promises(close, undefined) },
    ...subscribe && {
      subscribe: (listener, nodeIndex) => behave(subscribe, () => listener.onSubscribed(nodeIndex)),
      unsubscribe: nothing,
      leaveQueue: nothing,
    },
  };
}

const GRANTS: Behaviour = { when: "later", answer: "grant", delayMs: 1, times: 1 };
const HANGS: Behaviour = { ...GRANTS, when: "never" };
const PLAIN = {} as Plan;

const behaviour: fc.Arbitrary<Behaviour> = fc.record({
  when: fc.constantFrom("inside", "later", "later", "later", "never", "throw", "reject"),
  answer: fc.constantFrom("grant", "grant", "grant", "deny", "fail", "quarantine", "enqueue"),
  delayMs: fc.nat(100),
  times: fc.integer({ min: 1, max: 2 }),
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
  subscribe: fc.option(mostly, { nil: undefined }),
  readyMs: fc.constantFrom<number | null | undefined>(undefined, undefined, 0, 30, Infinity, null),
});

/** A client of nodes that behave so. */
function setUp(plans: readonly Plan[]): { clock: FakeClock; redlock: Redlock } {
  const clock = new FakeClock();
  let count = 0;
  const value = () => (++count).toString(16).padStart(40, "0");
  const wheel = new TimerWheel(clock, { value, fraction: () => 0.5 });
  const nodes = plans.map((plan, index) => oddNode(`node${index}`, clock, plan));
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
  check: (redlock) => redlock.check(),
};

for (const [name, call] of Object.entries(CALLS)) {
  Deno.test(`${name} settles whatever nodes do, before, while and after the client closes`, async () => {
    const { clock, redlock } = setUp([PLAIN]);
    await advanceUntil(clock, redlock.check()); // loads the module
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

Deno.test("close() settles although a node's own never does", async () => {
  const { clock, redlock } = setUp([{ ...PLAIN, close: HANGS }]);
  await advanceUntil(clock, redlock.close(), 10_000);
  assertEquals(clock.timersAlive, 0);
});

Deno.test("release() settles as the client closes over nodes that hang", async () => {
  const { clock, redlock } = setUp([{ ...PLAIN, release: HANGS }]);
  const lock = await advanceUntil(clock, redlock.acquire("a"));
  lock.signal.addEventListener("abort", () => released = lock.release());
  let released: Promise<boolean> | undefined;
  const closing = redlock.close();
  await runMicrotasks();
  assert(released !== undefined);
  await advanceUntil(clock, Promise.all([closing, released]), 10_000);
  assertEquals([await released, clock.timers], [false, 0]);
});
