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
  /** Who wants what in this process. */
  readonly localQueues: LocalQueues;
  /** What it does not take again for a while. */
  readonly cooldowns: Cooldowns;
  /** Whether the client was closed. */
  closed: boolean;
}

/**
 * What all calls of one client share, at its beginning.
 *
 * @param wheel Where deadlines wait.
 * @param nodes Who is asked.
 * @param onEvent Told of nodes that refuse to tell of releases.
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
