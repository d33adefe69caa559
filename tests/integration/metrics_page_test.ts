import { assert, assertEquals, assertGreater } from "@std/assert";
import type { AddressInfo } from "node:net";
import { PrometheusExporter, PrometheusSerializer } from "@opentelemetry/exporter-prometheus";
import { MeterProvider } from "@opentelemetry/sdk-metrics";
import { createRedlock, type RedlockEvent } from "@hasp/redlock";
import { otelListener } from "@hasp/redlock/otel";
import { startNodes } from "@hasp/redlock/testing";
import { measure, metricsServer } from "../examples/prometheus.ts";
import { tablesOf } from "../docs/pages.ts";

/** One line with a value. */
interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LINE =
  /^(?<name>[a-zA-Z_:][\w:]*)(?:\{(?<labels>.*)\})? (?<value>-?[\d.e+-]+|NaN|[+-]Inf)(?: \d+)?$/u;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)/gu;

/**
 * Reads a page.
 *
 * @throws {Error} If a line is neither a comment nor a sample, or a sample has no type.
 */
function parsePage(page: string): Sample[] {
  const types = new Map<string, string>();
  const samples: Sample[] = [];
  for (const line of page.split("\n").filter((line) => line !== "")) {
    const [, family, type] = /^# TYPE (\S+) (counter|gauge|histogram)$/u.exec(line) ?? [];
    if (family) types.set(family, type);
    if (line.startsWith("# ")) continue;
    const { name, labels = "", value } = LINE.exec(line)?.groups ?? {};
    if (!name) throw new Error(`No sample: ${line}`);
    const found = [...labels.matchAll(LABEL)];
    if (found.map(([text]) => text).join("") !== labels) throw new Error(`No labels: ${line}`);
    if (!types.has(name) && types.get(name.replace(/_(count|sum|bucket)$/u, "")) !== "histogram") {
      throw new Error(`No type: ${line}`);
    }
    samples.push({
      name,
      labels: Object.fromEntries(found.map(([, name, value]) => [name, value])),
      value: Number(value),
    });
  }
  return samples;
}

/** A metric in a query: its name, and the labels by which it is selected or grouped. */
interface Selector {
  readonly name: string;
  readonly matchers: Readonly<Record<string, string>>;
}

/** The metrics of a query, which all begin with `redlock_`. */
function selectorsOf(query: string): Selector[] {
  const ungrouped = query.replaceAll(/\b(?:by|on) \([^)]*\)/gu, "");
  return [...ungrouped.matchAll(/\b(redlock_\w+)(?:\{([^}]*)\})?(?!\w*=)/gu)].map(
    ([, name, matchers = ""]) => ({
      name,
      matchers: Object.fromEntries(
        [...matchers.matchAll(LABEL)].map(([, name, value]) => [name, value]),
      ),
    }),
  );
}

/** The labels by which a query groups. */
function groupsOf(query: string): string[] {
  return [...query.matchAll(/\bby \(([^)]*)\)/gu)].flatMap(([, names]) => names.split(/,\s*/u));
}

const dashboard = JSON.parse(
  await Deno.readTextFile(new URL("../../docs/grafana-dashboard.json", import.meta.url)),
);

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly description: string;
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
}
const panels: readonly Panel[] = dashboard.panels;

/** The queries of the manual. */
const QUERIES = tablesOf("event").flatMap(({ rows }) =>
  rows.flatMap(([, query]) => /^`(.+)`$/u.exec(query)?.[1] ?? [])
);

/** One event of each kind, and of each outcome. */
function everyEvent(): RedlockEvent[] {
  const [resources, node, error] = [["invoice:42"], "redis://127.0.0.1:1", new Error("refused")];
  const votes = (["failed", "timed-out", "quarantined"] as const).map((outcome) => {
    return { node, outcome, elapsedMs: 1 };
  });
  const round = { resources, votes, elapsedMs: 1, remainingMs: 1, heldMs: 1, attempts: 1 };
  const acquired = { type: "acquired", holder: "7c1f09be web-3:1234", ...round } as const;
  return [
    { type: "node-connected", node },
    { type: "node-disconnected", node, error },
    { type: "attempt", ...round, attempt: 1, granted: false },
    { type: "woken", resources, elapsedMs: 1 },
    { type: "attempt", ...round, attempt: 2, granted: true },
    acquired,
    { type: "extended", ...round, extensions: 1 },
    { type: "extend-failed", ...round },
    { type: "released", ...round, confirmed: true, keptMs: 0 },
    acquired,
    { type: "release-failed", ...round, error },
    acquired,
    { type: "lost", resources, heldMs: 1, reason: "expired", cause: error },
    acquired,
    { type: "handed-over", ...round, holder: acquired.holder },
    { type: "denied", ...round, reason: "held" },
    { type: "denied", ...round, reason: "no-quorum" },
    { type: "denied", ...round, reason: "aborted" },
    { type: "denied", ...round, reason: "gone" },
  ];
}

/** The page of the exporter after these events. */
async function pageOf(events: readonly RedlockEvent[], group?: () => string): Promise<Sample[]> {
  const exporter = new PrometheusExporter({ preventServerStart: true });
  const meterProvider = new MeterProvider({ readers: [exporter] });
  const listener = otelListener({ meterProvider, group });
  for (const event of events) listener(event);
  const { resourceMetrics } = await exporter.collect();
  await meterProvider.shutdown();
  return parsePage(new PrometheusSerializer().serialize(resourceMetrics));
}

Deno.test("Prometheus example serves a page with what the locks of a client did", async () => {
  await new Promise<void>((resolve) => metricsServer.listen(0, "127.0.0.1", resolve));
  try {
    await using nodes = await startNodes(3);
    await using redlock = createRedlock(nodes.addresses, { onEvent: measure });
    await redlock.using("invoice:42", () => {});
    await redlock.using("invoice:42", () => {});
    const { port } = metricsServer.address() as AddressInfo;
    const response = await fetch(`http://127.0.0.1:${port}/metrics`);
    assert(response.headers.get("content-type")?.startsWith("text/plain"));
    const samples = parsePage(await response.text());
    const value = (name: string, label: string, is: string) =>
      samples.find((sample) => sample.name === name && sample.labels[label] === is)?.value;
    assertEquals(value("redlock_acquire_duration_count", "redlock_outcome", "acquired"), 2);
    assertEquals(value("redlock_hold_duration_count", "redlock_outcome", "released"), 2);
    assertEquals(value("redlock_attempts_total", "redlock_granted", "true"), 2);
    const [node] = nodes.addresses;
    assertEquals(value("redlock_node_connected", "redlock_node", String(node)), 1);
    assertEquals(samples.find(({ name }) => name === "redlock_held")?.value, 0);
    const seconds = value("redlock_hold_duration_sum", "redlock_outcome", "released")!;
    assert(seconds > 0 && seconds < 10, `${seconds}`);
    assertEquals(samples.some(({ labels }) => "redlock_resources" in labels), false);
  } finally {
    const closed = new Promise((resolve) => metricsServer.close(resolve));
    metricsServer.closeAllConnections();
    await closed;
  }
});

Deno.test("otelListener() names no resource in a metric, but for its group", async () => {
  const plain = await pageOf(everyEvent());
  assertEquals(plain.some(({ labels }) => Object.values(labels).join().includes("invoice")), false);
  const grouped = await pageOf(everyEvent(), () => "invoice");
  const withGroup = grouped.filter(({ labels }) => labels.redlock_group === "invoice");
  assertEquals(
    new Set(withGroup.map(({ name }) => name.replace(/_(total|count|sum|bucket)$/u, ""))),
    new Set([
      ...["redlock_acquire_duration", "redlock_hold_duration", "redlock_held", "redlock_attempts"],
      ...["redlock_handoffs", "redlock_extensions", "redlock_failures"],
    ]),
  );
});

Deno.test("Grafana dashboard has panels that say what they show, in a grid without overlaps", () => {
  assertGreater(panels.length, 7);
  assertEquals(new Set(panels.map(({ id }) => id)).size, panels.length);
  assertEquals(panels.filter(({ title, description }) => !title || !description), []);
  const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }: Grid) =>
    Array.from({ length: w * h }, (_, cell) => `${x + cell % w} ${y + Math.floor(cell / w)}`)
  );
  assertEquals(new Set(cells).size, cells.length);
  const [variable] = dashboard.templating.list;
  const sources = new Set(JSON.stringify(panels).match(/"uid":"[^"]*"/gu));
  assertEquals([...sources], [`"uid":"\${${variable.name}}"`]);
});

interface Grid {
  readonly gridPos: {
    readonly x: number;
    readonly y: number;
    readonly w: number;
    readonly h: number;
  };
}

/**
 * Asserts that a query asks for metrics that the exporter has, with labels and values that these
 * have.
 */
function assertAnswered(query: string, samples: readonly Sample[]): void {
  const selectors = selectorsOf(query);
  assertGreater(selectors.length, 0, query);
  for (const { name, matchers } of selectors) {
    const found = samples.filter((sample) => sample.name === name);
    assertGreater(found.length, 0, `${name} of ${query}`);
    const names = new Set(found.flatMap(({ labels }) => Object.keys(labels)));
    assertEquals(groupsOf(query).filter((group) => !names.has(group)), [], query);
    const matching = found.filter(({ labels }) =>
      Object.entries(matchers).every(([label, value]) => labels[label] === value)
    );
    assertGreater(matching.length, 0, `${JSON.stringify(matchers)} of ${query}`);
  }
}

for (const { title, targets } of panels) {
  Deno.test(`Grafana dashboard asks in "${title}" for metrics and labels that the exporter has`, async () => {
    const samples = await pageOf(everyEvent(), () => "invoice");
    assertGreater(targets.length, 0);
    for (const { expr, legendFormat } of targets) {
      assertAnswered(expr, samples);
      const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/gu)].map(([, label]) => label);
      assertEquals(shown, groupsOf(expr).filter((group) => group !== "le"), expr);
    }
  });
}

Deno.test("otelListener() counts failures from 0 on, before the first of them", async () => {
  const { type, node } = { type: "node-connected", node: "redis://127.0.0.1:1" } as const;
  const failuresOf = (samples: readonly Sample[]) =>
    samples.filter(({ name }) => name === "redlock_failures_total").map(({ labels, value }) => {
      return [labels.redlock_group, labels.redlock_outcome, value];
    });
  assertEquals(failuresOf(await pageOf([{ type, node }])), [
    [undefined, "no-quorum", 0],
    [undefined, "lost", 0],
    [undefined, "release-failed", 0],
  ]);
  const grouped = await pageOf([{ type, node }, everyEvent()[2]], () => "invoice");
  assertEquals(failuresOf(grouped), [
    ["invoice", "no-quorum", 0],
    ["invoice", "lost", 0],
    ["invoice", "release-failed", 0],
  ]);
  assertEquals(failuresOf(await pageOf(everyEvent())).map(([, , value]) => value), [1, 1, 1]);
});

Deno.test("the manual's queries ask for metrics and labels that the exporter has", async () => {
  const samples = await pageOf(everyEvent());
  assertGreater(QUERIES.length, 3);
  for (const query of QUERIES) assertAnswered(query, samples);
});

Deno.test("the manual's table of metrics names every metric, with its attributes and their values", async () => {
  const events = everyEvent();
  const shared = ["acquired", "released"].map((wanted) => {
    return { ...events.find(({ type }) => type === wanted)!, mode: "shared" } as RedlockEvent;
  });
  const samples = await pageOf([...events, ...shared], () => "invoice");
  const emitted = new Map<string, Set<string>>();
  for (const { name, labels } of samples) {
    const family = name.replace(/_(total|count|sum|bucket)$/u, "");
    if (!family.startsWith("redlock_")) continue;
    const known = emitted.get(family) ?? new Set();
    for (const [label, value] of Object.entries(labels)) {
      if (label.startsWith("redlock_")) known.add(label);
      if (label === "redlock_outcome") known.add(value);
    }
    emitted.set(family, known);
  }
  const codes = (cell: string) => [...cell.matchAll(/`([^`]+)`/gu)].map(([, code]) => code);
  const [{ rows }] = tablesOf("metric");
  const shown = rows.map(([name, , attributes]) =>
    [codes(name)[0], codes(attributes)].flat().map((it) => it.replaceAll(".", "_"))
  );
  assertEquals(
    shown.map(([name, ...rest]) => [name, rest.toSorted()]).toSorted(),
    [...emitted].map(([name, rest]) => [name, [...rest].toSorted()]).toSorted(),
  );
});

Deno.test("Grafana dashboard shows every metric that the exporter has", async () => {
  const family = (name: string) => name.replace(/_(count|sum|bucket)$/u, "");
  const samples = await pageOf(everyEvent());
  const emitted = samples.map(({ name }) => family(name)).filter((it) => it.startsWith("redlock_"));
  const queries = panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => selectorsOf(expr)));
  const shown = new Set(queries.map(({ name }) => family(name)));
  assertEquals([...new Set(emitted)].filter((name) => !shown.has(name)), []);
});
