/**
 * Servers that the tests of one file share, each test finding them as if they were new; proxies in
 * front of servers; and looks at their keys.
 */

import type { Lock, Redlock } from "../../mod.ts";
import { connect, type RedisClient } from "../../src/redis/mod.ts";
import { type FaultProxy, startProxy } from "../../src/testing/mod.ts";
import { eventually } from "./eventually.ts";
import type { QueryValue } from "./query.ts";
import {
  asGroup,
  type Group,
  type RedisServer,
  type ServerGroup,
  type StartServerOptions,
  startServers,
} from "./servers.ts";
import { testOf } from "./test_of.ts";

/** Servers of one test file. Made by {@linkcode shareServers}. */
export interface SharedServers {
  /**
   * Lends the first `count` servers, by default all; at the end of a test's block they run on,
   * empty and without faults. A server that is to be killed must be a test's own.
   */
  lend(count?: number): Group<RedisServer>;
  /** Defines a test that is lent all of them. */
  test(title: string, act: (servers: Group<RedisServer>) => void | Promise<void>): void;
}

/**
 * Starts `count` servers before the first test of the calling file, and stops them after the last.
 */
export function shareServers(count: number, options?: StartServerOptions): SharedServers {
  let group: ServerGroup | undefined;
  Deno.test.beforeAll(async () => {
    group = await startServers(count, options);
  });
  Deno.test.afterAll(async () => {
    await group?.[Symbol.asyncDispose]();
  });
  const lend = (lentCount = count) =>
    asGroup(group!.slice(0, lentCount), group!.urls.slice(0, lentCount), restore);
  return { lend, test: testOf(() => lend()) };
}

/** Returns what runs a function with a client of the first of the servers, which is empty. */
export function withClientOf(
  shared: SharedServers,
): (fn: (client: RedisClient) => Promise<void>) => Promise<void> {
  return async (fn) => {
    await using servers = shared.lend(1);
    await using client = await connect(servers.urls[0]);
    await fn(client);
  };
}

async function restore(server: RedisServer): Promise<void> {
  server.resume();
  await server.command("REPLICAOF", "NO", "ONE");
  await server.command("CONFIG", "SET", "min-replicas-to-write", 0);
  await server.command("CONFIG", "SET", "slowlog-log-slower-than", -1);
  await server.command("FLUSHALL");
}

/** Starts a proxy in front of each server. */
export async function startProxies(servers: readonly RedisServer[]): Promise<Group<FaultProxy>> {
  const proxies = await Promise.all(servers.map(({ url }) => startProxy(url)));
  return asGroup(proxies, proxies.map(({ address }) => address), (proxy) => proxy.close());
}

/** Sends one command to every server and resolves to the replies. */
export function onAll(
  servers: readonly RedisServer[],
  ...command: (string | number)[]
): Promise<QueryValue[]> {
  return Promise.all(servers.map((server) => server.command(...command)));
}

/** The value of a lock of another client of this library. */
export const ANOTHER = "a0".repeat(20);

/** Has another client hold `key` on the servers for `ttlMs`, whatever stood there. */
export async function holdByAnother(
  servers: readonly RedisServer[],
  key: string,
  ttlMs = 60_000,
): Promise<void> {
  await onAll(servers, "SET", key, ANOTHER, "PX", ttlMs);
}

/** Waits until every server has the value of a lock under `key`. */
export function setOnAll(
  servers: readonly RedisServer[],
  key: string,
  { value }: Pick<Lock, "value">,
): Promise<void> {
  return eventually(async () => {
    const values = await onAll(servers, "GET", key);
    if (values.some((it) => it !== value)) throw new Error(`"${key}" is not on all: ${values}`);
  });
}

/**
 * Waits until no server has `key`.
 *
 * @throws {Error} If one still has it when the time is over.
 */
export function gone(servers: readonly RedisServer[], key: string): Promise<void> {
  return eventually(async () => {
    const counts = await onAll(servers, "EXISTS", key);
    if (counts.some((count) => count !== 0)) throw new Error(`"${key}" still exists: ${counts}`);
  });
}

/**
 * Has every node's connection made and its scripts loaded, and waits until nothing is on its way
 * any more. What a lock's calls settle without is else counted, or held back, with what a test does
 * next. For one client at a time: others would hold the key on some of the nodes for a moment, and
 * the client would not set it there again.
 */
export async function warmUp(redlock: Redlock, servers: readonly RedisServer[]): Promise<void> {
  const lock = await redlock.acquire("warm-up", { ttlMs: 60_000 });
  await lock.extend();
  await eventually(async () => (await onAll(servers, "EXISTS", "warm-up")).every(Boolean));
  await lock.release();
  await gone(servers, "warm-up");
}

/**
 * The arguments of every command that `server` executed since {@linkcode recordCommands}, the
 * oldest first.
 */
export async function recordedCommands(server: RedisServer): Promise<string[][]> {
  const entries = await server.command("SLOWLOG", "GET", "-1") as QueryValue[][];
  return entries.map((entry) => entry[3] as string[]).reverse();
}

/** Has `server` keep what {@linkcode recordedCommands} returns. */
export async function recordCommands(server: RedisServer): Promise<void> {
  await server.command("CONFIG", "SET", "slowlog-max-len", 10_000);
  await server.command("CONFIG", "SET", "slowlog-log-slower-than", 0);
  await server.command("SLOWLOG", "RESET");
}
