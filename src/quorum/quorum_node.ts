/**
 * How the algorithm asks a node: by callbacks, so that a request allocates no promise for each
 * node. Inside this library only; `lock_node.ts` is the public form of it.
 *
 * @module
 */
import type { KeyState, LockNode, LockRequest } from "./lock_node.ts";
import type { NodeDiagnosis } from "./node_diagnosis.ts";
import type { Detail, Outcome } from "./outcome.ts";
import type { QueueTicket, ReleaseListener } from "./queue_ticket.ts";
import type { TimerWheel } from "../time/timer_wheel.ts";

/**
 * Longest time, in milliseconds, that any question waits for a node's first connection, because a
 * node of somebody else's may never become ready.
 */
export const CONNECTING_MS_MAX = 60_000;

/** Several keys of which a call locks any one, and the one that an attempt is for. */
export interface KeyPool {
  /** The keys. */
  readonly keys: readonly string[];
  /** The index of the attempt's key. */
  readonly place: number;
  /**
   * Which of the keys are free on each node, as far as it has said so: the sum of 2 to the power of
   * their indexes.
   */
  readonly free: (number | undefined)[];
}

/** What only few requests have. */
export interface RequestDetails
  extends Pick<LockRequest, "counterHint" | "counterFloor" | "replaces" | "mode"> {
  /**
   * The caller's ticket for the queue, if it waits. A node with queues puts it in the queue when it
   * denies an acquisition, and takes it out of the queue with a release.
   */
  readonly ticket?: QueueTicket | undefined;
  /**
   * Only of a call for any one of several keys, of which `keys` has one: all of them. A node that
   * denies the attempt can say which of them are free; a ticket stands in the queues of all. A node
   * that does not know this ignores it, and denies: then the call tries one key after the other.
   */
  readonly pool?: KeyPool | undefined;
  /**
   * Only with an acquisition in shared mode: whether it passes those that wait, because its caller
   * holds the lock on other nodes, or has waited behind a call of its client that holds it now.
   */
  readonly entersAtOnce?: boolean;
  /**
   * Only with a release: whether the ticket goes back into the queue with its score, because its
   * caller keeps waiting.
   */
  readonly keepsTicket?: boolean;
  /**
   * For this long after a node may have lost keys, in milliseconds, it answers `QUARANTINED` where
   * it would answer `GRANTED`, or `DENIED` to an acquisition. It answers `QUEUED` all the same.
   * Missing or 0: never.
   */
  readonly guardMs?: number | undefined;
  /**
   * Only with a release: for how long the keys are to live on, in milliseconds from now, by the
   * monotonic clock. As long as that is more than 0, they are not deleted, but get it as their TTL.
   * Missing: 0.
   */
  keptMs?(): number;
}

/**
 * A request to all nodes, and the place for their answers. Each node answers it by calling
 * {@linkcode answer} with its own `nodeIndex`, which is the node's index in the client's array of
 * nodes.
 */
export interface QuorumRequest extends LockRequest, RequestDetails {
  /**
   * Whether the answer still matters. If it is `false`, a node must not send any command that can
   * set a key, because the command that deletes the key may have been sent already.
   */
  readonly wanted: boolean;
  /**
   * Whether it may have been sent and its release was asked for since: then a node must not send it
   * a second time. The first time it is sent all the same, because the requests of one tick take
   * effect in their order. Only what is asked through a `LockNode` of ours has it: a
   * {@linkcode Round} is cancelled instead.
   */
  readonly undone?: boolean;
  /** The encoded command, or what else the first node leaves here for others of its kind. */
  encoded: unknown;
  /**
   * Whether keys may be set on a node, so that a release which does not reach it is repeated.
   */
  mayHaveKeys(nodeIndex: number): boolean;
  /**
   * Answers.
   *
   * @param nodeIndex The index of the node.
   * @param outcome How; see `outcome.ts`, which also says what the detail is.
   * @param detail What comes with it, if anything does.
   * @param atMs When the answer came, by the monotonic clock in milliseconds; now by default.
   */
  answer(nodeIndex: number, outcome: Outcome, detail?: Detail, atMs?: number): void;
}

/** What a request asks a node to do: see the method of this name of {@linkcode LockNode}. */
export type Question = "acquire" | "adopt" | "extend" | "release" | "raiseCounters";

/** What a call may need that not every node supports, as messages name it. */
export type Need = "fencing" | "adopt" | "list" | "restartGuardMs";

/** What is the same in every request whose answers nobody reads. */
export const UNREAD: Omit<QuorumRequest, keyof LockRequest> = {
  wanted: true,
  encoded: undefined,
  mayHaveKeys: () => true,
  answer() {},
};

/** A node as the algorithm asks it. */
export interface QuorumNode {
  /** See {@linkcode LockNode.name}. */
  readonly name: string;
  /**
   * When the node's first attempt to connect was over, by the monotonic clock in milliseconds,
   * whether or not it succeeded; `Infinity` until then. An acquisition waits for that in addition
   * to `nodeTimeoutMs`: as long as the call waits, a minute at most. Extensions and releases do
   * not. Missing: it is always ready.
   */
  readonly readyAtMs?: number;
  /**
   * Whether its client may send a command again by itself. Then a denial does not show that nothing
   * was set: the store may deny the second copy of a command because the first one took the key.
   * Missing: it never does.
   */
  readonly resends?: boolean;
  /** What it does not support. Missing: it supports all. */
  readonly lacks?: { readonly [Name in Need]?: boolean };
  /**
   * Does what {@linkcode LockNode} says of the question, answers by calling `answer` of the request
   * exactly once, during the call or later, and does not throw. It is not asked for what it
   * {@linkcode lacks}.
   */
  ask(question: Question, request: QuorumRequest, nodeIndex: number): void;
  /** See {@linkcode LockNode.inspect}. */
  inspect(key: string): Promise<KeyState | undefined>;
  /** See {@linkcode LockNode.keys}. */
  keys?(prefix: string): AsyncIterable<readonly string[]>;
  /**
   * Starts notifications about released keys, until {@linkcode unsubscribe}; called again, it does
   * nothing. A node with this method puts tickets in its queues once it has called `onSubscribed`.
   * Missing: waiting calls poll this node.
   *
   * @param listener The listener to notify.
   * @param nodeIndex The index of the node.
   */
  subscribe?(listener: ReleaseListener, nodeIndex: number): void;
  /** Ends the notifications that {@linkcode subscribe} started. */
  unsubscribe?(): void;
  /**
   * Takes a ticket out of the queue, and notifies those who may be next without it.
   *
   * @param keys The keys that the ticket waits for.
   * @param ticketId The id of the ticket.
   */
  leaveQueue?(keys: readonly string[], ticketId: string): void;
  /** See {@linkcode LockNode.diagnose}. */
  diagnose?(timeoutMs: number, key: string): Promise<NodeDiagnosis>;
  /** See {@linkcode LockNode.close}. */
  close?(): Promise<void>;
}

/**
 * When a node's time for an answer is over: `timeoutMs` after the question, or after the end of its
 * first connecting.
 *
 * @param node The node.
 * @param sinceMs When it was asked, by the monotonic clock.
 * @param timeoutMs How long it may take, in milliseconds.
 * @param connectingMs How long its first connecting may take, in milliseconds; 0 or less for no
 * more time.
 */
export function answerDueMs(
  node: Pick<QuorumNode, "readyAtMs">,
  sinceMs: number,
  timeoutMs: number,
  connectingMs: number,
): number {
  const { readyAtMs = 0 } = node;
  const readyByMs = sinceMs + Math.min(connectingMs, CONNECTING_MS_MAX);
  // as it looks, it is not ready in time
  if (readyAtMs > readyByMs) return Math.max(readyByMs, sinceMs + timeoutMs);
  return Math.max(readyAtMs, sinceMs) + timeoutMs;
}

/** The nodes, and what is needed to ask them. */
export interface NodeSet {
  /** The nodes; a node's index names it in requests and bit sets. */
  readonly nodes: readonly QuorumNode[];
  /** How many of them must grant. */
  readonly quorum: number;
  /** The timer wheel of the deadlines. */
  readonly wheel: TimerWheel;
  /** Whether the client of these nodes was closed. */
  readonly closed: boolean;
}

/** How many bits of a set of nodes are set. */
export function bitCount(bits: number): number {
  let count = 0;
  for (let rest = bits; rest !== 0; rest &= rest - 1) count++;
  return count;
}

/** For each node of this library in its public form: the same node as the algorithm asks it. */
export const quorumNodes: WeakMap<LockNode, QuorumNode> = new WeakMap();
