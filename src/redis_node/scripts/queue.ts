/**
 * The queue of clients that wait for a key, on one node.
 *
 * It is a sorted set under `hasp:queue:<key>`. A member is a ticket, `<client id>:<number>:<patience>`. Its score is the
 * time at which its client joined, in microseconds, by a clock that all clients share as well as they can: the median of
 * the nodes' clocks. Every node so gets the same score for the same ticket, and all nodes have the same order. The patience
 * is how long the client is waited for, in milliseconds: its distance decides it.
 *
 * A client subscribes to one channel, `hasp:wake:<client id>`. A script that frees a key publishes the first ticket to
 * its client's channel. It also publishes the second, the fifth and the last ticket to theirs, each with a plus sign, how
 * long to wait, and the first ticket: if the first does not take the key in time, one of these does, and drops all who
 * are ahead of it. So the script that takes the key publishes to the same ones, with a minus sign. If nobody subscribes to
 * the first's channel, its client is gone: the script drops the ticket and goes on with the next one.
 *
 * A ticket leaves the queue when its client gets the key, gives up, is gone, or is overtaken. A client that got the key
 * but not the lock is put back with its old score; and so is one that was overtaken because it
 * was slow, and asks within a second: its score is kept under `hasp:late:<ticket>` until then.
 *
 * No client can gain much by a wrong clock. A score that is ahead of the node's clock is cut, and a new ticket passes
 * only tickets whose scores are at most {@linkcode QUEUE_LEAD_MS} before that of the last one. Any other new ticket that
 * claims to be older goes to the end. Nodes may then have different scores for it, so its client learns them, and asks
 * with a later one: a client may always move itself back, and so the nodes agree again. From then on the client says that
 * a quorum has agreed, and a node that has not got the ticket takes its score as it is: a node that notifies the client
 * later than the others, or that has lost its queue, so has the same order. A client that was stopped for a second or more
 * makes no such claim, because others may have passed it.
 *
 * The queue's key is made in the script and not given as a key: a user who may access the locked keys alone can still
 * release. If the node refuses a command on the queue, or if something else stands under its key, the node has no queue.
 *
 * @module
 */
import { type QueueMessage, splitTicket } from "../../quorum/queue_ticket.ts";
import { NOTIFY, PASS } from "./notify.ts";
import { lua, type Script } from "./script.ts";

/** How long a queue lives after the last ask for a place in it, in milliseconds. */
export const QUEUE_TTL_MS = 180_000;
/** How much earlier than the last ticket's a new ticket's score may be, or later than the node's time, in milliseconds. */
export const QUEUE_LEAD_MS = 250;
/** What stands before a client's id in the name of its channel. */
export const WAKE_CHANNEL = "hasp:wake:";
/** What follows a second ticket in the message that the first was notified, and that it has the key. */
export const NOTIFIED_SUFFIX = "+";
/** See {@linkcode NOTIFIED_SUFFIX}. */
export const TAKEN_SUFFIX = "-";
/** What precedes a ticket that was overtaken in the name under which its score is kept for a second. */
export const LATE_PREFIX = "hasp:late:";
/** For how long it is kept, in milliseconds. */
export const LATE_MS = 1_000;
/** For how long the first is waited for at least and at most, in milliseconds. */
export const PATIENCE_MS_MIN = 50;
export const PATIENCE_MS_MAX = 1_000;

/** What follows the ticket in a message: nothing, `-`, or `+<patience>:<first>`. */
const NEWS = /^(?:(-)|\+(\d+):(.*))?$/su;

/** Reads a message on a client's channel; `undefined` if it is for no ticket. */
export function readMessage(text: string): QueueMessage | undefined {
  const { ticketId, place, rest } = splitTicket(text) ?? {};
  const news = NEWS.exec(rest ?? " ");
  if (!ticketId || !news) return undefined;
  const [, taken, patienceMs, first] = news;
  if (first === undefined) return { ticketId, place, notice: taken ? "taken" : "first" };
  const notified = { ticketId: first, patienceMs: Number(patienceMs) };
  return { ticketId, place, notice: "next", first: notified };
}

/**
 * The key of the queue for a key.
 *
 * @param key The key that clients wait for.
 */
export function queueOf(key: string): string {
  return `hasp:queue:${key}`;
}

/** `KEYS` resources; `ARGV` ticket: leaves the queues, and passes a notification on that may have come; 1. */
export const LEAVE: Script = {
  source: /* @__PURE__ */ lua(
    NOTIFY,
    PASS,
    `for _, key in ipairs(KEYS) do
  if redis.call('ZREM', 'hasp:queue:' .. key, ARGV[1]) == 1 then pass(key) end
end
return 1
`,
  ),
  sha1: "c79eddfa9bad13584ba2ae739f744b73c369ce4b",
};

/**
 * `KEYS` resources; `ARGV` value, and, if the lock was waited for, the ticket; and, if its client waits on, its score:
 * deletes the keys that hold the value. Takes the ticket out of the queues, or puts it back where a key held the value.
 * Notifies the next waiter of each key that is free, but not the ticket that is put back: it has just asked. Returns 0
 * if a key did not hold the value, 1 if all did, 3 if all did and a waiter was notified.
 */
export const RELEASE_QUEUED: Script = {
  source: /* @__PURE__ */ lua(
    NOTIFY,
    `local all, waiting, failure = true, false, nil
local ticket, score = ARGV[2], ARGV[3]
for _, key in ipairs(KEYS) do
  local queue = 'hasp:queue:' .. key
  local value = redis.pcall('GET', key)
  if value == ARGV[1] then
    redis.call('DEL', key)
  else
    all = false
    if type(value) == 'table' then failure = value end
  end
  if score then
    if value == ARGV[1] and type(redis.pcall('ZADD', queue, 'NX', score, ticket)) == 'number' then
      redis.pcall('PEXPIRE', queue, 180000)
    end
  elseif ticket then
    redis.pcall('ZREM', queue, ticket)
  end
  if value == ARGV[1] or not value then
    waiting = notify(key, score and ticket) or waiting
  end
end
return failure or (all and (waiting and 3 or 1) or 0)
`,
  ),
  sha1: "e0d8dd9c636257d65f5c34b984d75b6fc3a349a0",
};
