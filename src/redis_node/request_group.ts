/**
 * Releases, or extensions, of one tick: one command for many keys costs a server far less than one
 * each.
 *
 * A group goes out at the end of its tick, or before a command that names one of its keys. So what
 * undoes a command stays behind it on the connection.
 *
 * @module
 */
import type { Detail, Outcome } from "../quorum/outcome.ts";
import type { QuorumRequest } from "../quorum/quorum_node.ts";
import type { CommandSender } from "./command_sender.ts";
import { keysOf } from "./operations.ts";
import type { GroupContent, Operation } from "./scripts/script.ts";

/**
 * Most requests of one group: it holds a server for a third of a millisecond at most, and its keys
 * fit the stack of Lua.
 */
const GROUP_LENGTH_MAX = 256;

/**
 * Requests that one command puts to a node. What fails, fails for each of them; the node passes
 * replies on one by one.
 */
export class RequestGroup implements GroupContent {
  /** The operation of one of them alone. */
  readonly single: Operation;
  /** The requests, in the order of their keys. */
  readonly requests: readonly QuorumRequest[];
  readonly keys: readonly string[];
  // Each of its requests has its own value and TTL.
  readonly value = "";
  readonly ttlMs = 0;
  readonly wanted = true;
  shared: unknown = undefined;

  constructor(single: Operation, requests: readonly QuorumRequest[]) {
    this.single = single;
    this.requests = requests;
    this.keys = requests.map(({ keys }) => keys[0]);
  }

  /** Whether it has these requests, and no others. */
  isOf(first: QuorumRequest, others: readonly QuorumRequest[]): boolean {
    const { requests } = this;
    return requests.length === others.length + 1 && requests[0] === first &&
      others.every((request, index) => request === requests[index + 1]);
  }

  answer(nodeIndex: number, outcome: Outcome, detail?: Detail): void {
    for (const request of this.requests) request.answer(nodeIndex, outcome, detail);
  }
}

/** Sends a request to the node. */
type Send = (operation: Operation, request: QuorumRequest, nodeIndex: number) => void;

/** The requests of this tick to one node, each for one key and all by one operation. */
export class Grouping {
  /** The node's connection, once it is open; `undefined` again if its server refuses groups. */
  connection: CommandSender | undefined;
  readonly #send: Send;
  #operation: Operation | undefined;
  #nodeIndex = 0;
  // The first apart, so that one alone takes no memory.
  #first: QuorumRequest | undefined;
  #others: QuorumRequest[] = [];
  /** Their keys, once somebody has looked for one. */
  #keys: Set<string> | undefined;

  /** @param send Sends a request, or a {@linkcode RequestGroup}. */
  constructor(send: Send) {
    this.#send = send;
  }

  /**
   * Puts a request to the node: with others of this tick if its operation has a script for many,
   * unless the request is for several keys, or an extension under the restart guard.
   */
  ask(operation: Operation, request: QuorumRequest, nodeIndex: number): void {
    const { connection } = this;
    const alone = !operation.many || request.keys.length > 1 ||
      operation.kind === "extend" && request.guardMs;
    if (alone || !connection?.open || !connection.writeSoon) {
      return this.#send(operation, request, nodeIndex);
    }
    // The index differs only for a pending release, which has the index 0 on every node.
    if (operation !== this.#operation || nodeIndex !== this.#nodeIndex) this.flush();
    this.#operation = operation;
    this.#nodeIndex = nodeIndex;
    if (!this.#first) {
      this.#first = request;
      return connection.writeSoon();
    }
    this.#keys?.add(request.keys[0]);
    if (this.#others.push(request) === GROUP_LENGTH_MAX - 1) this.flush();
  }

  /** Sends the group, if there is one that names a key of a request. */
  flushFor(request: Pick<QuorumRequest, "keys" | "pool">): void {
    if (this.#first && this.#names(keysOf(request))) this.flush();
  }

  #names(keys: readonly string[]): boolean {
    let known = this.#keys;
    if (!known) {
      known = this.#keys = new Set(this.#first!.keys);
      for (const other of this.#others) known.add(other.keys[0]);
    }
    return keys.some((key) => known.has(key));
  }

  /** Sends the group, if there is one. A bound function, because it is the sender's `onWriting`. */
  readonly flush = (): void => {
    const first = this.#first;
    if (!first) return;
    const others = this.#others;
    const operation = this.#operation!;
    this.#first = this.#keys = undefined;
    if (others.length === 0) return this.#send(operation, first, this.#nodeIndex);
    this.#others = [];
    // The nodes of a client mostly get the same requests in one tick. So the first node leaves its
    // group at the first request, where the others find it: its command is encoded only once.
    const { shared } = first;
    const group = shared instanceof RequestGroup && shared.isOf(first, others)
      ? shared
      : first.shared = new RequestGroup(operation, [first, ...others]);
    this.#send(operation.many!, group, this.#nodeIndex);
  };
}
