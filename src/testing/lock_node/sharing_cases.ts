/**
 * What a node must do so that locks in shared mode are held together on it.
 *
 * @module
 */
import type { Case } from "./basic_cases.ts";
import { type Bench, check, LONG_MS } from "./bench.ts";

/** By how much one TTL is shorter than another. */
const FACTOR = 2;

/** What is added to a request for a lock in shared mode. */
const SHARED = { mode: "shared" } as const;

/** All cases of this file. */
export const SHARING_CASES: readonly Case[] = [
  [
    "acquire() in shared mode grants beside others in it, and inspect() reports all",
    async (bench) => {
      const key = bench.key();
      const values = [await shared(bench, [key]), await shared(bench, [key])];
      await expectSharers(bench, key, values);
    },
  ],
  ["acquire() denies an exclusive lock beside shared ones, and these beside it", async (bench) => {
    const [key, held, value] = [bench.key(), bench.key(), bench.value()];
    const reader = await shared(bench, [key]);
    await bench.expect("denied", "acquire", { keys: [key] });
    await bench.expect("granted", "acquire", { keys: [held], value });
    for (const keys of [[held], [held, key], [key, held]]) {
      await bench.expect("denied", "acquire", { keys, ...SHARED });
    }
    await bench.expectValue(held, value);
    await expectSharers(bench, key, [reader]);
  }],
  ["release() in shared mode ends one lock, and the last frees the keys", async (bench) => {
    const keys = [bench.key(), bench.key()];
    const [first, second] = [await shared(bench, keys), await shared(bench, keys)];
    await bench.expect("denied", "release", { keys, ...SHARED });
    await bench.expect("granted", "release", { keys, value: first, ...SHARED });
    await bench.expect("denied", "release", { keys, value: first, ...SHARED });
    for (const key of keys) await expectSharers(bench, key, [second]);
    await bench.expect("denied", "acquire", { keys });
    await bench.expect("granted", "release", { keys, value: second, ...SHARED });
    await bench.expect("granted", "acquire", { keys });
  }],
  ["keys live as long as the lock in shared mode that lives longest", async (bench) => {
    const keys = [bench.key()];
    const long = await shared(bench, keys);
    await shared(bench, keys, LONG_MS / FACTOR);
    const lifeMs = async () => (await bench.inspect(keys[0]))!.remainingMs;
    check(await lifeMs() > LONG_MS / FACTOR, "a second lock has shortened the life of the keys");
    await bench.expect("granted", "release", { keys, value: long, ...SHARED });
    check(await lifeMs() <= LONG_MS / FACTOR, "the keys outlive the locks that hold them");
  }],
  ["extend() in shared mode prolongs a lock that is there, and no other", async (bench) => {
    const keys = [bench.key()];
    const value = await shared(bench, keys, LONG_MS / FACTOR);
    await bench.expect("granted", "extend", { keys, value, ...SHARED });
    const { remainingMs } = (await bench.inspect(keys[0]))!;
    check(remainingMs > LONG_MS / FACTOR, "extend() has not prolonged the lock");
    const { outcome } = await bench.answer("extend", { keys, ...SHARED });
    check(outcome !== "granted", "extend() grants a lock that is not there");
    await expectSharers(bench, keys[0], [value]);
  }],
];

/** Locks keys in shared mode; returns the value. */
async function shared(bench: Bench, keys: string[], ttlMs = LONG_MS): Promise<string> {
  const value = bench.value();
  await bench.expect("granted", "acquire", { keys, value, ttlMs, ...SHARED });
  return value;
}

/** Checks who shares a key. */
async function expectSharers(bench: Bench, key: string, values: string[]): Promise<void> {
  const { sharers = [] } = await bench.inspect(key) ?? {};
  const same = sharers.length === values.length && values.every((value) => sharers.includes(value));
  check(
    same,
    `inspect() reports ${sharers.length} that share a key, not the ${values.length} that do`,
  );
}
