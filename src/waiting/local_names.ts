/**
 * The names of the local queues of a client, by the keys that its calls are for. The queue of a key
 * on a node has its name in `redis_node/scripts/queue.ts`.
 *
 * @module
 */

/** Separates the keys of one lock in its name: no well-formed string contains it. */
const SEPARATOR = "\udc00";

/** The name of a set of keys, in whatever order they are given. */
export function keysName(keys: readonly string[]): string {
  return keys.length === 1 ? keys[0] : [...keys].sort().join(SEPARATOR);
}

/** The name of a set of keys of which a call locks any one; the name of no other lock begins so. */
export function poolName(keys: readonly string[]): string {
  return SEPARATOR + keys.join(SEPARATOR);
}

/**
 * The name of the queue of calls in shared mode for a lock; the name of no other lock begins so.
 */
export function readersName(name: string): string {
  return SEPARATOR + SEPARATOR + name;
}
