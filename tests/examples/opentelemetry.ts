import { context, metrics, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { MeterProvider, type MetricReader } from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, type SpanProcessor } from "@opentelemetry/sdk-trace-base";
import { otelListener } from "@hasp/redlock/otel";

/**
 * What an application does once, at its start; packages such as `@opentelemetry/sdk-node` do it
 * too.
 */
export function startTelemetry(spanProcessor: SpanProcessor, reader: MetricReader): void {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [spanProcessor] }));
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
}

/** Pass it as `onEvent`. Locks such as `invoice:42` have the group `invoice`. */
export const telemetry = otelListener({ group: ([resource]) => resource.split(":")[0] });
