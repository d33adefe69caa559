/**
 * The queue of clients that wait for a key, on one node.
 *
 * It is a sorted set under `hasp:queue:<key>`. A member is a ticket, `<client
 * id>:<number>:<patience>:<end>`. Its score is the time at which its client joined, in
 * microseconds, by a clock that all clients share as well as they can: the median of the nodes'
 * clocks. Every node so gets the same score for the same ticket, and all nodes have the same order.
 * The patience is how long the client is waited for, in milliseconds: its distance decides it. The
 * end is when its wait is over, in seconds since 1970; a wait without end has none.
 *
 * A client subscribes to one channel, `hasp:wake:<client id>`, and queues only while a quorum of
 * nodes can notify it: as the first on a minority it would keep others waiting, and win nothing.
 * What a script publishes there is a ticket, and a sign behind it:
 *
 * - nothing: the key is free, and it is the ticket's turn. Or another has overtaken it: it is to
 *   ask again, and gets its place back.
 * - `+` and a time: the key is free, and it is another's turn. The ticket is to ask after so many
 *   milliseconds. It is the second, the fifth or the last; each waits at least 50 ms longer than
 *   the one before.
 * - `-`: that other took the key, so there is nothing to ask for.
 * - `*`: readers hold the key, and the ticket, a reader's, may enter beside them.
 *
 * A script that frees a key gives the first ticket its turn. It keeps under `hasp:turn:<key>` whose
 * turn it is, and for how long by its own clock. If nobody subscribes to the ticket's channel, the
 * client is gone: the script drops the ticket, and goes on with the next one. A script that finds a
 * turn over drops all who are ahead of its caller. While no ticket was notified, as after the end
 * of a key's TTL, nobody has a turn: the next ask gives it to the first. A ticket for any one of
 * several keys has one turn at a time, so the next key that is free goes to the next ticket.
 *
 * A ticket leaves the queue when its client gets the key, gives up, is gone, or is overtaken. One
 * whose wait is over is gone, too: its host may be stopped or cut off, with open connections. A
 * client that got the key but not the lock is put back with its old score; and so is one that was
 * overtaken because it was slow, if a quorum has agreed on its score.
 *
 * No client can gain much by a wrong clock. A score that is ahead of the node's clock is cut, and a
 * new ticket passes only tickets whose scores are at most {@linkcode QUEUE_LEAD_MS} before that of
 * the last one. Any other new ticket that claims to be older goes to the end. Nodes may then have
 * different scores for it, so its client learns them, and asks with a later one: a client may
 * always move itself back, and so the nodes agree again. From then on the client says that a quorum
 * has agreed, and a node that has not got the ticket takes its score as it is: a node that notifies
 * the client later than the others, or that has lost its queue, so has the same order. A client
 * that was stopped for a second or more makes no such claim, because others may have passed it.
 *
 * The queue's key is made in the script and not given as a key: a user who may access the locked
 * keys alone can still release. If the node refuses a command on the queue, or if something else
 * stands under its key, the node has no queue.
 *
 * @module
 */
import { type QueueMessage, splitTicket } from "../../quorum/queue_ticket.ts";

/** How long a queue lives after the last ask for a place in it, in milliseconds. */
export const QUEUE_TTL_MS = 180_000;
/**
 * How much earlier than the last ticket's a new ticket's score may be, or later than the node's
 * time, in milliseconds.
 */
export const QUEUE_LEAD_MS = 250;
/** What precedes a client's id in the name of its channel. */
export const WAKE_CHANNEL = "hasp:wake:";
/** What follows a ticket in the message that it is another's turn. */
export const WATCH_SUFFIX = "+";
/** What follows it in the message that the other took the key. */
export const TAKEN_SUFFIX = "-";
/** What follows a reader's ticket in the message that it may enter beside others. */
export const BESIDE_SUFFIX = "*";
/** What precedes a key in the name of what says whose turn it is. */
export const TURN_PREFIX = "hasp:turn:";
/** For how long that outlives the turn, in milliseconds: so scripts see that there was one. */
export const TURN_OVER_MS = 3_000;
/** For how long a turn lasts at least and at most, in milliseconds. */
export const PATIENCE_MS_MIN = 50;
export const PATIENCE_MS_MAX = 1_000;

/** What follows the ticket in a message: nothing, `*`, `-`, or `+<how long to wait>`. */
const NEWS = /^(?:([*-])|\+(\d+))?$/u;
/** What they mean. */
const NOTICES = { "*": "beside", "-": "taken" } as const;

/** Reads a message on a client's channel; `undefined` if it is for no ticket. */
export function readMessage(text: string): QueueMessage | undefined {
  const { ticketId, place, rest } = splitTicket(text) ?? {};
  const news = NEWS.exec(rest ?? " ");
  if (!ticketId || !news) return undefined;
  const [, sign, waitMs] = news;
  if (waitMs !== undefined) return { ticketId, place, notice: "watch", waitMs: Number(waitMs) };
  return { ticketId, place, notice: sign ? NOTICES[sign as keyof typeof NOTICES] : "first" };
}

/**
 * The key of the queue for a key.
 *
 * @param key The key that clients wait for.
 */
export function queueOf(key: string): string {
  return `hasp:queue:${key}`;
}
