/**
 * Setting a held lock's keys again on a node that lost them.
 *
 * @module
 */
import type { LockRequest } from "../quorum/lock_node.ts";
import type { Round } from "../quorum/round.ts";
import { onRejection } from "../to_error.ts";

/**
 * Asks one node to set the keys, if nobody else has one of them. A lock would erode otherwise as nodes restart one by
 * one. The answer counts for nothing: the node counts from the next extension on. A node that lost only some of several
 * keys denies, and stays without them.
 *
 * @param won The round that won the lock. Its release takes these keys back as well.
 * @param ttlMs How long the keys are to live, in milliseconds.
 * @param nodeIndex Which node.
 * @param token The fencing token, if the nodes count: the node's counter is raised to it.
 */
export function fillIn(won: Round, ttlMs: number, nodeIndex: number, token?: number): void {
  const node = won.nodeSet.nodes[nodeIndex];
  try {
    onRejection(node.acquire(new FillInRequest(won, ttlMs), nodeIndex));
    if (token === undefined) return;
    onRejection(node.raiseCounters?.(new FillInRequest(won, ttlMs, token), nodeIndex));
  } catch {
    // The next extension finds the keys missing again.
  }
}

/** A request whose answers nobody reads, and which belongs to the round that won the lock. */
class FillInRequest implements LockRequest {
  readonly keys: readonly string[];
  readonly value: string;
  readonly ttlMs: number;
  readonly counterFloor: number | undefined;
  shared: unknown = undefined;
  readonly #won: Round;

  constructor(won: Round, ttlMs: number, token?: number) {
    this.keys = won.keys;
    this.value = won.value;
    this.ttlMs = ttlMs;
    this.counterFloor = token;
    this.#won = won;
  }

  /** Whether the lock is not over: a command that takes the keys back may be on its way then. */
  get wanted(): boolean {
    return this.#won.wanted;
  }

  get maybeSet(): number {
    return this.#won.maybeSet;
  }

  /** Bits are added alone: a node that denies may do so because the keys are ours already. */
  set maybeSet(nodes: number) {
    // mutation: filled-in-key-forgotten
    this.#won.maybeSet |= nodes;
  }

  grant(): void {}
  deny(): void {}
  fail(): void {}
}
