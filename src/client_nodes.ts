/**
 * The nodes that a client is given.
 *
 * @module
 */
import { adaptedNode } from "./quorum/adapted_node.ts";
import type { LockNode } from "./quorum/lock_node.ts";
import { type QuorumNode, quorumNodes } from "./quorum/quorum_node.ts";

/** Most nodes of one client, because each node is one bit of a small integer. */
export const NODES_MAX = 31;

const ATTEMPT = "Cannot create lock client as";

/** The nodes of all clients. */
const taken = new WeakSet<LockNode>();

/**
 * Checks the nodes for a new client.
 *
 * @throws {TypeError} If they are not an array of nodes with different names, or one belongs to another client.
 * @throws {RangeError} If there are too many.
 */
export function checkNodes(nodes: readonly LockNode[]): void {
  if (!Array.isArray(nodes) || nodes.length === 0) {
    throw new TypeError(`${ATTEMPT} 'nodes' must be a non-empty array`);
  }
  if (nodes.length > NODES_MAX) {
    throw new RangeError(
      `${ATTEMPT} 'nodes' must have at most ${NODES_MAX} elements: current value is ${nodes.length}`,
    );
  }
  const names = new Set<string>();
  for (const node of nodes) {
    if (typeof node?.acquire !== "function" || typeof node.name !== "string") {
      throw new TypeError(`${ATTEMPT} 'nodes' must contain only objects that implement LockNode`);
    }
    if (names.has(node.name)) {
      throw new TypeError(`${ATTEMPT} two nodes have the name ${node.name}`);
    }
    if (taken.has(node)) {
      throw new TypeError(`${ATTEMPT} node ${node.name} belongs to another lock client`);
    }
    names.add(node.name);
  }
}

/**
 * Returns the nodes of a new client, as the algorithm asks them. They notify it alone, and are closed with it, so no
 * other client may have them.
 */
export function takeNodes(nodes: readonly LockNode[]): readonly QuorumNode[] {
  return nodes.map((node) => {
    taken.add(node);
    return quorumNodes.get(node) ?? adaptedNode(node);
  });
}

/**
 * Checks that every node supports fencing tokens.
 *
 * @param attempt The call that fails otherwise, for messages: `acquire lock`.
 * @param nodes The nodes.
 * @throws {TypeError} If one does not.
 */
export function checkFencing(attempt: string, nodes: readonly QuorumNode[]): void {
  checkSupport(attempt, nodes, "raiseCounters", "fencing tokens");
}

/**
 * Checks that every node can adopt locks.
 *
 * @throws {TypeError} If one cannot.
 */
export function checkAdopting(nodes: readonly QuorumNode[]): void {
  checkSupport("adopt lock", nodes, "adopt", "'adopt'");
}

/**
 * Checks that every node can list its keys.
 *
 * @throws {TypeError} If one cannot.
 */
export function checkKeys(nodes: readonly QuorumNode[]): void {
  checkSupport("list locks", nodes, "keys", "lists of keys");
}

function checkSupport(
  attempt: string,
  nodes: readonly QuorumNode[],
  method: "raiseCounters" | "adopt" | "keys",
  name: string,
): void {
  const unable = nodes.find((node) => !node[method]);
  if (unable) {
    throw new TypeError(`Cannot ${attempt} as node ${unable.name} does not support ${name}`);
  }
}
