import { createServer } from "node:http";
import { PrometheusExporter } from "@opentelemetry/exporter-prometheus";
import { MeterProvider } from "@opentelemetry/sdk-metrics";
import { otelListener } from "@hasp/redlock/otel";

const exporter = new PrometheusExporter({ preventServerStart: true });
const meterProvider = new MeterProvider({ readers: [exporter] });

/** Pass it as `onEvent`. */
export const measure = otelListener({ meterProvider });

/** Answers each request with the page that Prometheus reads: `metricsServer.listen(9464)`. */
export const metricsServer = createServer((request, response) => {
  exporter.getMetricsRequestHandler(request, response);
});
