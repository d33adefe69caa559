/**
 * Keys, their values – strings and sorted sets – and when they expire.
 *
 * Expiry is lazy: a key whose time is over is dropped when it is next looked at, so that there is no timer to
 * clean up. As in Redis the moments are those of the wall clock.
 *
 * @module
 */
import type { Clock } from "../../time/clock.ts";
import { CommandError } from "./replies.ts";
import { SortedSet } from "./sorted_set.ts";

/** What stands under a key. */
interface Entry {
  value: string | SortedSet;
  /** The wall clock's millisecond up to which it lives; `undefined` for ever. */
  expiresAtMs: bigint | undefined;
}

/** One numbered database; keys and values are byte strings. */
export class Keyspace {
  readonly #clock: Clock;
  readonly #entries: Map<string, Entry> = new Map();

  /** @param clock Whose wall clock decides what has expired. */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The wall clock's whole milliseconds. */
  nowMs(): bigint {
    return BigInt(Math.floor(this.#clock.wallMs()));
  }

  /**
   * The value under `key`.
   *
   * @throws {CommandError} If it is a sorted set.
   */
  get(key: string): string | undefined {
    const value = this.#live(key)?.value;
    if (value instanceof SortedSet) throw wrongType();
    return value;
  }

  /**
   * The sorted set under `key`, itself.
   *
   * @param key The key.
   * @param create Whether to put an empty one there if there is none; {@linkcode dropIfEmpty} removes it again.
   * @throws {CommandError} If something else stands there.
   */
  sortedSet(key: string, create: true): SortedSet;
  sortedSet(key: string): SortedSet | undefined;
  sortedSet(key: string, create = false): SortedSet | undefined {
    const value = this.#live(key)?.value;
    if (typeof value === "string") throw wrongType();
    if (value || !create) return value;
    const set = new SortedSet();
    this.#entries.set(key, { value: set, expiresAtMs: undefined });
    return set;
  }

  /** Deletes the sorted set under `key` if it has no members: servers keep no empty ones. */
  dropIfEmpty(key: string): void {
    const value = this.#live(key)?.value;
    if (value instanceof SortedSet && value.size === 0) this.#entries.delete(key);
  }

  /** Whether `key` is there. */
  has(key: string): boolean {
    return this.#live(key) !== undefined;
  }

  /** The type of the value under `key`, as `TYPE` names it. */
  type(key: string): string {
    const value = this.#live(key)?.value;
    if (value === undefined) return "none";
    return value instanceof SortedSet ? "zset" : "string";
  }

  /** Puts a value under `key`, with a new life. */
  set(key: string, value: string, expiresAtMs?: bigint): void {
    this.#entries.set(key, { value, expiresAtMs });
  }

  /** Replaces the value under `key` and leaves its life as it is. */
  replace(key: string, value: string): void {
    this.set(key, value, this.#live(key)?.expiresAtMs);
  }

  /** Deletes `key`; says whether it was there. */
  delete(key: string): boolean {
    const lived = this.has(key);
    this.#entries.delete(key);
    return lived;
  }

  /** Gives `key` a new life; says whether it was there. */
  expireAt(key: string, expiresAtMs: bigint): boolean {
    const entry = this.#live(key);
    if (!entry) return false;
    if (expiresAtMs <= this.nowMs()) this.#entries.delete(key);
    else entry.expiresAtMs = expiresAtMs;
    return true;
  }

  /** For how long `key` lives, in milliseconds: -1 for ever, -2 for one that is not there. */
  remainingMs(key: string): bigint {
    const entry = this.#live(key);
    if (!entry) return -2n;
    if (entry.expiresAtMs === undefined) return -1n;
    const leftMs = entry.expiresAtMs - this.nowMs();
    return leftMs > 0n ? leftMs : 0n;
  }

  /** Deletes everything. */
  clear(): void {
    this.#entries.clear();
  }

  #live(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry?.expiresAtMs === undefined || this.nowMs() <= entry.expiresAtMs) return entry;
    this.#entries.delete(key);
    return undefined;
  }
}

function wrongType(): CommandError {
  return new CommandError(
    "WRONGTYPE Operation against a key holding the wrong kind of value",
  );
}
