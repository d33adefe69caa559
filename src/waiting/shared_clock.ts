/**
 * The clock by which waiting clients are ordered: the median of the nodes' clocks.
 *
 * Clients' own wall clocks may be minutes apart. Each client instead measures how far each node's
 * clock is ahead of its own monotonic clock, and takes the median of these leads. No traffic is
 * needed for that: answers of nodes that it asks anyway carry their time.
 *
 * @module
 */
import type { Clock } from "../time/clock.ts";
import type { TimeReading } from "../quorum/queue_ticket.ts";

/**
 * By how much more than double a round trip is believed to have grown, in milliseconds: else the
 * client was held up.
 */
const ROUND_TRIP_GROWTH_MS = 5;

/** Between which bounds the lead of a node's clock over the monotonic clock is, in milliseconds. */
interface Lead {
  readonly lowMs: number;
  readonly highMs: number;
  /** How long the node last took to answer, in milliseconds, as far as that is believed. */
  readonly roundTripMs: number;
}

/** One client's estimate of the clock that all clients share. */
export class SharedClock {
  readonly #clock: Clock;
  readonly #leads: (Lead | undefined)[] = [];
  /** The median of the leads, once it was asked for since the last reading. */
  #leadMs: number | undefined;

  /**
   * @param clock The client's own clocks; the wall clock replaces the nodes' clocks until one of
   * them is known.
   */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Notes what a node's clock showed. The node read it at some moment between the question and
   * the answer, so each reading gives two bounds, and the next ones narrow them. Readings that
   * contradict the bounds show that one of the clocks has moved: the old bounds then move into the
   * new ones.
   */
  note(nodeIndex: number, { timeMs, sentMs, receivedMs }: TimeReading): void {
    const lowMs = timeMs - receivedMs;
    const highMs = timeMs - sentMs;
    const tookMs = receivedMs - sentMs;
    const known = this.#leads[nodeIndex] ?? { lowMs, highMs, roundTripMs: tookMs };
    const roundTripMs = Math.min(tookMs, 2 * known.roundTripMs + ROUND_TRIP_GROWTH_MS);
    let movedMs = 0;
    this.#leadMs = undefined;
    if (known.highMs < lowMs) movedMs = lowMs - known.lowMs;
    else if (known.lowMs > highMs) movedMs = highMs - known.highMs;
    this.#leads[nodeIndex] = {
      lowMs: Math.max(lowMs, known.lowMs + movedMs),
      highMs: Math.min(highMs, known.highMs + movedMs),
      roundTripMs,
    };
  }

  /**
   * How far the nodes are: how long the median of them takes to answer, in milliseconds; 0 until
   * one has answered. Of two medians the longer, because a quorum has answered after that.
   */
  get distanceMs(): number {
    const timesMs = this.#sorted(({ roundTripMs }) => roundTripMs);
    return timesMs[timesMs.length >> 1] ?? 0;
  }

  /**
   * The shared clock at a moment of the monotonic clock, in milliseconds since 1970. Of two medians
   * the earlier, because a node changes a score that is ahead of its own clock.
   */
  at(monotonicMs: number): number {
    if (this.#leadMs === undefined) {
      const leadsMs = this.#sorted(({ lowMs, highMs }) => (lowMs + highMs) / 2);
      this.#leadMs = leadsMs[(leadsMs.length - 1) >> 1];
    }
    // mutation: waiters-ordered-by-their-own-clocks
    const leadMs = this.#leadMs ?? this.#clock.wallMs() - this.#clock.monotonicMs();
    return monotonicMs + leadMs;
  }

  #sorted(ofLead: (lead: Lead) => number): number[] {
    return this.#leads.flatMap((lead) => lead ? ofLead(lead) : []).sort((a, b) => a - b);
  }
}
