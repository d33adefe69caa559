/**
 * The nodes that a client is given.
 *
 * @module
 */
import { adaptedNode } from "./quorum/adapted_node.ts";
import type { LockNode } from "./quorum/lock_node.ts";
import { type Need, type QuorumNode, quorumNodes } from "./quorum/quorum_node.ts";
import { formError, rangeError, typeError } from "./validate.ts";

/** Most nodes of one client, because each node is one bit of a small integer. */
export const NODES_MAX = 31;

/** What fails if something is wrong with the nodes, for messages. */
export const ACTION = "create lock client";

/** What each node must have besides. */
const METHODS = ["extend", "release", "inspect"] as const;

/** The nodes of all clients. */
const taken = new WeakSet<LockNode>();

/**
 * Checks that a new client is given no more nodes, or addresses of them, than it can have.
 *
 * @param name The parameter.
 * @throws {RangeError} If there are too many.
 */
export function checkNodeCount(name: string, count: number): void {
  if (count <= NODES_MAX) return;
  throw rangeError(ACTION, name, `must have at most ${NODES_MAX} elements`, count);
}

/**
 * Checks the nodes for a new client.
 *
 * @throws {TypeError} If they are not an array of nodes with different names, or one belongs to
 * another client.
 * @throws {RangeError} If there are too many.
 */
export function checkNodes(nodes: readonly LockNode[]): void {
  if (!Array.isArray(nodes) || nodes.length === 0 || !nodes.every(isNode)) {
    const rule = "must be a non-empty array of objects that implement LockNode";
    const hint = "; createRedlock() takes addresses, and commandNode() a client";
    throw formError(ACTION, "nodes", rule, nodes, hint);
  }
  checkNodeCount("nodes", nodes.length);
  const names = new Set<string>();
  for (const node of nodes) {
    const missing = METHODS.find((method) => typeof node[method] !== "function");
    if (missing) throw typeError(ACTION, `node ${node.name} has no method '${missing}'`);
    if (names.has(node.name)) throw typeError(ACTION, `two nodes have the name ${node.name}`);
    if (taken.has(node)) {
      throw typeError(ACTION, `node ${node.name} belongs to another lock client`);
    }
    names.add(node.name);
  }
}

function isNode(node: LockNode | undefined): boolean {
  return typeof node?.acquire === "function" && typeof node.name === "string";
}

/**
 * Returns the nodes of a new client, as the algorithm asks them. They notify it alone, and are
 * closed with it, so no other client may have them.
 */
export function takeNodes(nodes: readonly LockNode[]): readonly QuorumNode[] {
  return nodes.map((node) => {
    taken.add(node);
    return quorumNodes.get(node) ?? adaptedNode(node);
  });
}

/**
 * Checks that every node supports what a call needs.
 *
 * @param action What fails otherwise, for messages: `acquire lock`.
 * @param nodes The nodes.
 * @param needs What the call needs, such as its settings: what is neither `false` nor 0.
 * @throws {TypeError} If one does not.
 */
export function checkAbilities(
  action: string,
  nodes: readonly Pick<QuorumNode, "name" | "lacks">[],
  needs: { readonly [Name in Need]?: boolean | number },
): void {
  for (let index = 0; index < nodes.length; index++) { // an iterator takes more memory
    const { name, lacks } = nodes[index];
    for (const need in lacks) {
      if (!lacks[need as Need] || !needs[need as Need]) continue;
      throw typeError(action, `node ${name} does not support '${need}'`);
    }
  }
}
