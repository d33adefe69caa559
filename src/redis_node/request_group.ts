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
import type { GroupRequest, Operation } from "./scripts/script.ts";

/**
 * Most requests of one group: it holds a server for a third of a millisecond at most, and its keys
 * fit the stack of Lua.
 */
const GROUP_LENGTH_MAX = 256;

/**
 * Requests that one command puts to a node. What fails, fails for each of them; the node passes
 * replies on one by one.
 *
 * The first node that is asked builds it, and leaves it in `shared` of every request but the first,
 * which may stay alone. A further node that was asked the same so far finds it in that of the
 * second, and from then on only counts.
 */
export class RequestGroup implements GroupRequest {
  /** The operation of one of them alone. */
  readonly single: Operation;
  /** The requests, in the order of their keys. */
  readonly requests: QuorumRequest[] = [];
  readonly keys: string[] = [];
  // Each of its requests has its own value and TTL.
  readonly value = "";
  readonly ttlMs = 0;
  readonly wanted = true;
  shared: unknown = undefined;
  /** The keys that were there when {@linkcode names} was last called. */
  readonly #known: Set<string> = new Set();
  #taken = false;

  constructor(single: Operation, requests: readonly QuorumRequest[]) {
    this.single = single;
    for (const request of requests) this.push(request);
  }

  /** Adds a request, unless the group is full or a node has taken it; returns whether it did. */
  push(request: QuorumRequest): boolean {
    if (this.#taken || this.requests.length === GROUP_LENGTH_MAX) return false;
    this.requests.push(request);
    this.keys.push(request.keys[0]);
    return true;
  }

  /** Whether one of its requests names one of the keys. */
  names(keys: readonly string[]): boolean {
    const known = this.#known;
    for (let index = known.size; index < this.keys.length; index++) known.add(this.keys[index]);
    return keys.some((key) => known.has(key));
  }

  /**
   * The first requests, for a node that was not asked for the others; from now on it takes no more.
   */
  take(count: number): RequestGroup {
    this.#taken = true;
    const { single, requests } = this;
    return count === requests.length ? this : new RequestGroup(single, requests.slice(0, count));
  }

  answer(nodeIndex: number, outcome: Outcome, detail?: Detail): void {
    for (const request of this.requests) request.answer(nodeIndex, outcome, detail);
  }
}

/** Sends a request to the node. */
type Send = (operation: Operation, request: QuorumRequest, nodeIndex: number) => void;

/** The group of one node. One request alone takes no memory. */
export class Grouping {
  /** Whether the server takes groups, as far as is known of this connection. */
  enabled = false;
  readonly #connection: CommandSender;
  readonly #send: Send;
  /** The first request of this tick. */
  #first: QuorumRequest | undefined = undefined;
  /** What it asks. */
  #operation: Operation | undefined = undefined;
  #nodeIndex = 0;
  /** The group that begins with it, once there is a second request. */
  #group: RequestGroup | undefined = undefined;
  /** How many requests of this tick the node was asked so far. */
  #count = 0;

  /**
   * @param connection The node's connection.
   * @param send Sends a request, or a {@linkcode RequestGroup}.
   */
  constructor(connection: CommandSender, send: Send) {
    this.#connection = connection;
    this.#send = send;
  }

  /**
   * Puts a request for one key to the node, with others of its kind in this tick if there is a
   * script for many.
   */
  ask(operation: Operation, request: QuorumRequest, nodeIndex: number): void {
    const connection = this.#connection;
    if (!connection.open || !this.enabled || !operation.many) {
      return this.#send(operation, request, nodeIndex);
    }
    // A release that has waited for a connection has the index 0.
    const goesOn = operation === this.#operation && nodeIndex === this.#nodeIndex;
    if (this.#count === 0 || !goesOn || !this.#add(request)) {
      this.flush();
      this.#first = request;
      this.#operation = operation;
      this.#nodeIndex = nodeIndex;
      connection.writeSoon!();
    }
    if (++this.#count === GROUP_LENGTH_MAX) this.flush();
  }

  /** Adds a request behind the first, unless its group takes no more; returns whether it did. */
  #add(request: QuorumRequest): boolean {
    const { shared } = request;
    const isSame = shared instanceof RequestGroup && shared.requests[0] === this.#first &&
      shared.requests[1] === request;
    const group = this.#group ??= isSame
      ? shared
      : new RequestGroup(this.#operation!, [this.#first!]);
    if (group.requests[this.#count] === request) return true; // another node was asked it before
    if (group.requests.length !== this.#count || !group.push(request)) return false;
    request.shared = group;
    return true;
  }

  /** Sends the group, if there is one that names one of the keys. */
  flushFor(keys: readonly string[]): void {
    if (this.#count === 0) return;
    const { keys: [key] } = this.#first!;
    if (this.#group ? this.#group.names(keys) : keys.includes(key)) this.flush();
  }

  /** Sends the group, if there is one. */
  flush(): void {
    const count = this.#count;
    if (count === 0) return;
    const first = this.#first!;
    const group = this.#group;
    this.#first = this.#group = undefined;
    this.#count = 0;
    if (count === 1) return this.#send(this.#operation!, first, this.#nodeIndex);
    this.#send(this.#operation!.many as Operation, group!.take(count), this.#nodeIndex);
  }
}
