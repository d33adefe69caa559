/**
 * A ticket in the queues of all clients for one lock, and what the nodes say of it.
 *
 * @module
 */
import {
  PATIENCE_MS_MAX,
  PATIENCE_MS_MIN,
  POOL_SUFFIX,
  QUEUE_LEAD_MS,
} from "../quorum/queue_ticket.ts";
import type { QueuePosition, QueueTicket } from "../quorum/queue_ticket.ts";
import type { NodeSet } from "../quorum/quorum_node.ts";
import type { Round } from "../quorum/round.ts";
import type { ReleaseNotifications } from "./release_notifications.ts";

/**
 * For how many round trips others wait for this client when it is the first, beside the least
 * patience.
 */
const PATIENCE_FACTOR = 4;
/**
 * What precedes the number of a reader's ticket; other numbers are lower-case letters and digits.
 */
const READER = "R";
/** How much later than its caller's wait a ticket ends at least, in milliseconds. */
const END_LATER_MS = 500;
/** A ticket says no later end, in seconds: scripts read no number with an exponent. */
const END_S_MAX = 1e15;

/** What a ticket is for. */
export interface Wanted {
  /** The keys. */
  readonly keys: readonly string[];
  /** Truthy if any one of them will do. */
  readonly pool: unknown;
  /** Set if it is for a lock in shared mode. */
  readonly mode: "shared" | undefined;
}

/** Where a ticket stands, by what a quorum of nodes say together. */
export interface Standing {
  /** When a quorum should have nothing in the way, from now, in milliseconds. */
  readonly freeInMs: number;
  /**
   * Of the turns of others that must be over before a quorum may grant, the one that ends last.
   * `undefined`: no node says that it is another's turn.
   */
  readonly turn: Pick<QueuePosition, "turnMs" | "turnPlace"> | undefined;
  /** How many tickets are ahead of it, where most are. */
  readonly ahead: number;
  /** Whether it is the last in a queue. */
  readonly isLast: boolean;
  /** Whether a client of another library holds a key. */
  readonly foreign: boolean;
}

/** What it knows of one node. */
class NodeRecord {
  /** Whether the ticket may be in the node's queues. */
  mayBeIn = false;
  /**
   * Whether the node was sent the ticket when that last asked. Unset if it then stops notifying
   * this client, so that the ticket asks to join again once the node can; but not while a quorum of
   * others has the ticket, which is enough.
   */
  asked = false;
  /**
   * Where the ticket stands there; `undefined` unless the node has said so, and has been able to
   * notify it since.
   */
  position: QueuePosition | undefined = undefined;
}

/** The ticket of one call after another, until its client has the lock. */
export class Ticket implements QueueTicket {
  /** See {@linkcode QueueTicket}; 0 until the ticket is first sent. */
  score = 0;
  agreed = false;
  /** How long its turn lasts, in milliseconds; set when the ticket is first sent. */
  patienceMs = 0;
  /** Its id without the patience and the end, by which its client is notified of it. */
  readonly name: string;
  readonly keys: readonly string[];
  readonly notifications: ReleaseNotifications;
  readonly nodeSet: NodeSet;
  readonly #suffix: string;
  /** When the wait of its caller ends, in seconds since 1970 by the shared clock. */
  #endS = 0;
  /** When it was first sent, by the monotonic clock; `-Infinity` once a quorum has answered. */
  #firstSentMs = 0;
  /** When a node last said where it stands, by the monotonic clock. */
  #positionsMs = 0;
  #records: readonly NodeRecord[];

  constructor(notifications: ReleaseNotifications, nodeSet: NodeSet, { keys, pool, mode }: Wanted) {
    const number = notifications.newNumber().toString(36);
    this.name = `${notifications.id}:${mode ? READER : ""}${number}`;
    this.notifications = notifications;
    this.nodeSet = nodeSet;
    this.keys = keys;
    this.#suffix = pool ? POOL_SUFFIX : "";
    this.#records = nodeSet.nodes.map(() => new NodeRecord());
  }

  get ticketId(): string {
    const end = this.#endS > END_S_MAX ? "" : `:${this.#endS}`;
    return `${this.name}:${this.patienceMs}${end}${this.#suffix}`;
  }

  /**
   * Whether a quorum of nodes has the ticket in their queues and can notify it: then no release is
   * missed.
   */
  get isQueued(): boolean {
    return this.#positions.length >= this.nodeSet.quorum;
  }

  /**
   * Whether it should ask to join on more nodes: they can notify it now, a quorum of all can, and
   * there are no others to wait for.
   */
  get canJoin(): boolean {
    const { notifications, notifications: { hasQuorum, isSubscribing } } = this;
    return hasQuorum && !isSubscribing &&
      this.#records.some(({ asked }, nodeIndex) => !asked && notifications.isSubscribed(nodeIndex));
  }

  /**
   * The ticket is about to be sent. Returns whether it is: while fewer than a quorum of nodes can
   * notify it, it leaves the queues instead. As the first on a minority, it would have others wait
   * for it, and its caller could win nothing by that.
   *
   * @param leftMs How long its caller waits yet, in milliseconds. If that is longer than what the
   * nodes know, mostly because it has another caller now, it gets another id; the position is the
   * same if the score is {@linkcode agreed}.
   */
  prepare(nowMs: number, leftMs: number): boolean {
    const { clock, hasQuorum } = this.notifications;
    if (!hasQuorum) {
      this.leave();
      this.#records = this.nodeSet.nodes.map(() => new NodeRecord());
      return false;
    }
    // mutation: stopped-client-keeps-its-place
    // others may have passed it
    if (this.nodeSet.wheel.stoppedUntilMs(nowMs) > this.#positionsMs) this.agreed = false;
    if (this.score === 0) {
      this.#firstSentMs = nowMs;
      this.score = Math.round(clock.at(nowMs) * 1_000);
      const patienceMs = Math.round(PATIENCE_MS_MIN + PATIENCE_FACTOR * clock.distanceMs);
      this.patienceMs = Math.min(patienceMs, PATIENCE_MS_MAX);
    }
    const endMs = clock.at(nowMs) + leftMs;
    if (this.#endS * 1_000 < endMs) {
      this.leave(); // with the id that nodes know, if they know one
      this.#endS = Math.ceil((endMs + END_LATER_MS) / 1_000);
    }
    this.#records.forEach((record, nodeIndex) => {
      record.asked = this.notifications.isSubscribed(nodeIndex);
      record.mayBeIn ||= record.asked;
    });
    return true;
  }

  onEnqueued(nodeIndex: number, position: QueuePosition, sentMs: number, receivedMs: number): void {
    this.notifications.clock.note(nodeIndex, { timeMs: position.timeMs, sentMs, receivedMs });
    if (this.notifications.isSubscribed(nodeIndex)) this.#records[nodeIndex].position = position;
    this.#positionsMs = receivedMs;
  }

  onPutBack(nodeIndex: number): void {
    this.#records[nodeIndex].mayBeIn = true;
  }

  /** A node that cannot notify the ticket may drop it. */
  onSubscriptionChange(): void {
    const { notifications } = this;
    const silent = this.#records.filter((_, nodeIndex) => !notifications.isSubscribed(nodeIndex));
    for (const record of silent) record.position = undefined;
    if (!this.isQueued) silent.forEach((record) => record.asked = false);
  }

  /**
   * Learns from an attempt where it stands, once a quorum of nodes has granted it or put the ticket
   * in their queues; and agrees with them on a score. If theirs differ, it takes a later one that a
   * quorum of them will have next time: else each contender may be the first on some nodes and on
   * no quorum.
   */
  learn(attempt: Round): Standing | undefined {
    const { granted, pending } = attempt;
    const { quorum } = this.nodeSet;
    const positions = this.#records.flatMap(({ position }, nodeIndex) => {
      return position && attempt.queuedBy(nodeIndex) ? position : [];
    });
    if (positions.length + granted < quorum) return undefined;
    // Nodes that granted have put the ticket back with its own score, and have nothing in the way.
    const scores = sorted(positions.map(({ score }) => score), Array(granted).fill(this.score));
    this.#agree(scores[quorum - 1]);
    const timesMs = sorted(positions.map((one) => one.remainingMs), Array(granted).fill(0));
    // The first to end is at the front. As many as a quorum lacks must be over, of which the last
    // counts; if fewer have begun, other nodes deny for another reason, and the last of all counts.
    const turns = positions.filter(({ turnMs }) => turnMs > 0)
      .sort((one, other) => one.turnMs - other.turnMs);
    // mutation: last-asks-ever-more-rarely
    const isLast = positions.some(({ ahead, length }) => ahead === length - 1);
    return {
      // those that have not answered may have nothing in the way
      freeInMs: timesMs[quorum - 1 - pending],
      turn: turns[quorum - granted - 1] ?? turns.at(-1),
      ahead: Math.max(0, ...positions.map(({ ahead }) => ahead)),
      isLast,
      foreign: positions.some(({ foreign }) => foreign),
    };
  }

  /**
   * A quorum of nodes has the ticket with this score or an earlier one. The first time, now that
   * their clocks are known, a score that was too early is replaced by a later one, because from now
   * on other queues take it as it is. Only the first time: clocks that are set ahead after that do
   * not cost it its position.
   */
  #agree(score: number): void {
    // mutation: scores-stay-apart
    this.score = Math.max(this.score, score);
    const leastMs = this.notifications.clock.at(this.#firstSentMs) - QUEUE_LEAD_MS;
    this.score = Math.max(this.score, Math.round(leastMs * 1_000));
    this.#firstSentMs = -Infinity;
    this.agreed = true;
  }

  /**
   * Takes the ticket out of the queues.
   *
   * @param won The round that won the lock, if one did. Nodes that were sent the ticket with it and
   * granted it have taken that out; one that has not answered yet will do so, or will deny, and is
   * asked then.
   */
  leave(won?: Round): void {
    const leaveNode = (nodeIndex: number) =>
      this.nodeSet.nodes[nodeIndex].leaveQueue?.(this.keys, this.ticketId);
    this.#records.forEach(({ mayBeIn, asked }, nodeIndex) => {
      const isTakenOut = asked && won && ["granted", undefined].includes(won.voteOf(nodeIndex));
      if (mayBeIn && !isTakenOut) leaveNode(nodeIndex);
    });
    if (won) won.onDenied = leaveNode;
  }

  // What errors say of it

  /**
   * How many clients are in the queue on the node with most, this one included; `undefined` if no
   * node has reported it.
   */
  get queueLength(): number | undefined {
    return sorted(this.#positions.map(({ length }) => length)).at(-1);
  }

  /** The value of the keys in the way, if a node has reported it. */
  get holderValue(): string | undefined {
    return this.#positions.find(({ value }) => value)?.value;
  }

  /**
   * How long the keys live that are in the way, in milliseconds, as the last answers said;
   * `undefined` if they did not.
   */
  get remainingMs(): number | undefined {
    const ageMs = this.nodeSet.wheel.clock.monotonicMs() - this.#positionsMs;
    const livesMs = this.#positions.map(({ remainingMs }) => remainingMs);
    const remainingMs = Math.max(...livesMs) - ageMs;
    return remainingMs > 0 ? remainingMs : undefined;
  }

  /** Where it stands, on the nodes that have said so and can notify it. */
  get #positions(): QueuePosition[] {
    return this.#records.flatMap(({ position }) => position ?? []);
  }
}

/** All these numbers, in ascending order. */
function sorted(...numbers: readonly number[][]): number[] {
  return numbers.flat().sort((one, other) => one - other);
}
