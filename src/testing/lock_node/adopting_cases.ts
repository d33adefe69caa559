/**
 * What a node must do so that locks on it can be handed over: replace one value by another.
 *
 * @module
 */
import type { Case } from "./basic_cases.ts";
import { type Bench, check, LONG_MS } from "./bench.ts";

/** By how much the TTL of an adoption is shorter or longer than that of the lock. */
const FACTOR = 2;
/** How often two adopt one lock. */
const ROUNDS = 25;

/** All cases of this file. */
export const ADOPTING_CASES: readonly Case[] = [
  ["adopt() replaces the value of all keys, and never shortens a TTL", async (bench) => {
    for (const keys of [[bench.key()], [bench.key(), bench.key()]]) {
      for (const ttlMs of [LONG_MS / FACTOR, LONG_MS * FACTOR]) {
        const [replaces, value] = await locked(bench, keys);
        await bench.expect("granted", "adopt", { keys, value, replaces, ttlMs });
        for (const key of keys) {
          await bench.expectValue(key, value);
          const { remainingMs } = (await bench.inspect(key))!;
          check(remainingMs > LONG_MS / FACTOR, "adopt() has shortened a TTL");
          check(remainingMs > ttlMs / FACTOR, "adopt() has not prolonged a TTL");
        }
        await bench.expect("denied", "adopt", { keys, replaces });
        await bench.expect("granted", "release", { keys, value });
      }
    }
  }],
  ["adopt() denies if a key has another value, and replaces none", async (bench) => {
    const keys = [bench.key(), bench.key()];
    const [[first], [second]] = [await locked(bench, [keys[0]]), await locked(bench, [keys[1]])];
    for (const replaces of [first, second, bench.value()]) {
      await bench.expect("denied", "adopt", { keys, replaces });
    }
    await bench.expect("denied", "adopt", { keys: [keys[0]], replaces: second });
    await bench.expectValue(keys[0], first);
    await bench.expectValue(keys[1], second);
  }],
  ["adopt() answers that keys are missing, and sets none", async (bench) => {
    const keys = [bench.key(), bench.key()];
    await bench.expect("missing", "adopt", { keys, replaces: bench.value() });
    const [replaces] = await locked(bench, [keys[0]]);
    await bench.expect("missing", "adopt", { keys, replaces });
    await bench.expectValue(keys[0], replaces);
    await bench.expectValue(keys[1], undefined);
  }],
  [
    "release() gives keys back the value that was replaced, with the TTL that they have",
    async (bench) => {
      const keys = [bench.key(), bench.key()];
      const [replaces, value] = await locked(bench, keys);
      const adopting = bench.ask("adopt", { keys, value, replaces });
      const release = bench.ask("release", { keys, value, replaces }); // in the order of the calls
      await bench.answerTo(adopting);
      await bench.answerTo(release);
      for (const key of keys) {
        await bench.expectValue(key, replaces);
        const { remainingMs } = (await bench.inspect(key))!;
        check(remainingMs > LONG_MS / FACTOR, "release() has shortened a TTL");
      }
      await bench.expect("denied", "release", { keys, value, replaces: bench.value() });
      for (const key of keys) await bench.expectValue(key, replaces);
    },
  ],
  ["of two that adopt one lock, one does", async (bench) => {
    for (let round = 0; round < ROUNDS; round++) {
      const keys = [bench.key()];
      const [replaces] = await locked(bench, keys);
      const pair = [1, 2].map(() => bench.ask("adopt", { keys, value: bench.value(), replaces }));
      const answers = await Promise.all(pair.map((request) => bench.answerTo(request)));
      const winners = pair.filter((_, index) => answers[index].outcome === "granted");
      check(winners.length === 1, `${winners.length} of two requests adopted one lock`);
      await bench.expectValue(keys[0], winners[0].value);
    }
  }],
];

/** Has keys hold a value; returns it, and one to replace it. */
async function locked(bench: Bench, keys: string[]): Promise<[value: string, next: string]> {
  const value = bench.value();
  await bench.expect("granted", "acquire", { keys, value });
  return [value, bench.value()];
}
