/**
 * Metrics of calls, held locks and nodes.
 *
 * @module
 */
import type {
  Attributes,
  Counter,
  Gauge,
  Histogram,
  Meter,
  UpDownCounter,
} from "@opentelemetry/api";
import type { LockEvent, RedlockEvent } from "../events.ts";

/**
 * Boundaries of the histogram of calls, in seconds: from a round trip in a data centre to a minute
 * of waiting.
 */
const ACQUIRE_S = [
  ...[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05],
  ...[0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
];
/**
 * Boundaries of the histogram of locks, in seconds: from a quick write to a leader that holds on
 * for a day.
 */
const HOLD_S = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800, 3_600, 21_600, 86_400];

type AttemptEvent = Extract<RedlockEvent, { type: "attempt" }>;
type EndEvent = Extract<
  RedlockEvent,
  { type: "handed-over" | "lost" | "released" | "release-failed" }
>;

/** How a call or a lock fails. */
const FAILURES = ["no-quorum", "lost", "release-failed"] as const;

/** Makes metrics of events. */
export class LockMetrics {
  readonly #groupOf: (resources: LockEvent["resources"]) => Attributes;
  readonly #acquireDuration: Histogram;
  readonly #holdDuration: Histogram;
  readonly #held: UpDownCounter;
  readonly #attempts: Counter;
  readonly #handoffs: Counter;
  readonly #extensions: Counter;
  readonly #failures: Counter;
  readonly #nodeConnected: Gauge;
  readonly #nodeFailures: Counter;
  /** The calls that were notified since their last attempt, by their resources. */
  readonly #woken: WeakSet<LockEvent["resources"]> = new WeakSet();
  /** The attributes of the locks that have not ended, by their resources. */
  readonly #locks: WeakMap<LockEvent["resources"], Attributes> = new WeakMap();
  /** The groups for which failures are counted. */
  readonly #groups: Set<unknown> = new Set();

  /**
   * @param meter Makes the instruments.
   * @param groupOf The attributes that follow from the resources of a lock.
   * @param grouped Whether locks have groups: else failures are counted from the first event on.
   */
  constructor(
    meter: Meter,
    groupOf: (resources: LockEvent["resources"]) => Attributes,
    grouped: boolean,
  ) {
    this.#groupOf = groupOf;
    this.#acquireDuration = meter.createHistogram("redlock.acquire.duration", {
      description: "Duration of calls, with or without success.",
      unit: "s",
      advice: { explicitBucketBoundaries: ACQUIRE_S },
    });
    this.#holdDuration = meter.createHistogram("redlock.hold.duration", {
      description: "How long locks were held.",
      unit: "s",
      advice: { explicitBucketBoundaries: HOLD_S },
    });
    this.#held = meter.createUpDownCounter("redlock.held", {
      description: "Locks that are held.",
      unit: "{lock}",
    });
    const counter = (name: string, unit: string, description: string) =>
      meter.createCounter(name, { unit, description });
    this.#attempts = counter("redlock.attempts", "{attempt}", "Attempts to acquire a lock.");
    this.#handoffs = counter(
      "redlock.handoffs",
      "{lock}",
      "Locks that a waiting call acquired as soon as it was notified.",
    );
    this.#extensions = counter("redlock.extensions", "{try}", "Tries to extend a lock.");
    this.#failures = counter(
      "redlock.failures",
      "{failure}",
      "Calls without a quorum, locks that were lost, and releases that failed.",
    );
    this.#nodeConnected = meter.createGauge("redlock.node.connected", {
      description: "Whether the node is connected: 1 or 0.",
    });
    this.#nodeFailures = counter("redlock.node.failures", "{vote}", "Votes of nodes that failed.");
    if (!grouped) this.#countFailures({});
  }

  /** Counts failures from 0 on: a rate shows the first one only if there was a 0 before it. */
  #countFailures(group: Attributes): void {
    const text = group["redlock.group"];
    if (this.#groups.has(text)) return;
    this.#groups.add(text);
    for (const outcome of FAILURES) this.#fail(outcome, group, 0);
  }

  #fail(outcome: typeof FAILURES[number], group: Attributes, count = 1): void {
    this.#failures.add(count, { ...group, "redlock.outcome": outcome });
  }

  /** Records an event. */
  onEvent(event: RedlockEvent): void {
    if ("resources" in event) this.#onLockEvent(event, this.#groupOf(event.resources));
    else if (event.type === "node-connected") this.#connected(event.node, 1);
    else if (event.type === "node-disconnected") this.#connected(event.node, 0);
  }

  #onLockEvent(event: Extract<RedlockEvent, LockEvent>, group: Attributes): void {
    this.#countFailures(group);
    switch (event.type) {
      case "attempt":
        return this.#onAttempt(event, group);
      case "woken":
        this.#woken.add(event.resources);
        return;
      case "acquired": {
        const attributes = { ...group, ...modeOf(event) };
        this.#recordCall(event.elapsedMs, "acquired", attributes);
        this.#locks.set(event.resources, attributes);
        return this.#held.add(1, attributes);
      }
      case "denied":
        if (event.reason === "no-quorum") this.#fail(event.reason, group);
        return this.#recordCall(event.elapsedMs, event.reason, { ...group, ...modeOf(event) });
      case "extended":
        return this.#extensions.add(1, { ...group, "redlock.outcome": "extended" });
      case "extend-failed":
        return this.#extensions.add(1, { ...group, "redlock.outcome": "failed" });
      case "lost":
      case "released":
      case "handed-over":
      case "release-failed":
        return this.#endHold(event, group);
    }
  }

  #onAttempt({ resources, granted, votes }: AttemptEvent, group: Attributes): void {
    this.#attempts.add(1, { ...group, "redlock.granted": granted });
    if (this.#woken.delete(resources) && granted) this.#handoffs.add(1, group);
    for (const { node, outcome } of votes) {
      if (outcome === "granted" || outcome === "denied") continue;
      this.#nodeFailures.add(1, { "redlock.node": node, "redlock.outcome": outcome });
    }
  }

  #recordCall(elapsedMs: number, outcome: string, group: Attributes): void {
    this.#acquireDuration.record(elapsedMs / 1_000, { ...group, "redlock.outcome": outcome });
  }

  /** Records the end of a lock, unless it was recorded: a lost lock may still be released. */
  #endHold(event: EndEvent, group: Attributes): void {
    const { type, resources, heldMs } = event;
    const attributes = this.#locks.get(resources);
    if (!attributes) return;
    this.#locks.delete(resources);
    if (type === "lost" || type === "release-failed") this.#fail(type, group);
    this.#held.add(-1, attributes);
    const reason = type === "lost" ? { "redlock.reason": event.reason } : {};
    this.#holdDuration.record(heldMs / 1_000, {
      ...attributes,
      "redlock.outcome": type,
      ...reason,
    });
  }

  #connected(node: string, connected: 0 | 1): void {
    this.#nodeConnected.record(connected, { "redlock.node": node });
  }
}

/** The attribute of a call or a lock in shared mode. */
export function modeOf({ mode }: { readonly mode?: "shared" }): Attributes {
  return mode ? { "redlock.mode": mode } : {};
}
