import { metrics, trace } from "@opentelemetry/api";
import type { RedlockEvent } from "@hasp/redlock";

const tracer = trace.getTracer("@hasp/redlock");
const meter = metrics.getMeter("@hasp/redlock");
const acquiring = meter.createHistogram("lock.acquire.duration", { unit: "ms" });
const holding = meter.createHistogram("lock.hold.duration", { unit: "ms" });
const nodeFailures = meter.createCounter("lock.node.failures");

/** Pass it as `onEvent`. Records a span for each call and each held lock, and three metrics. */
export function telemetry(event: RedlockEvent): void {
  switch (event.type) {
    case "attempt":
      for (const { node, outcome } of event.votes) {
        if (outcome !== "granted" && outcome !== "denied") nodeFailures.add(1, { node, outcome });
      }
      break;
    case "acquired":
    case "denied":
      acquiring.record(event.elapsedMs, { outcome: event.type });
      span("lock acquire", event.elapsedMs, event.type, event.resources);
      break;
    case "released":
    case "lost":
      holding.record(event.heldMs, { outcome: event.type });
      span("lock hold", event.heldMs, event.type, event.resources);
      break;
  }
}

/** An event is emitted at the end of what it reports, so the span begins in the past. */
function span(name: string, tookMs: number, outcome: string, resources: readonly string[]): void {
  const endTime = Date.now();
  const attributes = { "lock.outcome": outcome, "lock.resources": [...resources] };
  tracer.startSpan(name, { startTime: endTime - tookMs, attributes }).end(endTime);
}
