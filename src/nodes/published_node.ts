/**
 * A node of this library in its public form.
 *
 * @module
 */
import type { Grant, LockNode, LockRequest } from "../quorum/lock_node.ts";
import { MISSING, VOTE_BY_OUTCOME } from "../quorum/outcome.ts";
import {
  type Question,
  type QuorumNode,
  quorumNodes,
  type QuorumRequest,
  UNREAD,
} from "../quorum/quorum_node.ts";
import { operated } from "../redis_node/operated_node.ts";
import { systemClock } from "../time/clock.ts";

/**
 * Turns the callbacks of a node into promises. A `Redlock` does not use these, but asks the node
 * behind them.
 *
 * @param node A node with every method that is not about queues.
 */
export function publishedNode(node: QuorumNode): Required<LockNode> {
  /** What may set keys and is not answered yet, by its value. */
  const acquiring = new Map<string, { undone?: boolean }>();
  const ask = (question: Question) => {
    return (request: LockRequest) =>
      new Promise<Grant>((resolve, reject) => {
        const { value, ttlMs, shortens } = request;
        const untilMs = systemClock.monotonicMs() + ttlMs;
        const [asks, keptMs] = shortens // a release that has the keys live on
          ? ["release" as const, () => untilMs - systemClock.monotonicMs()]
          : [question];
        const undone = asks === "release" ? acquiring.get(value) : undefined;
        if (undone) undone.undone = true;
        const asked: QuorumRequest = {
          ...request,
          ...UNREAD,
          keptMs,
          answer(_nodeIndex, outcome, detail) {
            if (acquiring.get(value) === asked) acquiring.delete(value);
            if (VOTE_BY_OUTCOME[outcome] === "granted") {
              resolve(typeof detail === "number" ? detail : "granted");
            } else if (VOTE_BY_OUTCOME[outcome] === "denied") {
              resolve(outcome === MISSING ? "missing" : "denied");
            } else reject(detail);
          },
        };
        if (question === "acquire" || question === "adopt") acquiring.set(value, asked);
        node.ask(asks, asked, 0);
      });
  };
  const { keys, diagnose } = operated(node);
  const published: Required<LockNode> = {
    name: node.name,
    acquire: ask("acquire"),
    extend: ask("extend"),
    adopt: ask("adopt"),
    release: ask("release"),
    raiseCounters: ask("raiseCounters"),
    inspect: (key) => node.inspect(key),
    keys: keys!,
    diagnose: diagnose!,
    close: () => node.close!(),
  };
  quorumNodes.set(published, node);
  return published;
}
