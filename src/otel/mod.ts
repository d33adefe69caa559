/**
 * Traces and metrics of locks for OpenTelemetry. {@linkcode otelListener} makes a listener for the
 * events of a lock client, which records a span for each call and each held lock, and metrics for
 * both and for the nodes.
 *
 * This entry point needs the package `@opentelemetry/api`, 1.9 or a later 1.x; no other does.
 *
 * Spans:
 *
 * - `redlock.acquire`: a call, from its beginning until it has the lock or is refused. Attempts are
 *   events of the span. A lock that somebody else holds is no error; too few nodes are
 *   (`error.type` is `NO_QUORUM`).
 * - `redlock.hold`: a lock, until it is released or handed over. Extensions are events of the span.
 *   A lost lock is an error (`LOCK_LOST`), and so is a release that too few nodes confirmed
 *   (`NO_QUORUM`).
 *
 * Both are children of the span that is active where `acquire`, `tryAcquire` or `using` is called.
 * If the lock was adopted, both have `redlock.adopted_from`, which is the `redlock.holder` of the
 * span of its former holder. A call that `close()` ends has no span, because it emits no event at
 * its end.
 *
 * In shared mode, spans and the metrics of calls and locks have `redlock.mode`, which is `shared`.
 *
 * Metrics, with their attributes:
 *
 * - `redlock.acquire.duration`: histogram of calls, in seconds. `redlock.outcome` is `acquired`,
 *   `held`, `no-quorum`, `aborted` or `gone`.
 * - `redlock.hold.duration`: histogram of locks, in seconds. `redlock.outcome` is `released`,
 *   `handed-over`, `release-failed` or `lost`; `redlock.reason` says why it was lost.
 * - `redlock.held`: how many locks are held.
 * - `redlock.attempts`: attempts to acquire a lock. `redlock.granted` is whether a quorum granted
 *   it.
 * - `redlock.handoffs`: locks that a waiting call acquired as soon as it was notified.
 * - `redlock.extensions`: tries to extend a lock. `redlock.outcome` is `extended` or `failed`.
 * - `redlock.failures`: what needs attention. `redlock.outcome` is `no-quorum` for calls, `lost` or
 *   `release-failed` for locks. The counters begin with 0 at the first event; with a group, at the
 *   first event of that group.
 * - `redlock.node.connected`: 1 if the node, `redlock.node`, is connected, else 0.
 * - `redlock.node.failures`: votes of nodes that failed. `redlock.outcome` is `failed`, `timed-out`
 *   or `quarantined`.
 *
 * @example Trace and measure a client
 * ```ts
 * import { createRedlock } from "@hasp/redlock";
 * import { otelListener } from "@hasp/redlock/otel";
 * import { startNodes } from "@hasp/redlock/testing";
 *
 * await using nodes = await startNodes(3);
 * await using redlock = createRedlock(nodes.addresses, { onEvent: otelListener() });
 * await redlock.using("invoice:42", () => {});
 * ```
 *
 * @module
 */
export { otelListener, type OtelOptions } from "./otel_listener.ts";
