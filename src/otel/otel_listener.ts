/**
 * The listener that makes spans and metrics of events.
 *
 * @module
 */
import { type Attributes, type Meter, metrics, trace, type Tracer } from "@opentelemetry/api";
import type { EventListener } from "../events.ts";
import { checkAll, checkOptions, FUNCTION } from "../validate.ts";
import { LockMetrics } from "./lock_metrics.ts";
import { LockSpans } from "./lock_spans.ts";

/** The name of the tracer and of the meter. */
const SCOPE = "@hasp/redlock";

/** Options of {@linkcode otelListener}. */
export interface OtelOptions {
  /**
   * Where the spans go: a `TracerProvider` of `@opentelemetry/api`.
   *
   * @default {the global tracer provider}
   */
  tracerProvider?: { getTracer(name: string): unknown } | undefined;
  /**
   * Where the metrics go: a `MeterProvider` of `@opentelemetry/api`.
   *
   * @default {the global meter provider, as it is when the first event is emitted}
   */
  meterProvider?: { getMeter(name: string): unknown } | undefined;
  /**
   * Function that returns the kind of a lock from its resources, such as `invoice` for
   * `["invoice:42"]`. It becomes the attribute `redlock.group` of spans and metrics about locks. It
   * must have few different results, because each is a series of each metric. The resources
   * themselves are attributes of spans alone. If the function throws, there is no group.
   *
   * @default {no group}
   */
  group?: ((resources: readonly string[]) => string) | undefined;
}

/**
 * Makes a listener that records spans and metrics with OpenTelemetry. One listener may serve
 * several clients; then `redlock.node.connected` is that of the client which emitted last.
 *
 * @param options Where spans and metrics go, and a group for metrics.
 * @returns The listener, for `onEvent`.
 * @throws {TypeError} If an option is unknown, or `group` is no function.
 *
 * @example A group, and a listener of one's own beside it
 * ```ts
 * import { assert } from "@std/assert";
 * import { createRedlock, type RedlockEvent } from "@hasp/redlock";
 * import { otelListener } from "@hasp/redlock/otel";
 * import { startNodes } from "@hasp/redlock/testing";
 *
 * const telemetry = otelListener({ group: ([resource]) => resource.split(":")[0] });
 * const types: string[] = [];
 * const onEvent = (event: RedlockEvent) => {
 *   telemetry(event);
 *   types.push(event.type);
 * };
 * await using nodes = await startNodes(3);
 * await using redlock = createRedlock(nodes.addresses, { onEvent });
 * await redlock.using("invoice:42", () => {});
 * assert(types.includes("released"));
 * ```
 */
export function otelListener(options: OtelOptions = {}): EventListener {
  checkOptions("create listener", options, ["tracerProvider", "meterProvider", "group"]);
  const { tracerProvider = trace, meterProvider = metrics, group } = options;
  checkAll("create listener", { group }, { group: FUNCTION });
  const groupOf = (resources: readonly string[]): Attributes => {
    try {
      return group ? { "redlock.group": group(resources) } : {};
    } catch {
      return {}; // a span without a group is worth more than none
    }
  };
  const spans = new LockSpans(tracerProvider.getTracer(SCOPE) as Tracer, groupOf);
  let measured: LockMetrics | undefined; // made late, because a meter of no provider stays one
  return (event) => {
    measured ??= new LockMetrics(meterProvider.getMeter(SCOPE) as Meter, groupOf, !!group);
    measured.onEvent(event);
    spans.onEvent(event);
  };
}
