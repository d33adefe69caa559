/**
 * A node of this library in its public form.
 *
 * @module
 */
import type { Grant, KeyState, LockNode, LockRequest } from "../quorum/lock_node.ts";
import type { NodeDiagnosis } from "../quorum/node_diagnosis.ts";
import { type QuorumNode, quorumNodes, type QuorumRequest } from "../quorum/quorum_node.ts";

/** Turns callbacks into promises. A `Redlock` does not use these, but asks the node behind them. */
export class PublishedNode implements LockNode {
  readonly name: string;
  readonly #node: QuorumNode;

  constructor(node: QuorumNode) {
    this.name = node.name;
    this.#node = node;
    quorumNodes.set(this, node);
  }

  acquire(request: LockRequest): Promise<Grant> {
    return answer(request, (asked) => this.#node.acquire(asked, 0));
  }

  extend(request: LockRequest): Promise<Grant> {
    return answer(request, (asked) => this.#node.extend(asked, 0));
  }

  release(request: LockRequest): Promise<Grant> {
    return answer(request, (asked) => this.#node.release(asked, 0));
  }

  adopt(request: LockRequest): Promise<Grant> {
    return answer(request, (asked) => this.#node.adopt!(asked, 0));
  }

  raiseCounters(request: LockRequest): Promise<Grant> {
    return answer(request, (asked) => this.#node.raiseCounters!(asked, 0));
  }

  inspect(key: string): Promise<KeyState | undefined> {
    return this.#node.inspect(key);
  }

  keys(prefix: string): AsyncIterable<readonly string[]> {
    return this.#node.keys!(prefix);
  }

  diagnose(timeoutMs: number, key: string): Promise<NodeDiagnosis> {
    return this.#node.diagnose!(timeoutMs, key);
  }

  async close(): Promise<void> {
    await this.#node.close?.();
  }
}

function answer(
  { keys, value, ttlMs, counterFloor, replaces }: LockRequest,
  ask: (request: QuorumRequest) => void,
): Promise<Grant> {
  return new Promise((resolve, reject) => {
    ask({
      keys,
      value,
      ttlMs,
      counterFloor,
      replaces,
      wanted: true,
      shared: undefined,
      maySet: () => true,
      grant: (_nodeIndex, _atMs, count) => resolve(count ?? "granted"),
      deny: () => resolve("denied"),
      missing: () => resolve("missing"),
      fail: (_nodeIndex, error) => reject(error),
    });
  });
}
