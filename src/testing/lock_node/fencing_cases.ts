/**
 * What a node with fencing tokens must do: count.
 *
 * @module
 */
import { systemClock } from "../../time/clock.ts";
import type { Case } from "./basic_cases.ts";
import { type Bench, check, type Wish } from "./bench.ts";

/** How far a counter is raised. */
const RAISE = 1_000_000_000;

/** All cases of this file. */
export const FENCING_CASES: readonly Case[] = [
  ["each acquisition has a greater counter", async (bench) => {
    const key = bench.key();
    let last = 0;
    for (let round = 0; round < 5; round++) {
      const lock = { keys: [key], value: bench.value() };
      const count = await acquireCounted(bench, lock);
      check(count > last, `the counter ${count} follows ${last}`);
      last = count;
      await bench.expect("granted", "release", lock);
    }
  }],
  ["the counter of several keys is greater than that of each", async (bench) => {
    const [one, two] = bench.keys(2);
    const counts: number[] = [];
    for (const keys of [[one], [two], [two], [one, two], [one], [two]]) {
      const lock = { keys, value: bench.value() };
      counts.push(await acquireCounted(bench, lock));
      await bench.expect("granted", "release", lock);
    }
    const [first, second, third, both, ...later] = counts;
    check(both > Math.max(first, second, third), "the counter of several keys is too small");
    check(later.every((count) => count > both), "a counter is too small after one of several keys");
  }],
  ["raiseCounters() raises the counter to the token", async (bench) => {
    const lock = { keys: [bench.key()], value: bench.value() };
    const token = await acquireCounted(bench, lock) + RAISE;
    const raised = await bench.expect("granted", "raiseCounters", { ...lock, counterFloor: token });
    check(raised.count === token, `raiseCounters() answered ${raised.count} instead of ${token}`);
    await bench.expect("granted", "release", lock);
    const next = await acquireCounted(bench, { keys: lock.keys });
    check(next > token, "the counter that was raised is not counted on");
  }],
  ["raiseCounters() lowers no counter", async (bench) => {
    const lock = { keys: [bench.key()], value: bench.value() };
    const count = await acquireCounted(bench, lock);
    const answer = await bench.expect("granted", "raiseCounters", {
      ...lock,
      counterFloor: count - 1,
    });
    check(answer.count === count, `raiseCounters() answered ${answer.count} instead of ${count}`);
  }],
  ["raiseCounters() denies if a key has another value, and raises nothing", async (bench) => {
    const lock = { keys: [bench.key()], value: bench.value() };
    const token = await acquireCounted(bench, lock) + RAISE;
    const others = { keys: lock.keys, value: bench.value(), counterFloor: token };
    await bench.expect("denied", "raiseCounters", others);
    await bench.expect("granted", "release", lock);
    await bench.expect("denied", "raiseCounters", { ...lock, counterFloor: token });
    const next = await acquireCounted(bench, { keys: lock.keys });
    check(next < token, "another client raised the counter of a lock");
  }],
];

/** Acquires, and returns the counter. */
async function acquireCounted(bench: Bench, wish: Wish): Promise<number> {
  const counterHint = Math.floor((systemClock.wallMs() + 1_000) * 1_000);
  const { count } = await bench.expect("granted", "acquire", { ...wish, counterHint });
  check(Number.isSafeInteger(count) && count! > 0, `it granted with the counter ${count}`);
  return count!;
}
