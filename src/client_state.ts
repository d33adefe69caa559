/**
 * The state that all calls of one client share.
 *
 * @module
 */
import type { EventListener } from "./events.ts";
import { Cooldowns } from "./lock/cooldowns.ts";
import type { LockNode } from "./quorum/lock_node.ts";
import { createNodeSet, type NodeSet } from "./quorum/round.ts";
import type { TimerWheel } from "./time/timer_wheel.ts";
import { LocalQueues } from "./waiting/local_queues.ts";

/** What all calls of one client share. */
export interface ClientState extends NodeSet {
  /** The calls and locks of this client, by their keys. */
  readonly localQueues: LocalQueues;
  /** The resources that it does not acquire for a while. */
  readonly cooldowns: Cooldowns;
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
  nodes: readonly LockNode[],
  onEvent?: EventListener,
): ClientState {
  const nodeSet = createNodeSet(wheel, nodes);
  const cooldowns = new Cooldowns(wheel.clock);
  return {
    ...nodeSet,
    localQueues: new LocalQueues(nodeSet, onEvent),
    cooldowns,
    closed: false,
  };
}
