/** Clients that wait for a lock on real servers, and what can be seen of their waiting there. */

import {
  createRedlock,
  type Lock,
  type LockMode,
  type Redlock,
  type RedlockOptions,
} from "../../mod.ts";
import { ACQUIRE_OR_WAIT } from "../../src/redis_node/scripts/acquire.ts";
import { eventually } from "./eventually.ts";
import { type Program, startProgram } from "./programs.ts";
import { asGroup, type Group, type RedisServer } from "./servers.ts";
import { onAll } from "./shared_servers.ts";
import { SLACK_MS, TTL_MS } from "./times.ts";

/**
 * Within what a call that was notified has its lock, on a busy machine too: the idle question of a
 * {@linkcode PATIENT} first in the queue comes much later, and so does everything that polls.
 */
const WOKEN_WITHIN_MS = 1_000 + SLACK_MS;

/**
 * What a client of these tests has unless it says otherwise: nothing that comes soon comes by
 * polling or a TTL.
 */
export const PATIENT: RedlockOptions = {
  ttlMs: TTL_MS,
  waitMs: TTL_MS,
  retryDelayMs: TTL_MS,
  retryDelayMaxMs: TTL_MS,
};

/** Makes `count` clients, each with connections of its own. */
export function openClients(
  urls: readonly string[],
  count: number,
  options: RedlockOptions = PATIENT,
): Group<Redlock> {
  const clients = Array.from({ length: count }, () => createRedlock(urls, options));
  return asGroup(clients, [...urls], (client) => client.close());
}

/** The tickets in a queue on each server, in their order. */
export async function queuesOn(
  servers: readonly RedisServer[],
  queue: string,
): Promise<string[][]> {
  return await onAll(servers, "ZRANGE", queue, 0, -1) as string[][];
}

/** Waits until a queue has `count` tickets on every server. */
export async function queueOfLength(
  servers: readonly RedisServer[],
  queue: string,
  count: number,
): Promise<void> {
  await eventually(async () => {
    const lengths = (await queuesOn(servers, queue)).map(({ length }) => length);
    if (lengths.some((length) => length !== count)) {
      throw new Error(`In ${queue}: ${lengths}, not ${count}`);
    }
  });
}

/**
 * Has `client` wait for `resource`, and resolves once the queue has `place` tickets. The servers
 * know the script: the attempt may be undone before one that does not says so, and then it gets the
 * ticket only when the client asks again.
 */
export async function lineUp(
  client: Redlock,
  resource: string,
  servers: readonly RedisServer[],
  place = 1,
  options?: RedlockOptions,
): Promise<{ acquiring: Promise<Lock> }> {
  await onAll(servers, "SCRIPT", "LOAD", ACQUIRE_OR_WAIT.source);
  const acquiring = client.acquire(resource, options);
  acquiring.catch(() => {}); // it is the caller's to await
  await queueOfLength(servers, `hasp:queue:${options?.keyPrefix ?? ""}${resource}`, place);
  return { acquiring };
}

/** Between two signs that this process goes on, in milliseconds. */
const BEAT_MS = 10;

/**
 * Settles as a promise does that settles soon, as a notification has it do. While the machine
 * stands still no time passes.
 *
 * @param withinMs How long it may take, in milliseconds; by default so long that it cannot have
 * been polling.
 * @throws {Error} If it takes longer.
 */
export async function soon<T>(promise: Promise<T>, withinMs = WOKEN_WITHIN_MS): Promise<T> {
  let timer: ReturnType<typeof setInterval> | undefined;
  const late = new Promise<never>((_, reject) => {
    let beats = 0;
    timer = setInterval(() => {
      if (++beats * BEAT_MS >= withinMs) reject(new Error(`Not settled within ${withinMs} ms`));
    }, BEAT_MS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearInterval(timer);
  }
}

/** How many connections each server has on which somebody listens. */
export async function subscriptions(servers: readonly RedisServer[]): Promise<number[]> {
  const lists = await onAll(servers, "CLIENT", "LIST", "TYPE", "pubsub");
  return lists.map((list) => String(list).split("\n").filter(Boolean).length);
}

/** How many connections each server has, the asking one left out. */
export async function connections(servers: readonly RedisServer[]): Promise<number[]> {
  const lists = await onAll(servers, "CLIENT", "LIST");
  return lists.map((list) => String(list).split("\n").filter(Boolean).length - 1);
}

/** The arguments of `waiter.ts`. */
export interface WaiterJob {
  readonly urls: readonly string[];
  /** What it locks; of several, any one. */
  readonly resource: string | readonly string[];
  readonly ttlMs: number;
  readonly mode?: LockMode;
}

/**
 * Starts a process that asks for the lock on the line `ask`, and gives it back on the line
 * `release`.
 */
export async function startWaiter(job: WaiterJob): Promise<Program> {
  const program = startProgram("waiter.ts", [JSON.stringify(job)]);
  await program.line("ready");
  return program;
}
