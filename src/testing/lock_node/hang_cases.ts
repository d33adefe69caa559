/**
 * What a node must do while its store does not answer, and afterwards.
 *
 * @module
 */
import { pauseMs } from "../../time/within.ts";
import type { Case } from "./basic_cases.ts";
import { type Bench, check } from "./bench.ts";

/** A hang that ends before anybody gives up, in milliseconds. */
const SHORT_HANG_MS = 100;
/** A hang after which most clients have given up, in milliseconds. */
const LONG_HANG_MS = 3_000;
/** How many attempts are under way during a hang. */
const ATTEMPTS = 5;

/** All cases of this file. */
export const HANG_CASES: readonly Case[] = [
  ["a request during a short hang is answered once, and truly", async (bench) => {
    await bench.held(); // connected
    await bench.hang();
    const request = bench.ask("acquire", {});
    await pauseMs(SHORT_HANG_MS);
    await bench.resume();
    const { outcome } = await bench.answerTo(request);
    check(outcome !== "denied", "it denied a key that nobody held");
    if (outcome === "granted") await bench.expectValue(request.keys, request.value);
  }],
  ["a short hang leaves nothing of what was undone", (bench) => undoneBy(bench, SHORT_HANG_MS)],
  ["a long hang leaves nothing of what was undone", (bench) => undoneBy(bench, LONG_HANG_MS)],
  ["requests during a long hang are not denied, and a release takes effect", async (bench) => {
    const [released, extended] = [await bench.held(), await bench.held()];
    await bench.hang();
    const release = bench.ask("release", released);
    const requests = [release, bench.ask("extend", extended), bench.ask("acquire", {})];
    await pauseMs(LONG_HANG_MS);
    await bench.resume();
    for (const request of requests) {
      const { outcome } = await bench.answerTo(request);
      check(
        outcome === "granted" || outcome === "failed",
        `without an answer from its store it answered '${outcome}'`,
      );
    }
    await bench.eventually("a release was lost in a hang", async () => {
      return await bench.inspect(released.keys[0]) === undefined;
    });
  }],
  ["close() settles during a hang, and every request is answered", async (bench) => {
    const held = await bench.held();
    await bench.hang();
    const requests = [
      bench.ask("acquire", {}),
      bench.ask("extend", held),
      bench.ask("release", held),
    ];
    await bench.closeNode();
    for (const request of requests) await bench.answerTo(request);
  }],
];

/** Attempts are made and undone while the store hangs. */
async function undoneBy(bench: Bench, hangMs: number): Promise<void> {
  await bench.held();
  await bench.hang();
  const keys = bench.keys(ATTEMPTS);
  const requests = keys.flatMap((key) => {
    const value = bench.value();
    const attempt = bench.ask("acquire", { keys: [key], value });
    const undo = bench.ask("release", { keys: [key], value });
    return [attempt, undo];
  });
  await pauseMs(hangMs);
  await bench.resume();
  for (const request of requests) await bench.answerTo(request);
  await bench.recovered();
  for (const key of keys) {
    await bench.eventually("a key exists whose acquisition was undone", async () => {
      return await bench.inspect(key) === undefined;
    });
  }
}
