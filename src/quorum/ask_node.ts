/**
 * Asking one node what it answers by a promise, and waiting for it no longer than is allowed.
 *
 * @module
 */
import { toError } from "../errors.ts";
import type { LockNode } from "./lock_node.ts";
import type { TimerWheel } from "../time/timer_wheel.ts";

/** What became of one question to one node. */
export interface NodeAnswer<T> {
  readonly outcome: "answered" | "failed" | "timed-out";
  /** From the question to the answer, in milliseconds, or to the end of waiting. */
  readonly elapsedMs: number;
  /** What it answered. */
  readonly value: T | undefined;
  /** Why it failed. */
  readonly error: Error | undefined;
}

/**
 * Asks one node; never rejects.
 *
 * @param wheel Where the deadline waits.
 * @param node Who is asked.
 * @param question Asks it.
 * @param timeoutMs How long it may take, in milliseconds, from now or from the end of its first connecting.
 */
export function askNode<T>(
  wheel: TimerWheel,
  node: LockNode,
  question: () => Promise<T>,
  timeoutMs: number,
): Promise<NodeAnswer<T>> {
  const startMs = wheel.clock.monotonicMs();
  return new Promise((resolve) => {
    let settled = false;
    const settle = (outcome: NodeAnswer<T>["outcome"], value?: T, error?: Error) => {
      if (settled) return;
      settled = true;
      wheel.cancel(deadline);
      wheel.unref();
      resolve({ outcome, elapsedMs: wheel.clock.monotonicMs() - startMs, value, error });
    };
    const onClosed = () => settle("failed", undefined, new Error("the lock client was closed"));
    const onDue = () => {
      const dueMs = Math.max(startMs, node.readyAtMs ?? 0) + timeoutMs;
      const leftMs = Math.min(dueMs - wheel.clock.monotonicMs(), timeoutMs);
      if (leftMs <= 0) settle("timed-out");
      else deadline = wheel.deadline(leftMs, onDue, onClosed);
    };
    wheel.ref();
    let deadline = wheel.deadline(timeoutMs, onDue, onClosed);
    new Promise<T>((answer) => answer(question())).then(
      (value) => settle("answered", value),
      (error) => settle("failed", undefined, toError(error)),
    );
  });
}
