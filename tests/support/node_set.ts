/** Nodes for tests of what is below a client. */
import { quorumSize } from "../../src/vote.ts";
import type { NodeSet, QuorumNode } from "../../src/quorum/quorum_node.ts";
import type { TimerWheel } from "../../src/time/timer_wheel.ts";

/** Some nodes, with the quorum of their number. */
export function createNodeSet(wheel: TimerWheel, nodes: readonly QuorumNode[]): NodeSet {
  return { nodes, quorum: quorumSize(nodes.length), wheel, closed: false };
}
