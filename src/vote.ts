/**
 * The answer of one node to one request.
 *
 * @module
 */

/** What one node made of one command. */
export interface Vote {
  /** The node's name: its address without credentials. */
  readonly node: string;
  /**
   * `granted`: it did as it was asked. `denied`: somebody else holds the resource, or the key is no longer
   * ours. `failed`: it answered with an error or could not be reached. `timed-out`: no answer in time.
   * `quarantined`: it did as it was asked, but that does not count, as it may have forgotten locks (`restartGuardMs`).
   */
  readonly outcome: "granted" | "denied" | "failed" | "timed-out" | "quarantined" | "held" | "free";
  /** From the start of the attempt to the answer, in milliseconds; for a missing one, to the end of waiting. */
  readonly elapsedMs: number;
  /** Why it failed. */
  readonly error?: Error;
}
