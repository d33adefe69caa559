/**
 * Warnings on the console, for clients without a listener. What writes them is loaded with the first one.
 *
 * @module
 */
import type { EventListener } from "./events.ts";
import { Part } from "./part.ts";
import type { TimerWheel } from "./time/timer_wheel.ts";

/** How long a node is unreachable before the warning, in milliseconds. */
const UNREACHABLE_MS = 60_000;

/** What writes the warnings. */
export const warning = /* @__PURE__ */ new Part("warnings", () => import("./console_warnings.ts"));

/** Has a warning written. Nothing happens if that fails, because it must not change what happens to the lock. */
export function warn(write: (part: NonNullable<typeof warning.loaded>) => void): void {
  warning.load().then(write).catch(() => {});
}

/** A listener for events of nodes; it warns of a node that is unreachable for a minute. */
export function watchNodes(wheel: TimerWheel, nodeCount: number): EventListener {
  /** Why each node that is unreachable is so. */
  const unreachable = new Map<string, Error>();
  return (event) => {
    if (event.type === "node-connected") unreachable.delete(event.node);
    if (event.type !== "node-disconnected") return;
    const { node, error } = event;
    unreachable.set(node, error);
    wheel.after(UNREACHABLE_MS, () => {
      if (unreachable.get(node) !== error) return; // it was reachable meanwhile
      const left = nodeCount - unreachable.size;
      warn(({ warnOfNode }) => warnOfNode(wheel, { node, error, left, nodeCount }));
    });
  };
}
