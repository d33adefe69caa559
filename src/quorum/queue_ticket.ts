/**
 * The position of a waiting caller in the queues on the nodes, and how a node notifies it.
 *
 * @module
 */

/** What the id of a ticket ends with that waits for any one of several keys. */
export const POOL_SUFFIX = ".";
/** The least and the greatest patience of a ticket, in milliseconds: see `scripts/queue.ts`. */
export const PATIENCE_MS_MIN = 50;
export const PATIENCE_MS_MAX = 1_000;
/**
 * How much earlier than the last ticket's a new ticket's score may be, or later than the node's
 * time, in milliseconds.
 */
export const QUEUE_LEAD_MS = 250;

/** The position of a ticket in one node's queues for its keys. */
export interface QueuePosition {
  /**
   * How long a key is held, in milliseconds. `Infinity`: it does not expire. 0: all are free, but
   * others are ahead; or one of a pool is free for this ticket.
   */
  readonly remainingMs: number;
  /** How many tickets are ahead of this one. */
  readonly ahead: number;
  /** How many tickets are in the queue, this one included. */
  readonly length: number;
  /** The ticket's score, which may be later than what the client asked for. */
  readonly score: number;
  /** The node's clock when it answered, in milliseconds since 1970. */
  readonly timeMs: number;
  /** Whether a key has a value of another library, whose release notifies nobody. */
  readonly foreign: boolean;
  /** The value of a key that is held, or of one of its readers. Empty: no key is held. */
  readonly value: string;
  /**
   * Only with a pool: which of its keys are free for this ticket, as in {@linkcode
   * KeyPool.free}.
   */
  readonly free?: number;
  /**
   * For how long another goes first, in milliseconds: for what is left of its turn for keys that
   * are free; or, as a writer ahead of a reader, of its wait for keys that other readers hold. With
   * a pool, for `turnPlace`. 0: nobody does, or that wait has no end.
   */
  readonly turnMs: number;
  /** Only with a pool: the index of a key that is free, but for another ticket, or -1. */
  readonly turnPlace?: number;
}

/** A waiting call of this client in the queues of the nodes. */
export interface QueueTicket {
  /** The id of the ticket in the queues: see **Tickets** in `redis_node/scripts/queue.ts`. */
  readonly ticketId: string;
  /**
   * What the queues are ordered by: when its client joined, in microseconds, by the clock that all
   * clients share.
   */
  readonly score: number;
  /** Whether a quorum of nodes has put it in their queues with this score or an earlier one. */
  readonly agreed: boolean;
  /**
   * Called when a node has put the ticket in its queues.
   *
   * @param nodeIndex The index of the node.
   * @param position The ticket's position there.
   * @param sentMs When the node was asked, by the monotonic clock in milliseconds.
   * @param receivedMs When its answer came, by the same clock.
   */
  onEnqueued(nodeIndex: number, position: QueuePosition, sentMs: number, receivedMs: number): void;
  /**
   * Called when a node that may have granted an attempt is asked to undo that. If it has, it may
   * put the ticket in its queues, even if it was not subscribed to when it granted.
   */
  onPutBack(nodeIndex: number): void;
}

/**
 * What a node's clock showed at some moment between two readings of the client's monotonic clock.
 */
export interface TimeReading {
  /** The node's clock, in milliseconds since 1970. */
  readonly timeMs: number;
  /** The monotonic clock before the node was asked, in milliseconds. */
  readonly sentMs: number;
  /** The monotonic clock after it answered, in milliseconds. */
  readonly receivedMs: number;
}

/** What a node reports about a key: see **Messages** in `redis_node/scripts/queue.ts`. */
export type QueueNotice = "turn" | "beside" | "watch" | "taken";

/**
 * What a node reports to a ticket about a key that was released or taken. Anybody can send one, so
 * the ticket may be none of the client.
 */
export interface QueueMessage {
  /** The client's id and the number of its ticket: what the client knows the ticket by. */
  readonly name: string;
  /** The ticket's id: a member of a queue without the number of the key. */
  readonly ticketId: string;
  /** The index of the key in the pool that the ticket waits for. Missing: it waits for no pool. */
  readonly place: number | undefined;
  /** What happened, and where the ticket stands. */
  readonly notice: QueueNotice;
  /**
   * Only with `watch` and `taken`: how long to wait before asking, in milliseconds: until that is
   * over or the key expires, and longer for each watcher behind the first.
   */
  readonly waitMs?: number;
}

/** A listener for one client's notifications about released keys. */
export interface ReleaseListener {
  /** The id of the client: the part of its tickets' ids before the colon. */
  readonly id: string;
  /**
   * Called when a node begins to send notifications; releases before that may have been missed.
   *
   * @param nodeIndex The index of the node.
   * @param reading What its clock showed. Missing: the node does not report it.
   */
  onSubscribed(nodeIndex: number, reading?: TimeReading): void;
  /** Called when a node stops sending notifications, because its connection was lost. */
  onUnsubscribed(nodeIndex: number): void;
  /**
   * Called when a node cannot send notifications, because the server or a proxy does not allow it.
   */
  onRefused(nodeIndex: number, error: Error): void;
  /** Called for each message on the client's channel that is for a ticket. */
  onQueueMessage(nodeIndex: number, message: QueueMessage): void;
}
