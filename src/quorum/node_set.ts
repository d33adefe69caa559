/**
 * The nodes of a client.
 *
 * @module
 */
import { quorumSize } from "./decision.ts";
import type { QuorumNode } from "./quorum_node.ts";
import type { TimerWheel } from "../time/timer_wheel.ts";

/** The nodes, and what is needed to ask them. */
export interface NodeSet {
  /** The nodes; a node's index names it in requests and bit sets. */
  readonly nodes: readonly QuorumNode[];
  /** How many of them must grant. */
  readonly quorum: number;
  /** The timer wheel of the deadlines. */
  readonly wheel: TimerWheel;
  /** Whether the client of these nodes was closed; missing: it is open. */
  readonly closed?: boolean;
}

/** The nodes of a client, with the quorum of their number. */
export function createNodeSet(wheel: TimerWheel, nodes: readonly QuorumNode[]): NodeSet {
  return { nodes, quorum: quorumSize(nodes.length), wheel };
}
