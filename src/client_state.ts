/**
 * The state that all calls of one client share.
 *
 * @module
 */
import type { EventListener } from "./events.ts";
import { Cooldowns } from "./lock/cooldowns.ts";
import type { QuorumNode } from "./quorum/quorum_node.ts";
import { createNodeSet, type NodeSet } from "./quorum/node_set.ts";
import { settledWithin } from "./time/settled_within.ts";
import type { TimerWheel } from "./time/timer_wheel.ts";
import { LocalQueues } from "./waiting/local_queues.ts";

/** Longest wait for calls to end, and for a node's own `close`, in milliseconds; those of ours take half a second. */
const CLOSE_TIMEOUT_MS = 2_000;

/** The calls of one client that may still send something. */
export class OpenCalls {
  #count = 0;
  #onEnded: (() => void) | undefined = undefined;

  /** A call begins: before its first byte. */
  begin(): void {
    this.#count++;
  }

  /** A call has its lock, or has sent everything that undoes what it sent. */
  end(): void {
    if (--this.#count === 0) this.#onEnded?.();
  }

  /** Resolves when none is open; in another microtask at the earliest. */
  ended(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#count === 0) resolve();
      else this.#onEnded = resolve;
    });
  }
}

/** What all calls of one client share. */
export interface ClientState extends NodeSet {
  /** The calls and locks of this client, by their keys. */
  readonly localQueues: LocalQueues;
  /** The calls that have begun and not ended. */
  readonly openCalls: OpenCalls;
  /** The resources that it does not acquire for a while. */
  readonly cooldowns: Cooldowns;
  /** Which of several keys a call had last, by the name of all. */
  readonly lastPlaces: Map<string, number>;
  /** Whether the client was closed. */
  closed: boolean;
}

/**
 * Creates the state of a new client.
 *
 * @param wheel The timer wheel of its deadlines.
 * @param nodes The nodes.
 * @param onEvent Called for nodes that send no notifications of releases.
 */
export function createClientState(
  wheel: TimerWheel,
  nodes: readonly QuorumNode[],
  onEvent?: EventListener,
): ClientState {
  const nodeSet = createNodeSet(wheel, nodes);
  return {
    ...nodeSet,
    localQueues: new LocalQueues(nodeSet, onEvent),
    openCalls: new OpenCalls(),
    cooldowns: new Cooldowns(wheel.clock),
    lastPlaces: new Map(),
    closed: false,
  };
}

/** Ends the calls and locks of a client, then its nodes; in bounded time. */
export async function closeClient(client: ClientState): Promise<void> {
  const { nodes, wheel, localQueues, openCalls } = client;
  client.closed = true;
  localQueues.close();
  wheel.ref();
  wheel.announceClose();
  // Every call ends now, and sends what undoes its requests before the nodes close.
  // mutation: nodes-closed-before-calls-end
  await settledWithin(wheel, openCalls.ended(), CLOSE_TIMEOUT_MS);
  await Promise.all(nodes.map((node) => {
    const close = async () => await node.close?.();
    return settledWithin(wheel, close(), CLOSE_TIMEOUT_MS);
  }));
  wheel.unref();
  wheel.close();
}
