/**
 * What every node must do: set, extend and delete keys, in the order of the calls.
 *
 * @module
 */
import { systemClock } from "../../time/clock.ts";
import { pauseMs } from "../../time/within.ts";
import { type Bench, check, checkOutcome, LONG_MS, soon, type Wish } from "./bench.ts";

/** One case: a name, and what it does on the bench. */
export type Case = readonly [name: string, run: (bench: Bench) => Promise<void>];

/** A TTL that ends within a case, in milliseconds. */
const SHORT_MS = 300;
const SHORT = { ttlMs: SHORT_MS };
/** A TTL that is not a whole number of seconds, in milliseconds. */
const UNEVEN_MS = 1_900;
/** How much earlier a key may expire, because a store counts whole milliseconds. */
const EXPIRY_TOLERANCE_MS = 10;
/** How often an order is tried. */
const ORDER_ROUNDS = 25;

/** Keys are set once, and expire. */
const ACQUIRE_CASES: readonly Case[] = [
  ["acquire() sets a missing key, and inspect() reports it", async (bench) => {
    const key = bench.key();
    check(await bench.inspect(key) === undefined, "inspect() reports a key that is missing");
    const { keys, value } = await bench.held({ keys: [key] });
    const state = await bench.inspect(keys[0]);
    check(state?.value === value, "inspect() does not report the value");
    const { remainingMs } = state;
    check(remainingMs > 0 && remainingMs <= LONG_MS, `inspect() reports ${remainingMs} ms`);
  }],
  ["acquire() denies a key that is held, and leaves it", async (bench) => {
    const { keys, value } = await bench.held();
    await bench.expect("denied", "acquire", { keys });
    await bench.expectValue(keys, value);
  }],
  ["acquire() sets all of several keys, or none", async (bench) => {
    const free = bench.key();
    const { keys: [held], value } = await bench.held();
    for (const keys of [[free, held], [held, free]]) {
      await bench.expect("denied", "acquire", { keys });
      await bench.expectValue([free], undefined);
    }
    await bench.expectValue([held], value);
    const both = await bench.held({ keys: bench.keys(2) });
    await bench.expectValue(both.keys, both.value);
  }],
  ["a key expires after its TTL, and not before", async (bench) => {
    const keys = bench.keys(1);
    await expiresAfter(bench, keys, SHORT_MS, () => bench.held({ keys, ttlMs: SHORT_MS }));
  }],
  ["a TTL counts in milliseconds", async (bench) => {
    const [keys, ttlMs] = [bench.keys(1), UNEVEN_MS];
    const extended = await bench.held({ ttlMs: ttlMs / 2 });
    await Promise.all([
      expiresAfter(bench, keys, ttlMs, () => bench.held({ keys, ttlMs })),
      expiresAfter(bench, extended.keys, ttlMs, () => {
        return bench.expect("granted", "extend", { ...extended, ttlMs });
      }),
    ]);
  }],
  ["a key that has expired is missing to extend(), release() and inspect()", async (bench) => {
    const [extended, released] = [await bench.held(SHORT), await bench.held(SHORT)];
    await pauseMs(SHORT_MS + EXPIRY_TOLERANCE_MS);
    await bench.expectValue(extended.keys, undefined);
    await expectMissing(bench, extended);
    await bench.expectValue(extended.keys, undefined);
    await bench.expect("denied", "release", released);
    await bench.held({ keys: [...extended.keys, ...released.keys] });
  }],
];

/** Only what holds the value is extended, and never shortened. */
const EXTEND_CASES: readonly Case[] = [
  ["extend() gives keys a longer TTL", async (bench) => {
    const lock = await bench.held({ keys: bench.keys(2), ttlMs: LONG_MS / 2 });
    await bench.expect("granted", "extend", { ...lock, ttlMs: LONG_MS });
    for (const key of lock.keys) {
      const lifeMs = await bench.lifeMs(key);
      check(lifeMs > LONG_MS / 2, `an extended key lives for ${lifeMs} ms`);
    }
  }],
  ["extend() never shortens a TTL", async (bench) => {
    const lock = await bench.held();
    await bench.expect("granted", "extend", { ...lock, ttlMs: SHORT_MS });
    const lifeMs = await bench.lifeMs(lock.keys[0]);
    check(lifeMs > LONG_MS / 2, `extend() shortened a TTL to ${lifeMs} ms`);
  }],
  ["extend() denies a key with another value, and leaves it", async (bench) => {
    const { keys, value } = await bench.held({ ttlMs: LONG_MS / 2 });
    await bench.expect("denied", "extend", { keys });
    await bench.expectValue(keys, value);
    check(await bench.lifeMs(keys[0]) <= LONG_MS / 2, "extend() extended another's key");
  }],
  ["extend() never sets a missing key", async (bench) => {
    const missing = bench.key();
    const { keys: [held], value } = await bench.held();
    for (const keys of [[missing], [held, missing], [missing, held]]) {
      await expectMissing(bench, { keys, value });
      await bench.expectValue([missing], undefined);
    }
  }],
];

/** Only what holds the value is deleted. */
const RELEASE_CASES: readonly Case[] = [
  ["release() deletes the keys", async (bench) => {
    const lock = await bench.held({ keys: bench.keys(2) });
    await bench.expect("granted", "release", lock);
    await bench.expectValue(lock.keys, undefined);
    await bench.expect("denied", "release", lock);
  }],
  ["release() deletes no key with another value", async (bench) => {
    const [ours, theirs] = [await bench.held(), await bench.held()];
    const { value } = ours;
    await bench.expect("denied", "release", { ...theirs, value });
    await bench.expectValue(theirs.keys, theirs.value);
    await bench.expect("denied", "release", { keys: [...theirs.keys, ...ours.keys], value });
    await bench.expectValue(theirs.keys, theirs.value);
    await bench.expectValue(ours.keys, undefined);
  }],
];

/** Requests take effect in the order of the calls. */
const ORDER_CASES: readonly Case[] = [
  ["requests of one tick take effect in their order", async (bench) => {
    for (let round = 0; round < ORDER_ROUNDS; round++) {
      const [keys, value, second] = [bench.keys(2), bench.value(), bench.value()];
      const other = keys.slice(1);
      const requests = [
        bench.ask("acquire", { keys, value, ttlMs: LONG_MS / 2 }),
        bench.ask("extend", { keys, value }),
        bench.ask("release", { keys, value }),
        bench.ask("acquire", { keys: other, value: second }),
        bench.ask("release", { keys: other, value }),
      ];
      const answers = await Promise.all(requests.map((request) => bench.answerTo(request)));
      const outcomes = answers.map(({ outcome }) => outcome).join();
      check(outcomes === "granted,granted,granted,granted,denied", `it answered ${outcomes}`);
      await bench.expectValue(keys.slice(0, 1), undefined);
      await bench.expectValue(other, second);
    }
  }],
  ["a release undoes an acquisition that was not answered yet", async (bench) => {
    for (let round = 0; round < ORDER_ROUNDS; round++) {
      const acquisition = bench.ask("acquire", {});
      await Promise.resolve();
      const { keys, value } = acquisition;
      const undo = bench.ask("release", { keys, value });
      await Promise.all([bench.answerTo(acquisition), bench.answerTo(undo)]);
      await bench.expectValue(keys, undefined);
    }
  }],
  ["requests about different keys are answered side by side", async (bench) => {
    const requests = Array.from({ length: 50 }, () => bench.ask("acquire", {}));
    for (const request of requests) {
      checkOutcome("acquire", await bench.answerTo(request), "granted");
    }
  }],
  ["keys() lists what begins with a prefix, and nothing else, if there is one", async (bench) => {
    const { node } = bench;
    if (!node.keys) return;
    const prefix = `${bench.key()}[*`;
    await bench.held({ keys: [`${prefix}]`] });
    await bench.held();
    const listed = await soon(textOf(node.keys(prefix)), "keys() did not end");
    check(listed === `${prefix}]`, `keys() listed '${listed}'`);
  }],
  ["diagnose() settles, if there is one", async (bench) => {
    const { node } = bench;
    if (node.diagnose) {
      await soon(node.diagnose(1_000, "hasp:check"), "diagnose() did not settle");
    }
  }],
];

/** Each of the listed keys once, separated by commas. */
async function textOf(steps: AsyncIterable<readonly string[]>): Promise<string> {
  const keys = new Set<string>();
  for await (const step of steps) for (const key of step) keys.add(key);
  return [...keys].join();
}

/** Checks that a key expires after its TTL, and reports no more than that before. */
async function expiresAfter(
  bench: Bench,
  keys: readonly string[],
  ttlMs: number,
  set: () => Promise<unknown>,
): Promise<void> {
  const startMs = systemClock.monotonicMs();
  await set();
  const lifeMs = await bench.lifeMs(keys[0]);
  check(lifeMs <= ttlMs, `inspect() reports ${lifeMs} ms of a TTL of ${ttlMs}`);
  await bench.eventually("a key does not expire", async () => {
    return (await bench.answer("acquire", { keys })).outcome === "granted";
  });
  const elapsedMs = systemClock.monotonicMs() - startMs;
  check(elapsedMs >= ttlMs - EXPIRY_TOLERANCE_MS, `a key expired after ${elapsedMs} ms`);
}

/** Asks the node to extend a lock of which a key is missing. */
async function expectMissing(bench: Bench, lock: Wish): Promise<void> {
  const { outcome } = await bench.answer("extend", lock);
  const isRight = outcome === "missing" || outcome === "denied";
  check(isRight, `its answer to extend() of a missing key was '${outcome}'`);
}

/** All cases of this file. */
export const BASIC_CASES: readonly Case[] = [
  ...ACQUIRE_CASES,
  ...EXTEND_CASES,
  ...RELEASE_CASES,
  ...ORDER_CASES,
];
