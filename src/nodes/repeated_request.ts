/**
 * An acquisition through a client that may send a command again by itself.
 *
 * @module
 */
import type { LockRequest } from "../quorum/lock_node.ts";
import type { QueuePosition, QueueTicket } from "../quorum/queue_ticket.ts";

/**
 * The same request, but a denial does not show that nothing was set: the server may deny the second copy of a command
 * because the first copy took the key. So the node's bit stays set, and the release that ends the attempt or the lock
 * goes to this node too. It is not deleted before that: if the lock is won, an extension may count the key.
 */
export class RepeatedRequest implements LockRequest {
  readonly #request: LockRequest;

  constructor(request: LockRequest) {
    this.#request = request;
  }

  get keys(): readonly string[] {
    return this.#request.keys;
  }

  get value(): string {
    return this.#request.value;
  }

  get ttlMs(): number {
    return this.#request.ttlMs;
  }

  get wanted(): boolean {
    return this.#request.wanted;
  }

  get maybeSet(): number {
    return this.#request.maybeSet;
  }

  set maybeSet(nodes: number) {
    this.#request.maybeSet = nodes;
  }

  get shared(): unknown {
    return this.#request.shared;
  }

  set shared(shared: unknown) {
    this.#request.shared = shared;
  }

  get counterFloor(): number | undefined {
    return this.#request.counterFloor;
  }

  get counterFloorNext(): number | undefined {
    return this.#request.counterFloorNext;
  }

  set counterFloorNext(floor: number | undefined) {
    this.#request.counterFloorNext = floor;
  }

  get ticket(): QueueTicket | undefined {
    return this.#request.ticket;
  }

  get guardMs(): number {
    return this.#request.guardMs ?? 0;
  }

  grant(nodeIndex: number, atMs?: number, count?: number): void {
    this.#request.grant(nodeIndex, atMs, count);
  }

  deny(nodeIndex: number, atMs?: number): void {
    this.#keepBit(nodeIndex);
    this.#request.deny(nodeIndex, atMs);
  }

  enqueued(nodeIndex: number, position: QueuePosition, atMs?: number): void {
    this.#keepBit(nodeIndex);
    this.#request.enqueued!(nodeIndex, position, atMs);
  }

  quarantine(nodeIndex: number, atMs?: number): void {
    this.#request.quarantine!(nodeIndex, atMs);
  }

  fail(nodeIndex: number, error: Error): void {
    this.#request.fail(nodeIndex, error);
  }

  #keepBit(nodeIndex: number): void {
    this.#request.maybeSet |= 1 << nodeIndex;
  }
}
