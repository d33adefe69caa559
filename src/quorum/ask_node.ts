/**
 * Asking one node for a promise, with a deadline.
 *
 * @module
 */
import { toError } from "../to_error.ts";
import { settledWithin } from "../time/pause.ts";
import { answerDueMs, CONNECTING_MS_MAX, type NodeSet, type QuorumNode } from "./quorum_node.ts";

/** What became of one question to one node. */
export interface NodeAnswer<T> {
  readonly outcome: "answered" | "failed" | "timed-out";
  /** From the question to the answer, or to the deadline, in milliseconds. */
  readonly elapsedMs: number;
  /** What it answered. */
  readonly value?: T;
  /** Why it failed. */
  readonly error?: Error;
}

/**
 * Asks one node. Settles in bounded time whatever the node does, and never rejects.
 *
 * @param nodeSet The nodes; their end ends the question.
 * @param node The node; its first connecting is not counted.
 * @param question Asks it; may throw.
 * @param timeoutMs How long it may take, in milliseconds, from now or from the end of its first
 * connecting.
 */
export async function askNode<T>(
  nodeSet: NodeSet,
  node: Pick<QuorumNode, "readyAtMs">,
  question: () => Promise<T>,
  timeoutMs: number,
): Promise<NodeAnswer<T>> {
  const { wheel, wheel: { clock } } = nodeSet;
  const sinceMs = clock.monotonicMs();
  let answer: Omit<NodeAnswer<T>, "elapsedMs"> = { outcome: "timed-out" };
  const answered = new Promise<T>((resolve) => resolve(question())).then(
    (value) => answer = { outcome: "answered", value },
    (error) => answer = { outcome: "failed", error: toError(error) },
  );
  let leftMs = timeoutMs; // grows when its first connection is made
  while (answer.outcome === "timed-out" && leftMs > 0 && !nodeSet.closed) {
    await settledWithin(wheel, answered, Math.min(leftMs, timeoutMs));
    leftMs = answerDueMs(node, sinceMs, timeoutMs, CONNECTING_MS_MAX) - clock.monotonicMs();
  }
  if (answer.outcome === "timed-out" && nodeSet.closed) {
    answer = { outcome: "failed", error: new Error("the lock client was closed") };
  }
  return { ...answer, elapsedMs: clock.monotonicMs() - sinceMs };
}
