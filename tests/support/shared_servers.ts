/**
 * Servers that the tests of one file share, each test finding them as if they were new; proxies in front of
 * servers; and looks at their keys.
 *
 * @module
 */

import type { Redlock } from "../../mod.ts";
import { type FaultProxy, startProxy } from "../../src/testing/mod.ts";
import { eventually } from "./eventually.ts";
import type { QueryValue } from "./query.ts";
import {
  type RedisServer,
  type ServerGroup,
  type StartServerOptions,
  startServers,
} from "./servers.ts";

/** Servers on loan to one test: at the end of its block they run on, empty and without faults. */
export type LentServers = readonly RedisServer[] & AsyncDisposable & {
  /** The addresses of the servers, in the order of the handles. */
  readonly urls: string[];
};

/** Servers of one test file. Made by {@linkcode shareServers}. */
export interface SharedServers {
  /** Lends the first `count` servers, by default all. A server that is to be killed must be a test's own. */
  lend(count?: number): LentServers;
}

/** Starts `count` servers before the first test of the calling file, and stops them after the last. */
export function shareServers(count: number, options?: StartServerOptions): SharedServers {
  let group: ServerGroup | undefined;
  Deno.test.beforeAll(async () => {
    group = await startServers(count, options);
  });
  Deno.test.afterAll(async () => {
    await group?.[Symbol.asyncDispose]();
  });
  return {
    lend(lentCount = count) {
      const servers = group!.slice(0, lentCount);
      return Object.assign(servers, {
        urls: servers.map((server) => server.url),
        async [Symbol.asyncDispose]() {
          await Promise.all(servers.map(restore));
        },
      });
    },
  };
}

async function restore(server: RedisServer): Promise<void> {
  server.resume();
  await server.command("REPLICAOF", "NO", "ONE");
  await server.command("CONFIG", "SET", "min-replicas-to-write", 0);
  await server.command("CONFIG", "SET", "slowlog-log-slower-than", -1);
  await server.command("FLUSHALL");
}

/** Proxies in front of servers: an array of them, disposed of as one. */
export type ProxyGroup = readonly FaultProxy[] & AsyncDisposable & {
  /** The addresses of the proxies, in the order of the servers. */
  readonly urls: string[];
};

/** Starts a proxy in front of each server. */
export async function startProxies(servers: readonly RedisServer[]): Promise<ProxyGroup> {
  const proxies = await Promise.all(servers.map(({ url }) => startProxy(url)));
  return Object.assign(proxies, {
    urls: proxies.map(({ address }) => address),
    async [Symbol.asyncDispose]() {
      await Promise.all(proxies.map((proxy) => proxy.close()));
    },
  });
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
 * Has every node's connection made and its scripts loaded, and waits until nothing is on its way any more. What a
 * lock's calls settle without is else counted, or held back, with what a test does next.
 */
export async function warmUp(redlock: Redlock, servers: readonly RedisServer[]): Promise<void> {
  const lock = await redlock.acquire("warm-up", { ttlMs: 60_000 });
  await lock.extend();
  await eventually(async () => (await onAll(servers, "EXISTS", "warm-up")).every(Boolean));
  await lock.release();
  await gone(servers, "warm-up");
}

/** The arguments of every command that `server` executed since {@linkcode recordCommands}, the oldest first. */
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
