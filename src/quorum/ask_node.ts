/**
 * Asking one node for a promise, with a deadline.
 *
 * @module
 */
import { toError } from "../to_error.ts";
import { answerDueMs, CONNECTING_MS_MAX, type QuorumNode } from "./quorum_node.ts";
import type { TimerWheel } from "../time/timer_wheel.ts";

/** What became of one question to one node. */
export interface NodeAnswer<T> {
  readonly outcome: "answered" | "failed" | "timed-out";
  /** From the question to the answer, or to the deadline, in milliseconds. */
  readonly elapsedMs: number;
  /** What it answered. */
  readonly value: T | undefined;
  /** Why it failed. */
  readonly error: Error | undefined;
}

/**
 * Asks one node. Settles in bounded time whatever the node does, and never rejects.
 *
 * @param wheel Where the deadline waits.
 * @param node The node; its first connecting is not counted.
 * @param question Asks it; may throw.
 * @param timeoutMs How long it may take, in milliseconds, from now or from the end of its first
 * connecting.
 */
export function askNode<T>(
  wheel: TimerWheel,
  node: Pick<QuorumNode, "readyAtMs">,
  question: () => Promise<T>,
  timeoutMs: number,
): Promise<NodeAnswer<T>> {
  const sinceMs = wheel.clock.monotonicMs();
  return new Promise((resolve) => {
    let settled = false;
    const settle = (outcome: NodeAnswer<T>["outcome"], value?: T, error?: Error) => {
      if (settled) return;
      settled = true;
      wheel.cancel(deadline);
      wheel.unref();
      resolve({ outcome, elapsedMs: wheel.clock.monotonicMs() - sinceMs, value, error });
    };
    const onClosed = () => settle("failed", undefined, new Error("the lock client was closed"));
    const onDue = () => {
      const dueMs = answerDueMs(node, sinceMs, timeoutMs, CONNECTING_MS_MAX);
      const leftMs = dueMs - wheel.clock.monotonicMs();
      if (leftMs <= 0) settle("timed-out");
      else deadline = wheel.deadline(Math.min(leftMs, timeoutMs), onDue, onClosed);
    };
    wheel.ref();
    let deadline = wheel.deadline(timeoutMs, onDue, onClosed);
    new Promise<T>((answer) => answer(question())).then(
      (value) => settle("answered", value),
      (error) => settle("failed", undefined, toError(error)),
    );
  });
}
