import { assert, assertEquals } from "@std/assert";
import { metrics, trace } from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { createRedlock } from "@hasp/redlock";
import { startNodes } from "@hasp/redlock/testing";
import { count, page } from "../examples/prometheus.ts";

const closedPort = "redis://127.0.0.1:1";

Deno.test("OpenTelemetry example makes a span of each call and each hold, and counts failing nodes", async () => {
  const spans = new InMemorySpanExporter();
  const exported = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter: exported });
  const spanProcessors = [new SimpleSpanProcessor(spans)];
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors }));
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
  // Imported after the providers are set, as an application does.
  const { telemetry } = await import("../examples/opentelemetry.ts");

  await using nodes = await startNodes(2);
  await using redlock = createRedlock([...nodes.addresses, closedPort], { onEvent: telemetry });
  const lock = await redlock.acquire("invoice:42");
  await redlock.acquire("invoice:42", { waitMs: 0 }).catch(() => {});
  await lock.release();

  const seen = spans.getFinishedSpans().map(({ name, attributes }) => ({ name, attributes }));
  const resources = { "lock.resources": ["invoice:42"] };
  assertEquals(seen, [
    { name: "lock acquire", attributes: { "lock.outcome": "acquired", ...resources } },
    { name: "lock acquire", attributes: { "lock.outcome": "denied", ...resources } },
    { name: "lock hold", attributes: { "lock.outcome": "released", ...resources } },
  ]);
  await reader.forceFlush();
  await reader.shutdown();
  const [{ scopeMetrics }] = exported.getMetrics();
  const points = Object.fromEntries(
    scopeMetrics[0].metrics.map(({ descriptor, dataPoints }) => [descriptor.name, dataPoints]),
  );
  assertEquals(points["lock.acquire.duration"].length, 2);
  assertEquals(points["lock.hold.duration"].length, 1);
  assertEquals(points["lock.node.failures"][0].attributes, { node: closedPort, outcome: "failed" });
});

Deno.test("Prometheus example shows what was counted as a text page", async () => {
  await using nodes = await startNodes(3);
  await using redlock = createRedlock(nodes.addresses, { onEvent: count });
  await redlock.using("invoice:42", () => {});
  await redlock.using("invoice:42", () => {});
  const lines = page().split("\n");
  assert(lines.includes('redlock_events_total{type="acquired"} 2'));
  assert(lines.includes('redlock_events_total{type="released"} 2'));
  assert(lines.some((line) => /^redlock_held_seconds_total \d+(\.\d+)?$/u.test(line)));
});
