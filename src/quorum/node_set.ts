/**
 * The nodes of a client.
 *
 * @module
 */
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
  /** Whether the client of these nodes was closed. */
  readonly closed: boolean;
}
