/**
 * What two nodes on one store must do if they ask it at the same time.
 *
 * @module
 */
import { systemClock } from "../../time/clock.ts";
import { systemRandom } from "../../time/random.ts";
import { pauseMs } from "../../time/within.ts";
import type { Case } from "./basic_cases.ts";
import { type Bench, check, type TestRequest } from "./bench.ts";

/** How often two nodes race for keys. */
const ROUNDS = 20;
/** How often they race for keys that expire. */
const EXPIRY_ROUNDS = 25;
/** For how many keys they race at once. */
const KEYS = 50;
/** The TTL of keys that expire, in milliseconds. */
const TTL_MS = 30;
/** How long before keys can expire their holder is first asked, in milliseconds. */
const EARLY_MS = 2;

/** All cases of this file. */
export const RACE_CASES: readonly Case[] = [
  ["of two nodes on one store, one acquires a key", async (bench) => {
    const peer = await bench.peer();
    let headStartMs = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const keys = bench.keys(KEYS);
      if (round % 2) await expired(bench, keys);
      const startMs = systemClock.monotonicMs();
      // In opposite orders, so that the two meet wherever one of them is ahead.
      const theirs = acquireAll(peer, [...keys].reverse()).reverse();
      if (round > 1) await pauseMs(systemRandom.fraction() * headStartMs);
      const ours = acquireAll(bench, keys);
      for (const request of theirs) await peer.answerTo(request);
      headStartMs = systemClock.monotonicMs() - startMs;
      await Promise.all(keys.map(async (key, index) => {
        const winners = await bench.winners([ours[index], theirs[index]]);
        check(winners.length < 2, "another node on the same store acquired the same key");
        if (winners.length > 0) await bench.expectValue([key], winners[0].value);
      }));
    }
  }],
  ["a key that another node acquires as it expires is not released", async (bench) => {
    await raceAtExpiry(bench, "release");
  }],
  ["a key that another node acquires as it expires is not extended", async (bench) => {
    await raceAtExpiry(bench, "extend");
  }],
];

/** Asks for each key. */
function acquireAll(bench: Bench, keys: readonly string[]): TestRequest[] {
  return keys.map((key) => bench.ask("acquire", { keys: [key] }));
}

/** Has keys expire. */
async function expired(bench: Bench, keys: readonly string[]): Promise<void> {
  await bench.expect("granted", "acquire", { keys, ttlMs: TTL_MS });
  await pauseMs(TTL_MS);
}

/**
 * Another node acquires keys as soon as they have expired; at that time, their holder releases or
 * extends them.
 */
async function raceAtExpiry(bench: Bench, method: "release" | "extend"): Promise<void> {
  const peer = await bench.peer();
  for (let round = 0; round < EXPIRY_ROUNDS; round++) {
    const startMs = systemClock.monotonicMs();
    const requests = bench.keys(KEYS).map((key) => {
      return bench.ask("acquire", { keys: [key], ttlMs: TTL_MS });
    });
    const held = await bench.winners(requests);
    const answers = await Promise.all(requests.map(({ answer }) => answer));
    const grantedMs = systemClock.monotonicMs();
    await pauseMs(Math.max(startMs + TTL_MS - EARLY_MS - grantedMs, 0));
    const denied = answers.some(({ outcome }) => outcome === "denied");
    check(!denied, "it denied a key that nobody has used");
    // A store that two processes keep busy may fail some.
    check(held.length > 0, "it granted none of so many missing keys");
    await Promise.all(held.map(async ({ keys, value }) => {
      let over = false;
      const acquisition = acquireUntil(peer, keys, () => over);
      await pauseMs(systemRandom.fraction() * (EARLY_MS + grantedMs - startMs));
      const { outcome } = await bench.answer(method, { keys, value });
      over = true;
      const taken = await acquisition;
      if (taken === undefined) return;
      check(
        method === "release" || outcome !== "granted",
        "it extended what another node acquired",
      );
      check(
        (await peer.inspect(keys[0]))?.value === taken,
        "it changed the key of another node",
      );
    }));
  }
}

/** Tries to acquire a lock, once more at the end, and returns its value if that succeeds. */
async function acquireUntil(
  bench: Bench,
  keys: readonly string[],
  isOver: () => boolean,
): Promise<string | undefined> {
  for (let last = false;;) {
    const value = bench.value();
    if ((await bench.answer("acquire", { keys, value })).outcome === "granted") return value;
    if (last) return undefined;
    last = isOver();
    await pauseMs(1);
  }
}
