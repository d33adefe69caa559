/**
 * The place of a waiting caller in the queues on the nodes, and how a node notifies it.
 *
 * @module
 */

/** The position of a ticket in one node's queue for its keys. */
export interface QueuePosition {
  /** How long the held key lives, in milliseconds. `Infinity`: it does not expire. 0: it is free, but others are ahead. */
  readonly remainingMs: number;
  /** How many tickets are ahead of this one. */
  readonly ahead: number;
  /** How many tickets are in the queue, this one included. */
  readonly length: number;
}

/**
 * What a ticket may do if the key is free. `last` leaves it to the tickets ahead. `woken` takes it. `overdue` takes it
 * too, and moves the head of the queue to the tail, because it has not used its turn.
 */
export type QueuePriority = "last" | "woken" | "overdue";

/** A waiting call of this client in the queues of the nodes. */
export interface QueueTicket {
  /**
   * The id of the ticket in the queues: the client's id, a number that is unique within the client, and the wall clock in
   * milliseconds when the wait began, separated by colons.
   */
  readonly ticketId: string;
  /** What the ticket may do if the key is free. */
  readonly priority: QueuePriority;
  /**
   * Called when a node has put the ticket in its queue.
   *
   * @param nodeIndex The index of the node.
   * @param place The ticket's position there.
   */
  onEnqueued(nodeIndex: number, place: QueuePosition): void;
}

/** A listener for one client's notifications about released keys. */
export interface ReleaseListener {
  /** The id of the client: the part of its tickets' ids before the first colon. */
  readonly id: string;
  /** Called when a node begins to send notifications; releases before that may have been missed. */
  onSubscribed(nodeIndex: number): void;
  /** Called when a node stops sending notifications, because its connection was lost. */
  onUnsubscribed(nodeIndex: number): void;
  /** Called when a node cannot send notifications, because the server or a proxy does not allow it. */
  onUnsupported(nodeIndex: number, error: Error): void;
  /**
   * Called when a key was released and a ticket of this client is next in the node's queue.
   *
   * @param nodeIndex The index of the node.
   * @param entry The id of the ticket.
   * @param key The released key.
   */
  onReleased(nodeIndex: number, entry: string, key: string): void;
}
