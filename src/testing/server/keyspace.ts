/**
 * Keys, their values (strings and sorted sets), and the times when they expire.
 *
 * Expiry is lazy: an expired key is deleted when it is next accessed, so no timer is needed. The
 * times are those of the wall clock, as in Redis.
 *
 * @module
 */
import type { CommandClock } from "./command_clock.ts";
import { CommandError } from "./replies.ts";
import { SortedSet } from "./sorted_set.ts";

/** The value of a key, and when it expires. */
interface Entry {
  value: string | SortedSet;
  /** The last millisecond of its life by the wall clock; `undefined` if it does not expire. */
  expiresAtMs: bigint | undefined;
}

/** One numbered database; keys and values are byte strings. */
export class Keyspace {
  readonly #clock: CommandClock;
  readonly #entries: Map<string, Entry> = new Map();

  /** @param clock The clock by whose wall time keys expire. */
  constructor(clock: CommandClock) {
    this.#clock = clock;
  }

  /** The wall clock in whole milliseconds. */
  nowMs(): bigint {
    return BigInt(Math.floor(this.#clock.wallMs()));
  }

  /**
   * The value of `key`.
   *
   * @throws {CommandError} If it is a sorted set.
   */
  get(key: string): string | undefined {
    const value = this.#live(key)?.value;
    if (value instanceof SortedSet) throw wrongType();
    return value;
  }

  /**
   * The sorted set of `key`, not a copy.
   *
   * @param key The key.
   * @param create Whether to create an empty one if the key is missing; {@linkcode dropIfEmpty}
   * deletes it again.
   * @throws {CommandError} If the value has another type.
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

  /** Deletes the sorted set of `key` if it is empty, as servers do. */
  dropIfEmpty(key: string): void {
    const value = this.#live(key)?.value;
    if (value instanceof SortedSet && value.size === 0) this.#entries.delete(key);
  }

  /** Whether `key` exists. */
  has(key: string): boolean {
    return this.#live(key) !== undefined;
  }

  /** The type of the value of `key`, as `TYPE` names it. */
  type(key: string): string {
    const value = this.#live(key)?.value;
    if (value === undefined) return "none";
    return value instanceof SortedSet ? "zset" : "string";
  }

  /** Sets `key`, with a new expiry. */
  set(key: string, value: string, expiresAtMs?: bigint): void {
    this.#entries.set(key, { value, expiresAtMs });
  }

  /** Replaces the value of `key`, and keeps its expiry. */
  replace(key: string, value: string): void {
    this.set(key, value, this.#live(key)?.expiresAtMs);
  }

  /** Deletes `key`; returns whether it existed. */
  delete(key: string): boolean {
    const lived = this.has(key);
    this.#entries.delete(key);
    return lived;
  }

  /** Sets the expiry of `key`; returns whether the key exists. */
  expireAt(key: string, expiresAtMs: bigint): boolean {
    const entry = this.#live(key);
    if (!entry) return false;
    if (expiresAtMs <= this.nowMs()) this.#entries.delete(key);
    else entry.expiresAtMs = expiresAtMs;
    return true;
  }

  /** The remaining life of `key` in milliseconds; -1 if it does not expire, -2 if it is missing. */
  remainingMs(key: string): bigint {
    const entry = this.#live(key);
    if (!entry) return -2n;
    if (entry.expiresAtMs === undefined) return -1n;
    const leftMs = entry.expiresAtMs - this.nowMs();
    return leftMs > 0n ? leftMs : 0n;
  }

  /** The names of all keys. */
  names(): string[] {
    return [...this.#entries.keys()].filter((key) => this.has(key));
  }

  /** Deletes everything. */
  clear(): void {
    this.#entries.clear();
  }

  #live(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    const { expiresAtMs = Infinity } = entry ?? {};
    if (Math.floor(this.#clock.wallMs()) <= expiresAtMs) return entry;
    this.#entries.delete(key);
    return undefined;
  }
}

function wrongType(): CommandError {
  return new CommandError(
    "WRONGTYPE Operation against a key holding the wrong kind of value",
  );
}
