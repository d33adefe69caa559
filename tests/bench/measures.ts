/** What a worker process can measure of the contender it holds. Runs in Deno, Node and Bun. */

import process from "node:process";
import type { Contender } from "./contenders/contender.ts";
import { heapBytes } from "./heap.ts";
import { connectMany, disconnectMany, hold, idle, keep, letGo } from "./scale.ts";
import { contend, disperse, gather, handOff, standBy, takeTurns } from "./waiting.ts";
import { percentile } from "./statistics.ts";

/** How many resources the measurements go round: far more than are ever in flight. */
const RESOURCES_MAX = 4_096;

/** Figures by name. */
export type Figures = Record<string, number>;

/** A measurement: what it needs, given by the scenario, and the figures it makes. */
export type Measure = (contender: Contender, params: Figures) => Promise<Figures>;

/** Contenders take turns on the same servers: what one leaves behind must not deny another. */
const ownName = crypto.randomUUID().slice(0, 4);
const resources = Array.from({ length: RESOURCES_MAX }, (_, index) => `bench-${ownName}:${index}`);
let next = 0;

function nextResource(): string {
  next = (next + 1) % RESOURCES_MAX;
  return resources[next]!;
}

/** All measurements by name. */
export const measures: Record<string, Measure> = {
  sequential,
  concurrent,
  fenced,
  pairs,
  memory,
  gather,
  contend,
  handOff,
  standBy,
  takeTurns,
  disperse,
  keep,
  hold,
  letGo,
  connectMany,
  idle,
  disconnectMany,
  growth,
};

/** One pair at a time for `durationMs`: latency and the client's CPU time. */
async function sequential(contender: Contender, params: Figures): Promise<Figures> {
  contender.prepare?.(resources);
  const samplesUs: number[] = [];
  const endMs = performance.now() + params.durationMs!;
  const cpu = process.cpuUsage();
  for (let startMs = performance.now(); startMs < endMs;) {
    await contender.pair(nextResource());
    const nowMs = performance.now();
    samplesUs.push((nowMs - startMs) * 1_000);
    startMs = nowMs;
  }
  const { user, system } = process.cpuUsage(cpu);
  return {
    p50Us: percentile(samplesUs, 0.5),
    p99Us: percentile(samplesUs, 0.99),
    cpuUs: (user + system) / samplesUs.length,
  };
}

/**
 * `count` pairs with fencing tokens on fresh resources, called after `round`, and as many on used
 * ones, each behind a pair without, so that whatever disturbs the machine disturbs all of them:
 * latency.
 */
async function fenced(contender: Contender, params: Figures): Promise<Figures> {
  const plain: number[] = [];
  const fresh: number[] = [];
  const used: number[] = [];
  const timed = async (samplesUs: number[], resource: string, isFenced: boolean) => {
    const startMs = performance.now();
    await (isFenced ? contender.pairFenced!(resource) : contender.pair(resource));
    samplesUs.push((performance.now() - startMs) * 1_000);
  };
  for (let index = 0; index < params.count!; index++) {
    const freshOne = `fenced:${params.round}:${index}`;
    const usedOne = `fenced:${params.round}:${index >> 1}`;
    await timed(plain, usedOne, false);
    await timed(fresh, freshOne, true);
    await timed(plain, usedOne, false);
    await timed(used, usedOne, true);
  }
  const plainUs = percentile(plain, 0.5);
  return {
    plainUs,
    fresh: percentile(fresh, 0.5) / plainUs,
    used: percentile(used, 0.5) / plainUs,
  };
}

/**
 * `inFlight` pairs at any time for `durationMs`, each on a resource of its own. A contender that
 * has the choice writes the commands of one moment together if `pipelined` is 1.
 */
async function concurrent(contender: Contender, params: Figures): Promise<Figures> {
  contender.pipeline?.(params.pipelined === 1);
  contender.prepare?.(resources);
  let pairs = 0;
  const startMs = performance.now();
  const endMs = startMs + params.durationMs!;
  const cpu = process.cpuUsage();
  const lane = async () => {
    do {
      await contender.pair(nextResource());
      pairs++;
    } while (performance.now() < endMs);
  };
  await Promise.all(Array.from({ length: params.inFlight! }, lane));
  const { user, system } = process.cpuUsage(cpu);
  contender.pipeline?.(false);
  return {
    hasChoice: Number(contender.pipeline !== undefined),
    pairs,
    pairsPerS: pairs / (performance.now() - startMs) * 1_000,
    cpuUs: (user + system) / pairs,
  };
}

/** Exactly `count` pairs, one at a time, for what servers count. */
async function pairs(contender: Contender, params: Figures): Promise<Figures> {
  contender.prepare?.(resources);
  for (let i = 0; i < params.count!; i++) await contender.pair(nextResource());
  return {};
}

/** Holds `count` locks at once: heap kept by each. */
async function memory(contender: Contender, params: Figures): Promise<Figures> {
  contender.prepare?.([]);
  const names = Array.from(
    { length: params.count! },
    (_, index) => `held:${params.round}:${index}`,
  );
  const held: unknown[] = new Array(names.length).fill(undefined);
  for (let i = 0; i < 100; i++) await contender.pair(`warm:${i}`);
  const before = await heapBytes();
  for (let i = 0; i < names.length; i++) held[i] = await contender.hold(names[i]!);
  const after = await heapBytes();
  if (held.some((lock) => lock === undefined)) throw new Error("A lock was not won");
  return { bytes: (after - before) / names.length };
}

/** How much the process grows over `count` pairs, with `inFlight` of them at any time. */
async function growth(contender: Contender, params: Figures): Promise<Figures> {
  contender.prepare?.(resources);
  const run = async (count: number) => {
    let left = count;
    const lane = async () => {
      while (left-- > 0) await contender.pair(nextResource());
    };
    await Promise.all(Array.from({ length: params.inFlight! }, lane));
  };
  await run(params.inFlight! * 50);
  await heapBytes(); // what warming up has left is no growth
  const before = process.memoryUsage().rss;
  await run(params.count!);
  return { grownMb: (process.memoryUsage().rss - before) / 2 ** 20 };
}
