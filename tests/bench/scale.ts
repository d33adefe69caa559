/** What a worker process can measure of many locks and many clients. */

import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import type { Contender, QueuedLock } from "./contenders/contender.ts";
import type { Figures } from "./measures.ts";
import { percentile } from "./statistics.ts";

/** How many locks are acquired or released at a time, and clients made. */
const AT_A_TIME = 500;
/**
 * For how long after its last command a client still looks whether replies are missing, in
 * milliseconds, and some.
 */
const CALM_AFTER_MS = 2_000;
/** The share of the TTL after which a lock is extended. */
const EXTEND_AFTER_FACTOR = 1 / 3;

const latesMs: number[] = [];
let lost = 0;
let locks: QueuedLock[] = [];
let clients: Contender[] = [];

/** Acquires `count` locks with a TTL of `ttlMs`, which are extended from then on. */
export async function keep(contender: Contender, params: Figures): Promise<Figures> {
  const { count, ttlMs } = params as { count: number; ttlMs: number };
  await inGroups(count, async (index) => {
    let extendedMs = performance.now();
    const onExtended = () => {
      const nowMs = performance.now();
      latesMs.push(nowMs - extendedMs - ttlMs * EXTEND_AFTER_FACTOR);
      extendedMs = nowMs;
    };
    locks.push(await contender.keep!(`kept:${index}`, ttlMs, onExtended, () => lost++));
  });
  return {};
}

/** Holds the locks for `durationMs`: how many extensions, how late, and what they cost. */
export async function hold(_contender: Contender, params: Figures): Promise<Figures> {
  latesMs.length = 0;
  const startMs = performance.now();
  const cpu = process.cpuUsage();
  await sleep(params.durationMs);
  const { user, system } = process.cpuUsage(cpu);
  const seconds = (performance.now() - startMs) / 1_000;
  return {
    extensions: latesMs.length,
    extensionsPerS: latesMs.length / seconds,
    cpuMsPerS: (user + system) / 1_000 / seconds,
    lateMs: percentile(latesMs, 0.99),
    lost,
  };
}

/** Releases the locks. */
export async function letGo(): Promise<Figures> {
  const held = locks;
  locks = [];
  await inGroups(held.length, (index) => held[index]!.release());
  return {};
}

/**
 * Makes `clients` clients, each with connections of its own to every node, and has each acquire and
 * release a lock.
 */
export async function connectMany(contender: Contender, params: Figures): Promise<Figures> {
  const sizeBytes = process.memoryUsage().rss;
  const startMs = performance.now();
  const count = params.clients!;
  await inGroups(count, async (index) => {
    const client = await contender.another!();
    clients.push(client);
    await client.pair(`client:${index}`);
  });
  return {
    clientMs: (performance.now() - startMs) / count,
    clientKb: (process.memoryUsage().rss - sizeBytes) / 1_024 / count,
  };
}

/** The CPU that clients cost that do nothing. */
export async function idle(_contender: Contender, params: Figures): Promise<Figures> {
  await sleep(CALM_AFTER_MS);
  const cpu = process.cpuUsage();
  await sleep(params.durationMs);
  const { user, system } = process.cpuUsage(cpu);
  return { idleCpuMsPerS: (user + system) / params.durationMs! };
}

/** Closes the clients that {@linkcode connectMany} made. */
export async function disconnectMany(): Promise<Figures> {
  const connected = clients;
  clients = [];
  await Promise.all(connected.map((client) => client.close()));
  return {};
}

async function inGroups(count: number, act: (index: number) => Promise<unknown>): Promise<void> {
  for (let from = 0; from < count; from += AT_A_TIME) {
    const group = Math.min(AT_A_TIME, count - from);
    await Promise.all(Array.from({ length: group }, (_, index) => act(from + index)));
  }
}
