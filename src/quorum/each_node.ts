/**
 * Calling every node, of which one may throw.
 *
 * @module
 */
import { toError } from "../errors.ts";
import type { LockNode } from "./lock_node.ts";

/**
 * Calls a function with each node. A node may be anybody's, so the function may throw; the other nodes are called all the
 * same.
 *
 * @param nodes The nodes.
 * @param call Calls a node.
 * @param onError Called if that throws.
 */
export function eachNode(
  nodes: readonly LockNode[],
  call: (node: LockNode, nodeIndex: number) => void,
  onError?: (nodeIndex: number, error: Error) => void,
): void {
  nodes.forEach((node, nodeIndex) => {
    try {
      call(node, nodeIndex);
    } catch (error) {
      onError?.(nodeIndex, toError(error));
    }
  });
}
