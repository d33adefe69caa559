/**
 * Spans of calls and of held locks.
 *
 * @module
 */
import {
  type Attributes,
  type HrTime,
  type Span,
  type SpanOptions,
  SpanStatusCode,
  type Tracer,
} from "@opentelemetry/api";
import type { LockEvent, RedlockEvent } from "../events.ts";
import { systemClock } from "../time/clock.ts";
import type { Vote } from "../vote.ts";
import { modeOf } from "./lock_metrics.ts";

/** Most events of one span about a call: a call that polls may make attempts without end. */
const CALL_EVENTS_MAX = 100;

/** Something that happened during a call, to be an event of its span. */
interface CallEvent {
  readonly name: string;
  readonly attributes: () => Attributes;
  readonly time: HrTime;
}

/** Every event of one call has the same array, and so has every event of one lock. */
type Resources = LockEvent["resources"];
type EndOfCall = Extract<RedlockEvent, { type: "acquired" | "denied" }>;

/** Makes spans of events. */
export class LockSpans {
  readonly #tracer: Tracer;
  readonly #groupOf: (resources: Resources) => Attributes;
  readonly #calls: WeakMap<Resources, CallEvent[]> = new WeakMap();
  readonly #holds: WeakMap<Resources, Span> = new WeakMap();

  /**
   * @param tracer Makes the spans.
   * @param groupOf The attributes that follow from the resources of a lock.
   */
  constructor(tracer: Tracer, groupOf: (resources: Resources) => Attributes) {
    this.#tracer = tracer;
    this.#groupOf = groupOf;
  }

  /** Records an event. */
  onEvent(event: RedlockEvent): void {
    switch (event.type) {
      case "attempt": {
        const { attempt, granted, votes } = event;
        return this.#keep(event, () => ({
          "redlock.attempt": attempt,
          "redlock.granted": granted,
          "redlock.votes": texts(votes),
        }));
      }
      case "woken":
        return this.#keep(event, () => ({}));
      case "acquired": {
        const { resources } = event;
        const { holder, adoptedFrom } = event;
        const attributes = {
          "redlock.holder": holder,
          ...modeOf(event),
          ...(adoptedFrom === undefined ? {} : { "redlock.adopted_from": adoptedFrom }),
        };
        this.#endCall(event, "acquired", attributes, event.anyOf);
        this.#holds.set(resources, this.#start("redlock.hold", resources, { attributes }));
        return;
      }
      case "denied":
        return this.#endCall(event, event.reason, modeOf(event));
      case "extended":
      case "extend-failed":
        this.#holds.get(event.resources)?.addEvent(event.type, {
          "redlock.remaining_ms": event.remainingMs,
          "redlock.votes": texts(event.votes),
        });
        return;
      case "released":
      case "handed-over":
        return this.#endHold(event);
      case "release-failed":
        return this.#endHold(event, "NO_QUORUM", event.error);
      case "lost":
        this.#holds.get(event.resources)?.setAttribute("redlock.reason", event.reason);
        return this.#endHold(event, "LOCK_LOST", event.cause);
    }
  }

  #start(name: string, resources: Resources, options: SpanOptions): Span {
    const attributes = {
      ...options.attributes,
      "redlock.resources": [...resources],
      ...this.#groupOf(resources),
    };
    return this.#tracer.startSpan(name, { ...options, attributes });
  }

  /** Keeps what happened until the call is over, because no event says that it has begun. */
  #keep({ type: name, resources }: RedlockEvent & LockEvent, attributes: () => Attributes): void {
    const events = this.#calls.get(resources) ?? [];
    this.#calls.set(resources, events);
    if (events.length === CALL_EVENTS_MAX) return;
    events.push({ name, attributes, time: hrTime(systemClock.wallMs()) });
  }

  /**
   * Makes the whole span of a call, as a child of the span that is active now: events run in the
   * call's context.
   */
  #endCall(
    { resources, attempts, elapsedMs }: EndOfCall,
    outcome: string,
    attributes: Attributes,
    called = resources,
  ): void {
    const endMs = systemClock.wallMs();
    const span = this.#start("redlock.acquire", resources, {
      startTime: hrTime(endMs - elapsedMs),
      attributes: { ...attributes, "redlock.outcome": outcome, "redlock.attempts": attempts },
    });
    if (span.isRecording()) {
      for (const { name, attributes, time } of this.#calls.get(called) ?? []) {
        span.addEvent(name, attributes(), time);
      }
    }
    this.#calls.delete(called);
    if (outcome === "no-quorum") fail(span, "NO_QUORUM", "too few nodes answered");
    span.end(hrTime(endMs));
  }

  /** Ends the span of a lock, unless it has ended: a lost lock may still be released. */
  #endHold({ type, resources }: RedlockEvent & LockEvent, code?: string, error?: Error): void {
    const span = this.#holds.get(resources);
    if (!span) return;
    this.#holds.delete(resources);
    span.setAttribute("redlock.outcome", type);
    if (code && error) fail(span, code, error.message);
    span.end();
  }
}

function fail(span: Span, code: string, message: string): void {
  span.setAttribute("error.type", code);
  span.setStatus({ code: SpanStatusCode.ERROR, message });
}

function texts(votes: readonly Vote[]): string[] {
  return votes.map(({ node, outcome }) => `${node} ${outcome}`);
}

/**
 * Seconds and nanoseconds, because a plain number may be taken for a time since the process began.
 */
function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.floor((ms - seconds * 1_000) * 1_000_000)];
}
