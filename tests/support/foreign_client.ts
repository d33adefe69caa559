/** A client without a library. */
import type { RedisServer } from "./servers.ts";
import { onAll } from "./shared_servers.ts";
import { TTL_MS } from "./times.ts";

/**
 * Locks `key` on all of `servers`, a quorum of the nodes, as every Redlock client does: by a plain
 * SET NX PX. Then releases it by the well-known script.
 *
 * @param work What it does with the lock.
 * @returns Whether it had the lock.
 */
export async function lockAsForeigner(
  servers: readonly RedisServer[],
  key: string,
  work: () => Promise<void>,
): Promise<boolean> {
  const value = crypto.randomUUID();
  const replies = await onAll(servers, "SET", key, value, "NX", "PX", TTL_MS);
  const granted = replies.every((reply) => reply === "OK");
  if (granted) await work();
  const script = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1])";
  await onAll(servers, "EVAL", script, 1, key, value);
  return granted;
}
