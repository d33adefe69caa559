/**
 * What a client without a listener writes on the console.
 *
 * @module
 */
import { callIsolated, type EventListener, type RedlockEvent } from "./events.ts";
import { lockName, ofNodes } from "./messages.ts";
import { printable } from "./printable.ts";
import { quorumSize } from "./vote.ts";
import type { TimerWheel } from "./time/timer_wheel.ts";

/** How long a node is unreachable before the warning, in milliseconds. */
const UNREACHABLE_MS = 60_000;

/**
 * How many clients may be open before the warning: a process needs one, a test that plays many
 * processes some.
 */
export const CLIENTS_OPEN_MAX = 100;

/** How each warning ends. */
const ADVICE = "Shown once; 'onEvent' replaces these warnings.";

type LostEvent = Extract<RedlockEvent, { type: "lost" }>;

/** A client, or its timer wheel. */
interface Owner {
  /** Whether it was closed: then nothing is written. */
  readonly closed: boolean;
}

/** Those that have warned: each client of a lost lock, and its timer wheel of a node. */
const warned = new WeakSet<Owner>();
/** The owner of what concerns all clients of the process. */
export const ALL_CLIENTS: Owner = { closed: false };

/** A listener for events of nodes; it warns of the first node that is unreachable for a minute. */
export function watchNodes(wheel: TimerWheel, nodeCount: number): EventListener {
  /** Why each node that is unreachable is so. */
  const unreachable = new Map<string, Error>();
  return (event) => {
    if (event.type === "node-connected") unreachable.delete(event.node);
    if (event.type !== "node-disconnected") return;
    const { node, error } = event;
    unreachable.set(node, error);
    wheel.after(UNREACHABLE_MS, () => {
      if (unreachable.get(node) !== error) return; // it was reachable meanwhile
      const left = nodeCount - unreachable.size;
      warnOnce(wheel, unreachableText(node, error, left, nodeCount));
    });
  };
}

/**
 * Warns of a term of a leader that failed: each time, because nobody else reports what its routine
 * threw.
 */
export function warnOfFailedTerm(event: Extract<RedlockEvent, { type: "lead-failed" }>): void {
  const { resources, error, delayMs } = event;
  const next = `The next term begins in ${(delayMs / 1_000).toFixed(1)} s`;
  warn(`@hasp/redlock: A term with ${lockName(resources)} failed. ${next}.`, error);
}

/**
 * The text about as many clients as a program has that creates one for each call and closes none.
 */
export function manyClientsText(): string {
  return text(
    `${CLIENTS_OPEN_MAX} lock clients are open, each with connections of its own`,
    "Create one client for all calls, or close each after its use",
  );
}

/**
 * The text about a node that has been unreachable for a minute.
 *
 * @param node The name of the node: its address without credentials.
 * @param error Why there is no connection.
 * @param left How many nodes are not known to be unreachable.
 * @param count How many nodes there are.
 */
export function unreachableText(node: string, error: Error, left: number, count: number): string {
  const needed = quorumSize(count);
  return text(
    `Node ${printable(node)} has been unreachable for a minute: ${printable(error.message)}`,
    left < needed
      ? "No lock can be acquired meanwhile"
      : `${ofNodes(left, count)} are left, and a lock needs ${needed}`,
  );
}

/** The text about a lock that was lost. */
export function lostText({ resources, cause, heldMs }: LostEvent): string {
  return text(
    `Lost ${lockName(resources)} after ${Math.round(heldMs)} ms: ${printable(cause.message)}`,
    "Its work may have run without the lock",
  );
}

function text(what: string, effect: string): string {
  return `@hasp/redlock: ${what}. ${effect}. ${ADVICE}`;
}

/** Warns, unless the owner has warned before. */
export function warnOnce(owner: Owner, text: string): void {
  if (owner.closed || warned.has(owner)) return;
  warned.add(owner);
  warn(text);
}

function warn(...data: unknown[]): void {
  // a program may have replaced the console
  callIsolated((data) => globalThis.console?.warn(...data), data);
}
