/**
 * The seam between the algorithm and the stores: what a node must be able to do, and how it answers.
 *
 * @module
 */
import type { NodeDiagnosis } from "./node_diagnosis.ts";
import type { QueuePosition, QueueTicket, ReleaseListener } from "./queue_ticket.ts";

/**
 * A request to all nodes, and the place for their answers. Each node answers it by calling one of its methods with its
 * own `nodeIndex`, which is the node's index in the client's array of nodes.
 */
export interface LockRequest {
  /** The keys of the lock, of which all or none are locked. */
  readonly keys: readonly string[];
  /** The random value that identifies the holder of the keys. */
  readonly value: string;
  /** The TTL for the keys, in milliseconds. */
  readonly ttlMs: number;
  /**
   * Whether the answer still matters. If it is `false`, a node must not send any command that can set a key, because
   * the command that deletes the key may have been sent already.
   */
  readonly wanted: boolean;
  /**
   * Bit mask with one bit per `nodeIndex`: the nodes on which a key with this value may be set. A node sets its bit when
   * it sends a command that can set a key. It clears its bit when it denies a plain acquisition or puts the caller in its
   * queue, because then it set nothing.
   */
  maybeSet: number;
  /** Storage that all nodes of one kind can share for this request, such as the encoded command. */
  shared: unknown;
  /**
   * Only with fencing tokens. In an acquisition: what a missing counter starts from, in microseconds since 1970, if the
   * node's clock is within a minute of it. Later: the token, to which the counters are raised.
   */
  readonly counterFloor?: number | undefined;
  /** Set by a node that grants, but whose counter may be outdated: the value to which counters must be raised at least. */
  counterFloorNext?: number | undefined;
  /**
   * The caller's ticket for the queue, if it waits. A node with queues puts it in the queue when it denies an acquisition,
   * and takes it out of the queue with a release.
   */
  readonly ticket?: QueueTicket | undefined;
  /**
   * Only in an adoption: the value that the keys must have, and that `value` replaces. With a release: the value that
   * keys with `value` get back, in place of being deleted.
   */
  readonly replaces?: string | undefined;
  /** Only with a release: whether the ticket goes back into the queue with its score, because its caller keeps waiting. */
  readonly keepsTicket?: boolean;
  /**
   * For this long after a node may have lost keys, in milliseconds, it answers {@linkcode quarantine} instead of
   * granting an acquisition or an extension. Missing or 0: never.
   */
  readonly guardMs?: number;
  /** Set by a node that grants a release: whether others are waiting for the keys. */
  hasWaiters?: boolean;
  /**
   * Answers that the node did what the request asks for.
   *
   * @param nodeIndex The index of the node.
   * @param atMs When the answer came, by the monotonic clock in milliseconds; now by default.
   * @param count Only with fencing tokens: the node's counter for the keys, after the request.
   */
  grant(nodeIndex: number, atMs?: number, count?: number): void;
  /**
   * Answers that a key has another value, or that an extension or a release did not find it.
   *
   * @param nodeIndex The index of the node.
   * @param atMs When the answer came, by the monotonic clock in milliseconds; now by default.
   */
  deny(nodeIndex: number, atMs?: number): void;
  /**
   * Answers an extension that some keys are missing and none has another value. Counts as a denial; the client may ask
   * the node to set the keys again. A node that cannot distinguish this case from others calls {@linkcode deny}.
   *
   * @param nodeIndex The index of the node.
   * @param atMs When the answer came, by the monotonic clock in milliseconds; now by default.
   */
  missing?(nodeIndex: number, atMs?: number): void;
  /**
   * Answers that a key has another value or is for a ticket ahead, that nothing was set, and that the ticket is in the
   * queue.
   *
   * @param nodeIndex The index of the node.
   * @param position The ticket's position in the queue.
   * @param atMs When the answer came, by the monotonic clock in milliseconds; now by default.
   */
  enqueued?(nodeIndex: number, position: QueuePosition, atMs?: number): void;
  /**
   * Answers that the node did what the request asks for, but may have lost keys less than {@linkcode guardMs} ago.
   *
   * @param nodeIndex The index of the node.
   * @param atMs When the answer came, by the monotonic clock in milliseconds; now by default.
   */
  quarantine?(nodeIndex: number, atMs?: number): void;
  /**
   * Answers that the node failed.
   *
   * @param nodeIndex The index of the node.
   * @param error The reason. If it has `permanent: true`, as a {@linkcode RedisError} about wrong credentials has, no
   *   later attempt can succeed: a call ends at once if more than N − quorum nodes fail so.
   */
  fail(nodeIndex: number, error: Error): void;
}

/** What a node has under a key, for {@linkcode LockNode.inspect}. */
export interface KeyState {
  /** The value of the key, which identifies its holder. */
  readonly value: string;
  /** How long the key lives, in milliseconds; `Infinity` if it has no TTL. */
  readonly remainingMs: number;
  /** How many clients wait for the key; missing if the node does not report it. */
  readonly waiters?: number;
  /** The type of the key's value, such as `list`, if it is not a string, so that no lock library set it. */
  readonly type?: string;
}

/**
 * One independent store of locks: one of the N nodes. Implement this interface to use another store, or another client
 * for Redis.
 *
 * `acquire`, `extend`, `release` and `raiseCounters` answer by calling a method of the request exactly once, during the
 * call or later, and do not throw. Requests to one node take effect in the order of the calls: a `release` undoes an
 * earlier `acquire` even if neither was answered yet.
 */
export interface LockNode {
  /** The name of the node in votes, errors and events; unique among the nodes of a client, and without credentials. */
  readonly name: string;
  /**
   * When the node became ready, by the monotonic clock in milliseconds; `Infinity` while its first connection is being
   * opened. An acquisition waits for that in addition to `nodeTimeoutMs`: as long as the call waits, a minute at most.
   * Extensions and releases do not. Missing: it is always ready.
   */
  readonly readyAtMs?: number;
  /** Sets every key to the value with the TTL, and grants, if none of the keys exists; else sets nothing, and denies. */
  acquire(request: LockRequest, nodeIndex: number): void;
  /**
   * Gives every key that has the value the TTL, counted from now, but never a shorter one than it has. Grants if all of
   * the keys had the value, denies if one has another value, and answers {@linkcode LockRequest.missing} otherwise. Never
   * sets a missing key.
   */
  extend(request: LockRequest, nodeIndex: number): void;
  /**
   * Sets every key to the value, with the TTL or what it has if that is longer, and grants, if all of the keys have the
   * value that the request {@linkcode LockRequest.replaces}. Else sets nothing: denies if a key has another value, and
   * answers {@linkcode LockRequest.missing} otherwise. Missing: the node does not support `adopt()`.
   */
  adopt?(request: LockRequest, nodeIndex: number): void;
  /**
   * Deletes every key that has the value, or gives it back the value that the request replaces. Grants if all of the
   * keys had the value, else denies.
   */
  release(request: LockRequest, nodeIndex: number): void;
  /**
   * Raises the keys' counters to the request's token, and grants with the highest counter, if every key has the value;
   * else denies. Missing: the node does not support fencing tokens.
   */
  raiseCounters?(request: LockRequest, nodeIndex: number): void;
  /**
   * Reports what the node has under a key, without changing anything.
   *
   * @param key The key.
   * @returns The state of the key, or `undefined` if it does not exist. Rejects if the node cannot answer.
   */
  inspect(key: string): Promise<KeyState | undefined>;
  /**
   * Lists keys, in steps that each take a moment only, for {@linkcode Redlock.list}. A key that is there all the time is
   * listed at least once. Missing: the node cannot list keys.
   *
   * @param prefix What the keys begin with.
   * @returns The keys of each step, of which a step may have none. Rejects if the node cannot answer.
   */
  keys?(prefix: string): AsyncIterable<readonly string[]>;
  /**
   * Starts notifications about released keys, until {@linkcode unsubscribe}; called again, it does nothing. A node with
   * this method puts tickets in its queues once it has called `onSubscribed`. Missing: waiting calls poll this node.
   *
   * @param listener The listener to notify.
   * @param nodeIndex The index of the node.
   */
  subscribe?(listener: ReleaseListener, nodeIndex: number): void;
  /** Ends the notifications that {@linkcode subscribe} started. */
  unsubscribe?(): void;
  /**
   * Takes a ticket out of the queue, and notifies the next one if this ticket had been notified.
   *
   * @param keys The keys that the ticket waits for.
   * @param ticketId The id of the ticket.
   */
  leaveQueue?(keys: readonly string[], ticketId: string): void;
  /**
   * Reports how the node is configured, for {@linkcode Redlock.check}. Leaves no key behind. Missing: nothing is known
   * about it.
   *
   * @param timeoutMs How long the caller waits for the result, in milliseconds, from now or from when the first
   *   connection is ready.
   * @param key A key that no client locks, to try commands on; it begins as the keys of locks do.
   * @returns The report. Rejects if the node cannot be reached.
   */
  diagnose?(timeoutMs: number, key: string): Promise<NodeDiagnosis>;
  /** Closes what the node keeps open, such as connections. Must settle in bounded time. */
  close?(): Promise<void>;
}
