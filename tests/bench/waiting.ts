/** What a worker process can measure of many clients that want one lock. */

import { setTimeout as sleep } from "node:timers/promises";
import type { Contender } from "./contenders/contender.ts";
import { heapBytes } from "./heap.ts";
import type { Figures } from "./measures.ts";
import { median, percentile } from "./statistics.ts";

/** What all clients want. */
const RESOURCE = "bench-wanted";

let clients: Contender[] = [];

/** Makes `clients` clients, each with connections of its own, or one that all calls share. */
export async function gather(contender: Contender, params: Figures): Promise<Figures> {
  if (!contender.queue) throw new Error("it is not measured at waiting");
  clients = [contender];
  while (params.own && clients.length < params.clients!) {
    clients.push(await contender.another!());
  }
  return {};
}

/** Closes the clients that {@linkcode gather} made. */
export async function disperse(): Promise<Figures> {
  await Promise.all(clients.splice(1).map((client) => client.close()));
  return {};
}

/**
 * Has `calls` calls want the lock at once, `turns` times each, each work `workMs` with it, and
 * looks at who got it, and when.
 */
export async function contend(_contender: Contender, params: Figures): Promise<Figures> {
  const order: number[] = [];
  const waitsMs: number[] = [];
  const handOffsMs: number[] = [];
  let releasedMs: number | undefined;
  const startMs = performance.now();
  const turn = async (index: number) => {
    const lock = await clients[index % clients.length]!.queue!(RESOURCE);
    const nowMs = performance.now();
    if (releasedMs !== undefined) handOffsMs.push(nowMs - releasedMs);
    order.push(index);
    waitsMs.push(nowMs - startMs);
    await sleep(order.length === 1 ? params.firstWorkMs ?? params.workMs! : params.workMs!);
    await lock.release();
    releasedMs = performance.now();
  };
  const call = async (index: number) => {
    for (let turns = params.turns ?? 1; turns > 0; turns--) await turn(index);
  };
  const results = await Promise.allSettled(
    Array.from({ length: params.calls! }, (_, index) => call(index)),
  );
  const got = results.filter(({ status }) => status === "fulfilled").length;
  return {
    got,
    locks: order.length,
    longestGapMs: Math.max(...handOffsMs),
    usualGapMs: percentile(handOffsMs, 0.95),
    totalMs: performance.now() - startMs,
    handOffUs: percentile(handOffsMs, 0.5) * 1_000,
    longestWait: Math.max(...waitsMs) / median(waitsMs),
    outOfOrder: order.filter((index, place) => place > 0 && index < order[place - 1]!).length,
  };
}

/** Takes the lock `count` times, one after the other, beside other processes that do the same. */
export async function takeTurns(contender: Contender, params: Figures): Promise<Figures> {
  for (let turn = 0; turn < params.count!; turn++) {
    const lock = await contender.queue!(RESOURCE);
    await sleep(params.workMs!);
    await lock.release();
  }
  return {};
}

/** One waits while another holds the lock: from the release to the next, again and again. */
export async function handOff(_contender: Contender, params: Figures): Promise<Figures> {
  const samplesMs: number[] = [];
  const [one, other] = clients;
  let held = await one!.queue!(RESOURCE);
  for (let index = 0; index < params.count!; index++) {
    const next = (index % 2 === 0 ? other! : one!).queue!(RESOURCE);
    await sleep(5);
    await held.release();
    const releasedMs = performance.now();
    held = await next;
    samplesMs.push(performance.now() - releasedMs);
  }
  await held.release();
  return { handOffUs: percentile(samplesMs, 0.5) * 1_000 };
}

/**
 * One holds `count` resources, and another waits for all of them: what a wait keeps of the heap.
 */
export async function standBy(_contender: Contender, params: Figures): Promise<Figures> {
  const [one, other] = clients;
  const names = Array.from({ length: params.count! }, (_, index) => `bench-stand-by:${index}`);
  const held = await Promise.all(names.map((name) => one!.queue!(name)));
  const before = await heapBytes();
  const waiting = names.map((name) => other!.queue!(name));
  await sleep(params.settleMs!);
  const bytes = (await heapBytes() - before) / names.length;
  await Promise.all(held.map((lock) => lock.release()));
  for (const lock of await Promise.all(waiting)) await lock.release();
  return { bytes };
}
