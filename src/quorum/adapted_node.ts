/**
 * A node of somebody else's, as the algorithm asks it.
 *
 * @module
 */
import { toError } from "../to_error.ts";
import type { Grant, KeyState, LockNode } from "./lock_node.ts";
import type { NodeDiagnosis } from "./node_diagnosis.ts";
import type { QuorumNode, QuorumRequest } from "./quorum_node.ts";

/** Turns promises into callbacks. Whatever the node does, returns or throws becomes its vote. */
export class AdaptedNode implements QuorumNode {
  readonly name: string;
  readonly #node: LockNode;
  adopt?: (request: QuorumRequest, nodeIndex: number) => void;
  raiseCounters?: (request: QuorumRequest, nodeIndex: number) => void;
  keys?: (prefix: string) => AsyncIterable<readonly string[]>;
  diagnose?: (timeoutMs: number, key: string) => Promise<NodeDiagnosis>;

  constructor(node: LockNode) {
    this.name = node.name;
    this.#node = node;
    if (node.adopt) this.adopt = this.#ask.bind(this, "adopt");
    if (node.raiseCounters) this.raiseCounters = this.#ask.bind(this, "raiseCounters");
    if (node.keys) this.keys = (prefix) => node.keys!(prefix);
    if (node.diagnose) this.diagnose = (timeoutMs, key) => node.diagnose!(timeoutMs, key);
  }

  acquire(request: QuorumRequest, nodeIndex: number): void {
    this.#ask("acquire", request, nodeIndex);
  }

  extend(request: QuorumRequest, nodeIndex: number): void {
    this.#ask("extend", request, nodeIndex);
  }

  release(request: QuorumRequest, nodeIndex: number): void {
    this.#ask("release", request, nodeIndex);
  }

  inspect(key: string): Promise<KeyState | undefined> {
    return this.#node.inspect(key);
  }

  async close(): Promise<void> {
    await this.#node.close?.();
  }

  #ask(
    method: "acquire" | "extend" | "adopt" | "release" | "raiseCounters",
    request: QuorumRequest,
    nodeIndex: number,
  ): void {
    const { keys, value, ttlMs, counterFloor, replaces } = request;
    // Called at once, because requests take effect in the order of the calls.
    new Promise<Grant>((resolve) => {
      resolve(this.#node[method]!({ keys, value, ttlMs, counterFloor, replaces }));
    }).then((grant) => {
      if (grant === "granted") request.grant(nodeIndex);
      else if (grant === "denied") request.deny(nodeIndex);
      else if (grant === "missing") (request.missing ?? request.deny).call(request, nodeIndex);
      else if (Number.isSafeInteger(grant)) request.grant(nodeIndex, undefined, grant);
      else throw new TypeError(`${this.name} answered ${method}() with no Grant`);
    }).catch((error) => request.fail(nodeIndex, toError(error)));
  }
}
