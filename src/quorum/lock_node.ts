/**
 * The seam between the algorithm and the stores: what a node must be able to do.
 *
 * @module
 */
import type { NodeDiagnosis } from "./node_diagnosis.ts";

/** What a node is asked. It ignores fields that it does not know. */
export interface LockRequest {
  /** The keys of the lock, of which all or none are locked. */
  readonly keys: readonly string[];
  /** The random value that identifies the holder of the keys. */
  readonly value: string;
  /** The TTL for the keys, in milliseconds. */
  readonly ttlMs: number;
  /**
   * Only in an acquisition with a fencing token: what a missing counter starts from, in
   * microseconds since 1970, if the node's clock is within a minute of it.
   */
  readonly counterHint?: number | undefined;
  /** Only in `raiseCounters`: the token, to which counters are raised that are below it. */
  readonly counterFloor?: number | undefined;
  /**
   * Only in an adoption: the value that the keys must have, and that `value` replaces. With a
   * release: the value that keys with `value` get back, in place of being deleted.
   */
  readonly replaces?: string | undefined;
  /**
   * Only of a lock in shared mode: any number of requests with it may hold the keys together, and
   * none without it beside them. A node that does not know this field grants such a lock to one at
   * a time.
   */
  readonly mode?: "shared" | undefined;
  /** Only with an extension: the keys get exactly this TTL, also where they would live longer. */
  readonly shortens?: boolean | undefined;
}

/**
 * A node's answer. `granted`: it did what was asked for every key. `denied`: a key has another
 * value, or a release did not find it; an acquisition has set nothing. `missing`, only to an
 * extension: some keys are missing and none has another value; the client may ask the node to set
 * them again. A number grants, too: with fencing tokens it is the node's counter for the keys after
 * the request, a positive safe integer.
 */
export type Grant = "granted" | "denied" | "missing" | number;

/** What a node has under a key, for {@linkcode LockNode.inspect}. */
export interface KeyState {
  /** The value of the key, which identifies its holder. */
  readonly value: string;
  /** How long the key lives, in milliseconds; `Infinity` if it has no TTL. */
  readonly remainingMs: number;
  /** How many clients wait for the key; missing if the node does not report it. */
  readonly waiters?: number | undefined;
  /** The values of those that hold the key in shared mode; missing if nobody does. */
  readonly sharers?: readonly string[] | undefined;
  /**
   * The type of the key's value, such as `list`, if it is not a string, so that no lock library set
   * it.
   */
  readonly type?: string | undefined;
}

/**
 * One independent store of locks: one of the N nodes. Implement this interface to use another
 * store.
 *
 * A method that throws or rejects is a failed vote; it must do so if the store may or may not have
 * done what was asked. Requests to one node take effect in the order of the calls: a `release`
 * undoes an earlier `acquire` even if neither was answered yet.
 */
export interface LockNode {
  /**
   * The name of the node in votes, errors and events; unique among the nodes of a client, and
   * without credentials.
   */
  readonly name: string;
  /**
   * Sets every key to the value with the TTL, and grants, if none of the keys exists; else sets
   * nothing, and denies.
   */
  acquire(request: LockRequest): Promise<Grant>;
  /**
   * Gives every key that has the value the TTL, counted from now, but never a shorter one than it
   * has, unless the request `shortens`: a node that does not know this field keeps the resource
   * locked for longer than it must. Grants if all of the keys had the value, denies if one has
   * another value, and answers `missing` otherwise. Never sets a missing key. A node that cannot
   * distinguish the last two may answer `denied`, and so may any if the request `shortens`.
   */
  extend(request: LockRequest): Promise<Grant>;
  /**
   * Sets every key to the value, with the TTL or what it has if that is longer, and grants, if all
   * of the keys have the value that the request {@linkcode LockRequest.replaces}. Else sets
   * nothing: denies if a key has another value, and answers `missing` otherwise. Missing: the node
   * does not support `adopt()`.
   */
  adopt?: ((request: LockRequest) => Promise<Grant>) | undefined;
  /**
   * Deletes every key that has the value, or gives it back the value that the request replaces.
   * Grants if all of the keys had the value, else denies.
   */
  release(request: LockRequest): Promise<Grant>;
  /**
   * Raises the keys' counters to the request's token, and answers with the highest counter, if
   * every key has the value; else denies. Missing: the node does not support fencing tokens.
   */
  raiseCounters?: ((request: LockRequest) => Promise<Grant>) | undefined;
  /**
   * Reports what the node has under a key, without changing anything.
   *
   * @param key The key.
   * @returns The state of the key, or `undefined` if it does not exist. Rejects if the node cannot
   * answer.
   */
  inspect(key: string): Promise<KeyState | undefined>;
  /**
   * Lists keys, in steps that each take a moment only, for `list()`. A key that is there all the
   * time is listed at least once. Missing: the node cannot list keys.
   *
   * @param prefix What the keys begin with.
   * @returns The keys of each step, of which a step may have none. Rejects if the node cannot
   * answer.
   */
  keys?: ((prefix: string) => AsyncIterable<readonly string[]>) | undefined;
  /**
   * Reports how the node is configured, for `check()`. Leaves no key behind. Missing: nothing is
   * known about it.
   *
   * @param timeoutMs How long the caller waits for the result, in milliseconds, from now or from
   * when the first connection is ready.
   * @param key A key that no client locks, to try commands on; it begins as the keys of locks do.
   * @returns The report. Rejects if the node cannot be reached.
   */
  diagnose?: ((timeoutMs: number, key: string) => Promise<NodeDiagnosis>) | undefined;
  /** Closes what the node keeps open, such as connections. Must settle in bounded time. */
  close?: (() => Promise<void>) | undefined;
}
