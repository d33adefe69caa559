/**
 * The seam between the algorithm and the stores it asks: what a node must be able to do, and how it answers.
 *
 * @module
 */
import type { NodeDiagnosis } from "./node_diagnosis.ts";
import type { QueuePosition, QueueTicket, ReleaseListener } from "./queue_ticket.ts";

/** What the nodes are asked, and where each puts its answer. A nodeIndex is a node's place in the list of nodes. */
export interface LockRequest {
  /** The keys: all of them, or none. */
  readonly keys: readonly string[];
  /** The value that proves who holds them. */
  readonly value: string;
  /** How long they are to live, in milliseconds. */
  readonly ttlMs: number;
  /**
   * Whether the answer still matters. Once it is false, what could set a key must not be sent any more: a
   * command that takes it back may be on its way.
   */
  readonly wanted: boolean;
  /**
   * One bit a nodeIndex: the nodes on which a key of ours may be set. A node sets its bit when it sends a command that
   * could set one, and clears it when it denies a plain acquisition or puts the caller in its queue: nothing was set.
   */
  maybeSet: number;
  /** A place for what nodes of one kind can share, such as the encoded command. */
  shared: unknown;
  /**
   * With fencing tokens. In an acquisition: what a missing counter of the keys starts from, at the least. Later: the
   * token, to which counters are raised.
   */
  readonly counterFloor?: number | undefined;
  /** Set by a node that grants, but whose counter is an old one: counters are to be raised to this at the least. */
  counterFloorNext?: number | undefined;
  /**
   * Where there is one, a node that can is to put the caller in line if it denies an acquisition; and with a release,
   * to take it out.
   */
  readonly ticket?: QueueTicket | undefined;
  /** With a release: whether the ticket stays in line all the same, as its caller has not won and waits on. */
  readonly keepsTicket?: boolean;
  /**
   * For how long a node that may have forgotten locks answers {@linkcode quarantine} where it would grant an acquisition
   * or an extension, in milliseconds; left out or 0: for no time.
   */
  readonly guardMs?: number;
  /** Set by a node that grants a release: others wait for the keys. */
  hasWaiters?: boolean;
  /**
   * The node did as it was asked.
   *
   * @param nodeIndex The node's nodeIndex.
   * @param atMs When its answer came, by the monotonic clock; this moment unless given.
   * @param count With fencing tokens, the node's counter of the keys after that.
   */
  grant(nodeIndex: number, atMs?: number, count?: number): void;
  /**
   * The key is held by another, or is not there.
   *
   * @param nodeIndex The node's nodeIndex.
   * @param atMs When its answer came, by the monotonic clock; this moment unless given.
   */
  deny(nodeIndex: number, atMs?: number): void;
  /**
   * The answer to an extension if some keys are missing and none is another's: a denial, after which the node may be
   * asked to set the keys again. A node without it denies.
   *
   * @param nodeIndex The node's nodeIndex.
   * @param atMs When its answer came, by the monotonic clock; this moment unless given.
   */
  missing?(nodeIndex: number, atMs?: number): void;
  /**
   * The key is held by another, nothing was set, and the ticket stands in line.
   *
   * @param nodeIndex The node's nodeIndex.
   * @param place Where it stands.
   * @param atMs When the answer came, by the monotonic clock; this moment unless given.
   */
  enqueued?(nodeIndex: number, place: QueuePosition, atMs?: number): void;
  /**
   * The node did as it was asked, but may have forgotten locks less than {@linkcode guardMs} ago.
   *
   * @param nodeIndex The node's nodeIndex.
   * @param atMs When its answer came, by the monotonic clock; this moment unless given.
   */
  quarantine?(nodeIndex: number, atMs?: number): void;
  /** The node could not tell. */
  fail(nodeIndex: number, error: Error): void;
}

/** What stands under a key. */
export interface KeyState {
  /** The value of whoever holds it. */
  readonly value: string;
  /** For how long it will be there, in milliseconds; `Infinity` for a key that does not expire. */
  readonly remainingMs: number;
  /** How many clients stand in line for it; left out where the node cannot tell. */
  readonly waiters?: number;
  /** The type of the value, such as `list`, if it is not a string: no lock library set it. */
  readonly type?: string;
}

/**
 * One independent store of locks: one of the N nodes. Bring your own by implementing this interface.
 *
 * Each of the first three methods answers on the request, once, at any later time or within the call, and does not
 * throw. What one node is asked takes effect in the order of the calls: a `release` undoes an `acquire` that
 * was called before it even where neither was answered yet.
 */
export interface LockNode {
  /** Names the node in votes, errors and events. No two nodes of a lock client share a name. */
  readonly name: string;
  /**
   * Since when the node can be asked, on the monotonic clock: `Infinity` while its first connection is
   * being made, which is waited for in addition to the timeout, for a minute at most. Left out: always.
   */
  readonly readyAtMs?: number;
  /** Sets every key to the value for the TTL, if none of them is there. */
  acquire(request: LockRequest, nodeIndex: number): void;
  /**
   * Makes every key that holds the value live for the TTL from now, never for less than it would have. Grants if all
   * keys do, denies if one is another's, and answers {@linkcode LockRequest.missing} otherwise. Sets no missing key.
   */
  extend(request: LockRequest, nodeIndex: number): void;
  /** Deletes every key that holds the value; grants where all of them did. */
  release(request: LockRequest, nodeIndex: number): void;
  /**
   * Where every key holds the value, raises their counters to the request's token and grants with the highest. Left out:
   * there are no fencing tokens with this node.
   */
  raiseCounters?(request: LockRequest, nodeIndex: number): void;
  /** What stands under one key, or `undefined` where nothing does. Rejects where the node cannot tell. */
  inspect(key: string): Promise<KeyState | undefined>;
  /**
   * Tells `listener` of wake-ups from here on, until {@linkcode unsubscribe}; called again, it does nothing. A node that
   * has this puts tickets in line once it has told `onListening`. Left out: its callers poll.
   *
   * @param listener Who is told.
   * @param nodeIndex The node's nodeIndex.
   */
  subscribe?(listener: ReleaseListener, nodeIndex: number): void;
  /** Ends what {@linkcode subscribe} began. */
  unsubscribe?(): void;
  /**
   * Takes a ticket out of line, and passes on a wake-up that it may have got.
   *
   * @param keys What it waits for.
   * @param entry The ticket's name.
   */
  leaveQueue?(keys: readonly string[], entry: string): void;
  /**
   * What the node tells of itself, for {@linkcode Redlock.check}. Touches no key. Rejects where the node cannot be
   * asked. Left out: it tells nothing.
   *
   * @param timeoutMs How long it is waited for, in milliseconds, from now or from the end of its first connecting.
   */
  diagnose?(timeoutMs: number): Promise<NodeDiagnosis>;
  /** Gives up what the node holds open, in bounded time. */
  close?(): Promise<void>;
}
