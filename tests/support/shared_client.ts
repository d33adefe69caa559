/**
 * Clients of a server that the tests of one file share.
 *
 * @module
 */
import { connect, type RedisClient } from "../../src/redis/mod.ts";
import type { SharedServers } from "./shared_servers.ts";

/** Returns what runs a function with a client of the first of the servers, which is empty. */
export function withClientOf(
  shared: SharedServers,
): (fn: (client: RedisClient) => Promise<void>) => Promise<void> {
  return async (fn) => {
    await using servers = shared.lend(1);
    await using client = await connect(servers.urls[0]!);
    await fn(client);
  };
}
