/**
 * The seam between the algorithm and the stores it asks: what a node must be able to do, and how it answers.
 *
 * @module
 */

/** What one node made of one command. */
export interface Vote {
  /** The node's name: its address without credentials. */
  readonly node: string;
  /**
   * `granted`: it did as it was asked. `denied`: somebody else holds the resource, or the key is no longer
   * ours. `failed`: it answered with an error or could not be reached. `timed-out`: no answer in time.
   * `quarantined`: it did as it was asked, but that does not count, as it may have forgotten locks (`restartGuardMs`).
   */
  readonly outcome: "granted" | "denied" | "failed" | "timed-out" | "quarantined";
  /** From the start of the attempt to the answer, in milliseconds; for a missing one, to the end of waiting. */
  readonly elapsedMs: number;
  /** Why it failed. */
  readonly error?: Error;
}

/** How a waiting caller stands in the line of those who wait for the same keys on one node. */
export interface Place {
  /** For how long the key in the way lives, in milliseconds; `Infinity` for ever, 0 where it is free but others' turn. */
  readonly remainingMs: number;
  /** How many stand before this one. */
  readonly ahead: number;
  /** How many stand there in all. */
  readonly length: number;
}

/**
 * What a caller comes with who would wait. `last` keeps to the line: what is free while others wait is theirs. `woken`
 * takes what is free. `overdue` takes it too, and sends whoever stands first to the end, having had its chance.
 */
export type Claim = "last" | "woken" | "overdue";

/** Stands for one waiting caller of this client in the lines on the nodes. */
export interface Ticket {
  /**
   * Names it there: the client's id, a number of its own, and since when it waits by the wall clock, in milliseconds,
   * with colons between.
   */
  readonly entry: string;
  /** What it may take. */
  readonly claim: Claim;
  /**
   * A node has put it in line.
   *
   * @param seat The node's seat.
   * @param place Where it stands.
   */
  onQueued(seat: number, place: Place): void;
}

/** Where a node tells a client that it may be worth asking again. */
export interface WakeListener {
  /** The client's id: what stands before the first colon in its tickets' entries. */
  readonly id: string;
  /** From here on wake-ups of this node come; some may have been missed before. */
  onListening(seat: number): void;
  /** They come no longer. */
  onDeaf(seat: number): void;
  /** They never will: the server, or what stands before it, does not allow it. */
  onRefused(seat: number, error: Error): void;
  /**
   * A key is free, and a ticket is next in its line on this node.
   *
   * @param seat The node's seat.
   * @param entry The ticket's entry.
   * @param key The key.
   */
  onWake(seat: number, entry: string, key: string): void;
}

/** What the nodes are asked, and where each puts its answer. A seat is a node's place in the list of nodes. */
export interface Ballot {
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
  /** One bit a seat: on which nodes a key of ours may stand. Set by a node when it sends what could set one. */
  mayStand: number;
  /** A place for what nodes of one kind can share, such as the encoded command. */
  shared: unknown;
  /**
   * With fencing tokens. In an acquisition: what a missing counter of the keys starts from, at the least. Later: the
   * token, to which counters are raised.
   */
  readonly fence?: number | undefined;
  /** Set by a node that grants, but whose counter is an old one: counters are to be raised to this at the least. */
  fenceMin?: number | undefined;
  /**
   * Where there is one, a node that can is to put the caller in line if it denies an acquisition; and with a release,
   * to take it out.
   */
  readonly ticket?: Ticket | undefined;
  /** With a release: whether the ticket stays in line all the same, as its caller has not won and waits on. */
  readonly stays?: boolean;
  /**
   * For how long a node that may have forgotten locks answers {@linkcode quarantine} where it would grant an acquisition
   * or an extension, in milliseconds; left out or 0: for no time.
   */
  readonly guardMs?: number;
  /** Set by a node that grants a release: others wait for the keys. */
  othersWait?: boolean;
  /**
   * The node did as it was asked.
   *
   * @param seat The node's seat.
   * @param atMs When its answer came, by the monotonic clock; this moment unless given.
   * @param count With fencing tokens, the node's counter of the keys after that.
   */
  grant(seat: number, atMs?: number, count?: number): void;
  /**
   * The key is held by another, or is not there.
   *
   * @param seat The node's seat.
   * @param atMs When its answer came, by the monotonic clock; this moment unless given.
   */
  deny(seat: number, atMs?: number): void;
  /**
   * The key is held by another, nothing was set, and the ticket stands in line.
   *
   * @param seat The node's seat.
   * @param place Where it stands.
   * @param atMs When the answer came, by the monotonic clock; this moment unless given.
   */
  queue?(seat: number, place: Place, atMs?: number): void;
  /**
   * The node did as it was asked, but may have forgotten locks less than {@linkcode guardMs} ago.
   *
   * @param seat The node's seat.
   * @param atMs When its answer came, by the monotonic clock; this moment unless given.
   */
  quarantine?(seat: number, atMs?: number): void;
  /** The node could not tell. */
  fail(seat: number, error: Error): void;
}

/** What stands under a key. */
export interface KeyState {
  /** The value of whoever holds it. */
  readonly value: string;
  /** For how long it will be there, in milliseconds; `Infinity` for a key that does not expire. */
  readonly remainingMs: number;
  /** How many clients stand in line for it; left out where the node cannot tell. */
  readonly waiters?: number;
}

/** A command that a node was tried with. */
export type TriedCommand = "CONFIG" | "EVALSHA" | "INFO" | "PUBLISH" | "SUBSCRIBE" | "TIME";

/** What a node tells of itself, as plain data. Whatever is left out it does not tell, or was not let tell. */
export interface NodeDiagnosis {
  /** From the question to the answer, in milliseconds, without connecting. */
  readonly roundTripMs: number;
  /** By how much its wall clock is ahead of this process's, in milliseconds; right to half of `roundTripMs`. */
  readonly clockOffsetMs?: number;
  /** The version of its software. */
  readonly version?: string;
  /** Whether it decides by itself or follows another. */
  readonly role?: "master" | "replica";
  /** Tells this run of this server from every other: a restart changes it, another name does not. */
  readonly runId?: string;
  /** Since when it runs, in milliseconds, to a second. */
  readonly uptimeMs?: number;
  /** Whether it is one node of a cluster. */
  readonly clustered?: boolean;
  /** Whether it writes down what it does (`aof_enabled`). */
  readonly aofEnabled?: boolean;
  /** When that reaches the disk (`appendfsync`): `always`, `everysec` or `no`. */
  readonly appendfsync?: string;
  /** The most memory it takes for its keys (`maxmemory`), in bytes; 0 for any amount. */
  readonly maxmemoryBytes?: number;
  /** What it does when that is full (`maxmemory-policy`). */
  readonly maxmemoryPolicy?: string;
  /** The commands that it refused, each with the first word of its reply, such as `NOPERM`. */
  readonly refused?: Readonly<Partial<Record<TriedCommand, string>>>;
}

/**
 * One independent store of locks: one of the N nodes. Bring your own by implementing this interface.
 *
 * Each of the first three methods answers on the ballot, once, at any later time or within the call, and does not
 * throw. What one node is asked takes effect in the order of the calls: a `release` undoes an `acquire` that
 * was called before it even where neither was answered yet.
 */
export interface LockNode {
  /** Names the node in votes, errors and events. No two nodes of a lock client share a name. */
  readonly name: string;
  /**
   * Since when the node can be asked, on the monotonic clock: `Infinity` while its first connection is
   * being made, which must end in bounded time. Left out: always.
   */
  readonly readyAtMs?: number;
  /** Sets every key to the value for the TTL, if none of them is there. */
  acquire(ballot: Ballot, seat: number): void;
  /**
   * Where every key holds the value, makes it live for the TTL from now, never for less than it would have,
   * and grants. Where a key is missing and none is another's, sets it again and denies.
   */
  extend(ballot: Ballot, seat: number): void;
  /** Deletes every key that holds the value; grants where all of them did. */
  release(ballot: Ballot, seat: number): void;
  /**
   * Where every key holds the value, raises their counters to the ballot's token and grants with the highest. Left out:
   * there are no fencing tokens with this node.
   */
  raise?(ballot: Ballot, seat: number): void;
  /** What stands under one key, or `undefined` where nothing does. Rejects where the node cannot tell. */
  inspect(key: string): Promise<KeyState | undefined>;
  /**
   * Tells `listener` of wake-ups from here on, until {@linkcode unlisten}; called again, it does nothing. A node that
   * has this puts tickets in line once it has told `onListening`. Left out: its callers poll.
   *
   * @param listener Who is told.
   * @param seat The node's seat.
   */
  listen?(listener: WakeListener, seat: number): void;
  /** Ends what {@linkcode listen} began. */
  unlisten?(): void;
  /**
   * Takes a ticket out of line, and passes on a wake-up that it may have got.
   *
   * @param keys What it waits for.
   * @param entry The ticket's name.
   */
  leave?(keys: readonly string[], entry: string): void;
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
