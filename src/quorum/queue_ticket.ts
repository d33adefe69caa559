/**
 * The place of a waiting caller in the queues on the nodes, and how a node notifies it.
 *
 * @module
 */

/** How a waiting caller stands in the line of those who wait for the same keys on one node. */
export interface QueuePosition {
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
export type QueuePriority = "last" | "woken" | "overdue";

/** Stands for one waiting caller of this client in the lines on the nodes. */
export interface QueueTicket {
  /**
   * Names it there: the client's id, a number of its own, and since when it waits by the wall clock, in milliseconds,
   * with colons between.
   */
  readonly ticketId: string;
  /** What it may take. */
  readonly priority: QueuePriority;
  /**
   * A node has put it in line.
   *
   * @param nodeIndex The node's nodeIndex.
   * @param place Where it stands.
   */
  onEnqueued(nodeIndex: number, place: QueuePosition): void;
}

/** Where a node tells a client that it may be worth asking again. */
export interface ReleaseListener {
  /** The client's id: what stands before the first colon in its tickets' entries. */
  readonly id: string;
  /** From here on wake-ups of this node come; some may have been missed before. */
  onSubscribed(nodeIndex: number): void;
  /** They come no longer. */
  onUnsubscribed(nodeIndex: number): void;
  /** They never will: the server, or what stands before it, does not allow it. */
  onUnsupported(nodeIndex: number, error: Error): void;
  /**
   * A key is free, and a ticket is next in its line on this node.
   *
   * @param nodeIndex The node's nodeIndex.
   * @param entry The ticket's entry.
   * @param key The key.
   */
  onReleased(nodeIndex: number, entry: string, key: string): void;
}
