/**
 * What every node must do: set, extend and delete keys, in the order of the calls.
 *
 * @module
 */
import { systemClock } from "../../time/clock.ts";
import { type Bench, check, checkOutcome, LONG_MS, pauseMs, type Wish, within } from "./bench.ts";

/** One case: a name, and what it does on the bench. */
export type Case = readonly [name: string, run: (bench: Bench) => Promise<void>];

/** A TTL that ends within a case, in milliseconds. */
const SHORT_MS = 300;
/** A TTL that is not a whole number of seconds, in milliseconds. */
const UNEVEN_MS = 1_900;
/** How much earlier a key may expire, because a store counts whole milliseconds. */
const EXPIRY_TOLERANCE_MS = 10;
/** How often an order is tried. */
const ORDER_ROUNDS = 25;

/** Keys are set once, and expire. */
const ACQUIRE_CASES: readonly Case[] = [
  ["acquire() sets a missing key, and inspect() reports it", async (bench) => {
    const [key, value] = [bench.key(), bench.value()];
    check(await bench.inspect(key) === undefined, "inspect() reports a key that is missing");
    await bench.expect("granted", "acquire", { keys: [key], value });
    const state = await bench.inspect(key);
    check(state?.value === value, "inspect() does not report the value");
    const { remainingMs } = state;
    check(remainingMs > 0 && remainingMs <= LONG_MS, `inspect() reports ${remainingMs} ms`);
  }],
  ["acquire() denies a key that is held, and leaves it", async (bench) => {
    const [key, value] = [bench.key(), bench.value()];
    await bench.expect("granted", "acquire", { keys: [key], value });
    await bench.expect("denied", "acquire", { keys: [key] });
    await bench.expectValue(key, value);
  }],
  ["acquire() sets all of several keys, or none", async (bench) => {
    const [free, held, value] = [bench.key(), bench.key(), bench.value()];
    await bench.expect("granted", "acquire", { keys: [held], value });
    for (const keys of [[free, held], [held, free]]) {
      await bench.expect("denied", "acquire", { keys });
      await bench.expectValue(free, undefined);
    }
    await bench.expectValue(held, value);
    const both = [bench.key(), bench.key()];
    await bench.expect("granted", "acquire", { keys: both, value });
    for (const key of both) await bench.expectValue(key, value);
  }],
  ["a key expires after its TTL, and not before", async (bench) => {
    const key = bench.key();
    await expiresAfter(bench, key, SHORT_MS, async () => {
      await bench.expect("granted", "acquire", { keys: [key], ttlMs: SHORT_MS });
    });
  }],
  ["a TTL counts in milliseconds", async (bench) => {
    const [set, extended, value, ttlMs] = [bench.key(), bench.key(), bench.value(), UNEVEN_MS];
    await bench.expect("granted", "acquire", { keys: [extended], value, ttlMs: ttlMs / 2 });
    await Promise.all([
      expiresAfter(bench, set, ttlMs, async () => {
        await bench.expect("granted", "acquire", { keys: [set], ttlMs });
      }),
      expiresAfter(bench, extended, ttlMs, async () => {
        await bench.expect("granted", "extend", { keys: [extended], value, ttlMs });
      }),
    ]);
  }],
  ["a key that has expired is missing to extend(), release() and inspect()", async (bench) => {
    const [extended, released] = [bench.key(), bench.key()];
    const [value, ttlMs] = [bench.value(), SHORT_MS];
    for (const key of [extended, released]) {
      await bench.expect("granted", "acquire", { keys: [key], value, ttlMs });
    }
    await pauseMs(SHORT_MS + EXPIRY_TOLERANCE_MS);
    await bench.expectValue(extended, undefined);
    await expectMissing(bench, { keys: [extended], value });
    await bench.expectValue(extended, undefined);
    await bench.expect("denied", "release", { keys: [released], value });
    await bench.expect("granted", "acquire", { keys: [extended, released] });
  }],
];

/** Only what holds the value is extended, and never shortened. */
const EXTEND_CASES: readonly Case[] = [
  ["extend() gives keys a longer TTL", async (bench) => {
    const [keys, value] = [[bench.key(), bench.key()], bench.value()];
    await bench.expect("granted", "acquire", { keys, value, ttlMs: LONG_MS / 2 });
    await bench.expect("granted", "extend", { keys, value, ttlMs: LONG_MS });
    for (const key of keys) {
      const remainingMs = (await bench.inspect(key))?.remainingMs ?? 0;
      check(remainingMs > LONG_MS / 2, `an extended key lives for ${remainingMs} ms`);
    }
  }],
  ["extend() never shortens a TTL", async (bench) => {
    const [key, value] = [bench.key(), bench.value()];
    await bench.expect("granted", "acquire", { keys: [key], value });
    await bench.expect("granted", "extend", { keys: [key], value, ttlMs: SHORT_MS });
    const remainingMs = (await bench.inspect(key))?.remainingMs ?? 0;
    check(remainingMs > LONG_MS / 2, `extend() shortened a TTL to ${remainingMs} ms`);
  }],
  ["extend() denies a key with another value, and leaves it", async (bench) => {
    const [key, value] = [bench.key(), bench.value()];
    await bench.expect("granted", "acquire", { keys: [key], value, ttlMs: LONG_MS / 2 });
    await bench.expect("denied", "extend", { keys: [key] });
    const state = await bench.inspect(key);
    check(state?.value === value, "extend() changed the value of a key");
    check(state.remainingMs <= LONG_MS / 2, "extend() extended another's key");
  }],
  ["extend() never sets a missing key", async (bench) => {
    const [held, missing, value] = [bench.key(), bench.key(), bench.value()];
    await bench.expect("granted", "acquire", { keys: [held], value });
    for (const keys of [[missing], [held, missing], [missing, held]]) {
      await expectMissing(bench, { keys, value });
      await bench.expectValue(missing, undefined);
    }
  }],
];

/** Only what holds the value is deleted. */
const RELEASE_CASES: readonly Case[] = [
  ["release() deletes the keys", async (bench) => {
    const [keys, value] = [[bench.key(), bench.key()], bench.value()];
    await bench.expect("granted", "acquire", { keys, value });
    await bench.expect("granted", "release", { keys, value });
    for (const key of keys) await bench.expectValue(key, undefined);
    await bench.expect("denied", "release", { keys, value });
  }],
  ["release() deletes no key with another value", async (bench) => {
    const [ours, theirs, value, other] = [bench.key(), bench.key(), bench.value(), bench.value()];
    await bench.expect("granted", "acquire", { keys: [theirs], value: other });
    await bench.expect("denied", "release", { keys: [theirs], value });
    await bench.expectValue(theirs, other);
    await bench.expect("granted", "acquire", { keys: [ours], value });
    await bench.expect("denied", "release", { keys: [theirs, ours], value });
    await bench.expectValue(theirs, other);
    await bench.expectValue(ours, undefined);
  }],
];

/** Requests take effect in the order of the calls. */
const ORDER_CASES: readonly Case[] = [
  ["requests of one tick take effect in their order", async (bench) => {
    for (let round = 0; round < ORDER_ROUNDS; round++) {
      const [key, other] = [bench.key(), bench.key()];
      const [first, second] = [bench.value(), bench.value()];
      const requests = [
        bench.ask("acquire", { keys: [key, other], value: first, ttlMs: LONG_MS / 2 }),
        bench.ask("extend", { keys: [key, other], value: first }),
        bench.ask("release", { keys: [key, other], value: first }),
        bench.ask("acquire", { keys: [other], value: second }),
        bench.ask("release", { keys: [other], value: first }),
      ];
      const answers = await Promise.all(requests.map((request) => bench.answerTo(request)));
      const outcomes = answers.map(({ outcome }) => outcome).join();
      check(outcomes === "granted,granted,granted,granted,denied", `it answered ${outcomes}`);
      await bench.expectValue(key, undefined);
      await bench.expectValue(other, second);
    }
  }],
  ["a release undoes an acquisition that was not answered yet", async (bench) => {
    for (let round = 0; round < ORDER_ROUNDS; round++) {
      const [key, value] = [bench.key(), bench.value()];
      const acquisition = bench.ask("acquire", { keys: [key], value });
      await Promise.resolve();
      const undo = bench.ask("release", { keys: [key], value });
      await Promise.all([bench.answerTo(acquisition), bench.answerTo(undo)]);
      await bench.expectValue(key, undefined);
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
    await bench.expect("granted", "acquire", { keys: [`${prefix}]`] });
    await bench.expect("granted", "acquire", { keys: [bench.key()] });
    const listed = await within(textOf(node.keys(prefix)), "keys() did not end");
    check(listed === `${prefix}]`, `keys() listed '${listed}'`);
  }],
  ["diagnose() settles, if there is one", async (bench) => {
    const { node } = bench;
    if (node.diagnose) {
      await within(node.diagnose(1_000, "hasp:check"), "diagnose() did not settle");
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
  key: string,
  ttlMs: number,
  set: () => Promise<void>,
): Promise<void> {
  const startMs = systemClock.monotonicMs();
  await set();
  const remainingMs = (await bench.inspect(key))?.remainingMs ?? 0;
  check(remainingMs <= ttlMs, `inspect() reports ${remainingMs} ms of a TTL of ${ttlMs}`);
  await bench.eventually("a key does not expire", async () => {
    return (await bench.answer("acquire", { keys: [key] })).outcome === "granted";
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
