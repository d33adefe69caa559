/** What one node has of locks in shared mode, and what must hold of it after every command. */
import { type Keyspace, READERS_PREFIX, SHARED } from "./library.ts";

/** One value that holds a key on one node. */
export interface HeldKey {
  readonly value: string | undefined;
  readonly remainingMs: number;
}

/** The readers of a key whose deadlines lie ahead, and for how long. */
export function readersOf(
  keys: Keyspace,
  key: string,
): { value: string; remainingMs: number }[] {
  const readers = keys.sortedSet(READERS_PREFIX + key);
  const nowMs = Number(keys.nowMs());
  return (readers?.range(0, -1) ?? []).map((value) => {
    return { value, remainingMs: readers!.score(value)! - nowMs };
  }).filter(({ remainingMs }) => remainingMs > 0);
}

/** What text a key has, if it has one: another program may keep something else there. */
export function textOf(keys: Keyspace, key: string): string | undefined {
  return keys.type(key) === "string" ? keys.get(key) : undefined;
}

/** What stands in the way of a value, or is its own: for a reader, its place among the readers. */
export function heldBy(keys: Keyspace, key: string, value: string, shared: boolean): HeldKey {
  const found = textOf(keys, key);
  const remainingMs = Number(keys.remainingMs(key));
  if (!shared || found !== SHARED) return { value: found, remainingMs };
  const own = readersOf(keys, key).find((reader) => reader.value === value);
  return own ?? { value: undefined, remainingMs: -2 };
}

/**
 * While the deadline of a reader lies ahead, the key is there, says that readers hold it, and
 * expires no earlier.
 *
 * @returns What is wrong, if anything is.
 */
export function brokenReaders(keys: Keyspace, names: readonly string[]): string | undefined {
  return names.map((key) => broken(keys, key)).find((text) => text !== undefined);
}

function broken(keys: Keyspace, key: string): string | undefined {
  const readers = readersOf(keys, key);
  if (readers.length === 0) return undefined;
  const longestMs = Math.max(...readers.map(({ remainingMs }) => remainingMs));
  const found = textOf(keys, key);
  if (found !== SHARED) return `"${key}" is ${found ?? "missing"} though it has readers`;
  const livesMs = Number(keys.remainingMs(key));
  if (livesMs >= longestMs) return undefined;
  return `"${key}" expires in ${livesMs} ms though a reader has ${longestMs} ms left`;
}
