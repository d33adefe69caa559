/**
 * Ending a lock without freeing its resources at once: its keys live for a while longer, and belong to nobody.
 *
 * @module
 */
import type { ClientState } from "../client_state.ts";
import { Round } from "../quorum/round.ts";

/** A release that gives the keys exactly its TTL in place of deleting them. */
export class KeepingRound extends Round<ClientState> {
  readonly shortens = true;

  /**
   * @param won The round that has won the lock.
   * @param keepMs For how long the keys live on, in milliseconds.
   */
  constructor(won: Round<ClientState>, keepMs: number) {
    super(won.nodeSet, won.keys, won.value, Math.ceil(keepMs), won);
    this.guardMs = 0; // this is no grant, so a node in quarantine may do it
  }
}
