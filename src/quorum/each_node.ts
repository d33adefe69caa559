/**
 * Calling every node, of which one may throw.
 *
 * @module
 */
import { onRejection, toError } from "../to_error.ts";
import type { LockNode } from "./lock_node.ts";

/**
 * Calls a function with each node. A node may be anybody's, so the function may throw, or return a promise that rejects;
 * the other nodes are called all the same.
 *
 * @param nodes The nodes.
 * @param call Calls a node, and returns what it returned.
 * @param onError Called if that throws or rejects.
 */
export function eachNode(
  nodes: readonly LockNode[],
  call: (node: LockNode, nodeIndex: number) => unknown,
  onError: (nodeIndex: number, error: Error) => void = () => {},
): void {
  nodes.forEach((node, nodeIndex) => {
    try {
      onRejection(call(node, nodeIndex), (error) => onError(nodeIndex, error));
    } catch (error) {
      onError(nodeIndex, toError(error));
    }
  });
}
