/**
 * A node of somebody else's, as the algorithm asks it.
 *
 * @module
 */
import { toError } from "../to_error.ts";
import type { Grant, LockNode } from "./lock_node.ts";
import { DENIED, FAILED, GRANTED, isCount, MISSING, type Outcome } from "./outcome.ts";
import type { Question, QuorumNode, QuorumRequest } from "./quorum_node.ts";

/** What the words that a node answers with mean. */
const OUTCOMES: ReadonlyMap<Grant, Outcome> = /* @__PURE__ */ new Map([
  ["granted", GRANTED],
  ["denied", DENIED],
  ["missing", MISSING],
]);

/**
 * Turns the promises of a node into callbacks. Whatever it does, returns or throws becomes its
 * vote.
 */
export function adaptedNode(node: LockNode): QuorumNode {
  const { name } = node;
  function ask(question: Question, request: QuorumRequest, nodeIndex: number): void {
    // A node may change the keys that it is given.
    const { keys: [...keys], value, counterHint, counterFloor, replaces, mode } = request;
    const keptMs = Math.ceil(request.keptMs?.() ?? 0);
    const shortens = keptMs > 0 || undefined; // a release that has the keys live on
    const [method, ttlMs] = shortens ? ["extend", keptMs] as const : [question, request.ttlMs];
    // Called at once, because requests take effect in the order of the calls.
    new Promise<Grant>((resolve) => {
      const parts = { keys, value, ttlMs, counterHint, counterFloor, replaces, shortens, mode };
      resolve(node[method]!(parts));
    }).then((grant) => {
      const outcome = isCount(grant) ? GRANTED : OUTCOMES.get(grant);
      if (outcome === undefined) {
        throw new TypeError(`${name} answered ${method}() with no Grant`);
      }
      request.answer(nodeIndex, outcome, typeof grant === "number" ? grant : undefined);
    }).catch((error) => request.answer(nodeIndex, FAILED, toError(error)));
  }
  return {
    name,
    lacks: {
      fencing: !node.raiseCounters,
      adopt: !node.adopt,
      list: !node.keys,
      restartGuardMs: true,
    },
    ask,
    inspect: (key) => node.inspect(key),
    keys: node.keys && ((prefix) => node.keys!(prefix)),
    diagnose: node.diagnose && ((timeoutMs, key) => node.diagnose!(timeoutMs, key)),
    close: async () => await node.close?.(),
  };
}
