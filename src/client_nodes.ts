/**
 * The nodes that a client is given.
 *
 * @module
 */
import { adaptedNode } from "./quorum/adapted_node.ts";
import type { LockNode } from "./quorum/lock_node.ts";
import { type QuorumNode, quorumNodes } from "./quorum/quorum_node.ts";
import { rangeError } from "./validate.ts";

/** Most nodes of one client, because each node is one bit of a small integer. */
export const NODES_MAX = 31;

const ATTEMPT = "Cannot create lock client as";

/** What each node must have besides. */
const METHODS = ["extend", "release", "inspect"] as const;

/** The nodes of all clients. */
const taken = new WeakSet<LockNode>();

/**
 * Checks that a new client is given a number of nodes, or of their addresses, that it can have.
 *
 * @param name The parameter.
 * @param given What the caller passed.
 * @throws {TypeError} If it is no array, or empty.
 * @throws {RangeError} If there are too many.
 */
export function checkNodeCount(name: string, given: readonly unknown[]): void {
  if (!Array.isArray(given) || given.length === 0) {
    throw new TypeError(`${ATTEMPT} '${name}' must be a non-empty array`);
  }
  if (given.length <= NODES_MAX) return;
  const rule = `must have at most ${NODES_MAX} elements`;
  throw rangeError("create lock client", name, rule, given.length);
}

/**
 * Checks the nodes for a new client.
 *
 * @throws {TypeError} If they are not an array of nodes with different names, or one belongs to
 * another client.
 * @throws {RangeError} If there are too many.
 */
export function checkNodes(nodes: readonly LockNode[]): void {
  checkNodeCount("nodes", nodes);
  const names = new Set<string>();
  for (const node of nodes) {
    if (typeof node?.acquire !== "function" || typeof node.name !== "string") {
      throw new TypeError(
        `${ATTEMPT} 'nodes' must contain only objects that implement LockNode: createRedlock() takes addresses, and commandNode() a client`,
      );
    }
    const missing = METHODS.find((method) => typeof node[method] !== "function");
    if (missing) throw new TypeError(`${ATTEMPT} node ${node.name} has no method '${missing}'`);
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
 * What a node may be unable to do, by the method that is missing then: an option or a call. All
 * nodes of this library have queues, and guard.
 */
const ABILITIES = {
  raiseCounters: "fencing",
  adopt: "adopt",
  keys: "list",
  leaveQueue: "restartGuardMs",
};
type Ability = keyof typeof ABILITIES;

/**
 * Checks that every node is able to do something.
 *
 * @param attempt The call that fails otherwise, for messages: `acquire lock`.
 * @param nodes The nodes.
 * @param method The method that each must have.
 * @throws {TypeError} If one does not have it.
 */
export function checkAbility(
  attempt: string,
  nodes: readonly Pick<QuorumNode, "name" | Ability>[],
  method: Ability,
): void {
  const unable = nodes.find((node) => !node[method]);
  if (!unable) return;
  throw new TypeError(
    `Cannot ${attempt} as node ${unable.name} does not support '${ABILITIES[method]}'`,
  );
}
