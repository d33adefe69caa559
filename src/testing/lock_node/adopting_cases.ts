/**
 * What a node must do so that locks on it can be handed over: replace one value by another.
 *
 * @module
 */
import type { Case } from "./basic_cases.ts";
import { check, LONG_MS } from "./bench.ts";

/** By how much the TTL of an adoption is shorter or longer than that of the lock. */
const FACTOR = 2;
/** How often two adopt one lock. */
const ROUNDS = 25;

/** All cases of this file. */
export const ADOPTING_CASES: readonly Case[] = [
  ["adopt() replaces the value of all keys, and never shortens a TTL", async (bench) => {
    for (const count of [1, 2]) {
      for (const ttlMs of [LONG_MS / FACTOR, LONG_MS * FACTOR]) {
        const { keys, value: replaces } = await bench.held({ keys: bench.keys(count) });
        const value = bench.value();
        await bench.expect("granted", "adopt", { keys, value, replaces, ttlMs });
        await bench.expectValue(keys, value);
        for (const key of keys) {
          const lifeMs = await bench.lifeMs(key);
          check(lifeMs > LONG_MS / FACTOR, "adopt() has shortened a TTL");
          check(lifeMs > ttlMs / FACTOR, "adopt() has not prolonged a TTL");
        }
        await bench.expect("denied", "adopt", { keys, replaces });
        await bench.expect("granted", "release", { keys, value });
      }
    }
  }],
  ["adopt() denies if a key has another value, and replaces none", async (bench) => {
    const [first, second] = [await bench.held(), await bench.held()];
    const keys = [...first.keys, ...second.keys];
    for (const replaces of [first.value, second.value, bench.value()]) {
      await bench.expect("denied", "adopt", { keys, replaces });
    }
    await bench.expect("denied", "adopt", { keys: first.keys, replaces: second.value });
    for (const lock of [first, second]) await bench.expectValue(lock.keys, lock.value);
  }],
  ["adopt() answers that keys are missing, and sets none", async (bench) => {
    const keys = bench.keys(2);
    await bench.expect("missing", "adopt", { keys, replaces: bench.value() });
    const held = await bench.held({ keys: keys.slice(0, 1) });
    await bench.expect("missing", "adopt", { keys, replaces: held.value });
    await bench.expectValue(held.keys, held.value);
    await bench.expectValue(keys.slice(1), undefined);
  }],
  [
    "release() gives keys back the value that was replaced, with the TTL that they have",
    async (bench) => {
      const { keys, value: replaces } = await bench.held({ keys: bench.keys(2) });
      const value = bench.value();
      const adopting = bench.ask("adopt", { keys, value, replaces });
      const release = bench.ask("release", { keys, value, replaces }); // in the order of the calls
      await bench.answerTo(adopting);
      await bench.answerTo(release);
      await bench.expectValue(keys, replaces);
      for (const key of keys) {
        check(await bench.lifeMs(key) > LONG_MS / FACTOR, "release() has shortened a TTL");
      }
      await bench.expect("denied", "release", { keys, value, replaces: bench.value() });
      await bench.expectValue(keys, replaces);
    },
  ],
  ["of two that adopt one lock, one does", async (bench) => {
    for (let round = 0; round < ROUNDS; round++) {
      const { keys, value: replaces } = await bench.held();
      const winners = await bench.winners(
        [1, 2].map(() => bench.ask("adopt", { keys, replaces })),
      );
      check(winners.length === 1, `${winners.length} of two requests adopted one lock`);
      await bench.expectValue(keys, winners[0].value);
    }
  }],
];
