/**
 * What a node must do so that locks in shared mode are held together on it.
 *
 * @module
 */
import type { Case } from "./basic_cases.ts";
import { type Bench, check, type HeldLock, LONG_MS } from "./bench.ts";

/** By how much one TTL is shorter than another. */
const FACTOR = 2;

/** What is added to a request for a lock in shared mode. */
const SHARED = { mode: "shared" } as const;

/** All cases of this file. */
export const SHARING_CASES: readonly Case[] = [
  [
    "acquire() in shared mode grants beside others in it, and inspect() reports all",
    async (bench) => {
      const first = await bench.held(SHARED);
      const second = await bench.held({ keys: first.keys, ...SHARED });
      await expectSharers(bench, [first, second]);
    },
  ],
  ["acquire() denies an exclusive lock beside shared ones, and these beside it", async (bench) => {
    const [reader, writer] = [await bench.held(SHARED), await bench.held()];
    await bench.expect("denied", "acquire", { keys: reader.keys });
    const [[key], [held]] = [reader.keys, writer.keys];
    for (const keys of [[held], [held, key], [key, held]]) {
      await bench.expect("denied", "acquire", { keys, ...SHARED });
    }
    await bench.expectValue(writer.keys, writer.value);
    await expectSharers(bench, [reader]);
  }],
  ["release() in shared mode ends one lock, and the last frees the keys", async (bench) => {
    const shared = { keys: bench.keys(2), ...SHARED };
    const [first, second] = [await bench.held(shared), await bench.held(shared)];
    await bench.expect("denied", "release", shared);
    await bench.expect("granted", "release", first);
    await bench.expect("denied", "release", first);
    await expectSharers(bench, [second]);
    await bench.expect("denied", "acquire", { keys: shared.keys });
    await bench.expect("granted", "release", second);
    await bench.expect("granted", "acquire", { keys: shared.keys });
  }],
  ["keys live as long as the lock in shared mode that lives longest", async (bench) => {
    const long = await bench.held(SHARED);
    const [key] = long.keys;
    await bench.held({ keys: long.keys, ttlMs: LONG_MS / FACTOR, ...SHARED });
    const lengthened = await bench.lifeMs(key) > LONG_MS / FACTOR;
    check(lengthened, "a second lock has shortened the life of the keys");
    await bench.expect("granted", "release", long);
    const shortened = await bench.lifeMs(key) <= LONG_MS / FACTOR;
    check(shortened, "the keys outlive the locks that hold them");
  }],
  ["extend() in shared mode prolongs a lock that is there, and no other", async (bench) => {
    const lock = await bench.held({ ttlMs: LONG_MS / FACTOR, ...SHARED });
    await bench.expect("granted", "extend", lock);
    const prolonged = await bench.lifeMs(lock.keys[0]) > LONG_MS / FACTOR;
    check(prolonged, "extend() has not prolonged the lock");
    const { outcome } = await bench.answer("extend", { keys: lock.keys, ...SHARED });
    check(outcome !== "granted", "extend() grants a lock that is not there");
    await expectSharers(bench, [lock]);
  }],
];

/** Checks who shares keys: these locks, which are on the same ones. */
async function expectSharers(bench: Bench, locks: readonly HeldLock[]): Promise<void> {
  for (const key of locks[0].keys) {
    const { sharers = [] } = await bench.inspect(key) ?? {};
    const found = locks.filter(({ value }) => sharers.includes(value));
    check(
      sharers.length === locks.length && found.length === locks.length,
      `inspect() reports ${sharers.length} that share a key, not the ${locks.length} that do`,
    );
  }
}
