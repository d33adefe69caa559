import { assert, assertEquals, assertGreater, assertRejects, assertThrows } from "@std/assert";
import { type Span, SpanStatusCode, trace } from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  type MetricReader,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { createRedlock, LockHeldError, LockLostError, QuorumError } from "@hasp/redlock";
import { otelListener } from "@hasp/redlock/otel";
import { startFakeClock, startNodes } from "@hasp/redlock/testing";
import { startTelemetry, telemetry } from "../examples/opentelemetry.ts";
import { eventually } from "../support/eventually.ts";

const CLOSED_PORT = "redis://127.0.0.1:1";

const spanExporter = new InMemorySpanExporter();
const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
/** Exports nothing by itself. */
const NEVER = { exportIntervalMillis: 2 ** 30, exportTimeoutMillis: 1_000 };
const globalReader = new PeriodicExportingMetricReader({ exporter: metricExporter, ...NEVER });
startTelemetry(new SimpleSpanProcessor(spanExporter), globalReader);

/** The spans of locks that a test has made. */
function lockSpans(): ReadableSpan[] {
  return spanExporter.getFinishedSpans().filter(({ name }) => name.startsWith("redlock."));
}

/** Runs `routine` in a span, as a handler of requests does. */
function inSpan<T>(name: string, routine: () => Promise<T>): Promise<{ span: Span; result: T }> {
  return trace.getTracer("test").startActiveSpan(name, async (span) => {
    try {
      return { span, result: await routine() };
    } finally {
      span.end();
    }
  });
}

/** The name, the outcome and the status of a span. */
function summary({ name, attributes, status }: ReadableSpan): unknown[] {
  return [name, attributes["redlock.outcome"], status.code];
}

/** Asserts that spans belong to another one. */
function assertParent(spans: readonly ReadableSpan[], parent: Span): void {
  const { spanId, traceId } = parent.spanContext();
  for (const { name, parentSpanContext } of spans) {
    assertEquals([parentSpanContext?.spanId, parentSpanContext?.traceId], [spanId, traceId], name);
  }
}

Deno.test("otelListener() refuses an option that it does not know, and a group that is no function", () => {
  const given: object[] = [{ groop: () => "job" }, { group: "job" }];
  for (const options of given) {
    assertThrows(() => otelListener(options), TypeError, Object.keys(options)[0]);
  }
});

Deno.test("otelListener() makes spans of a call and its lock below the span of their caller", async () => {
  spanExporter.reset();
  await using nodes = await startNodes(3);
  await using redlock = createRedlock(nodes.addresses, { onEvent: telemetry });
  let holder = "";
  const { span } = await inSpan("request", async () => {
    const lock = await redlock.acquire("invoice:42");
    holder = lock.holder;
    await assertRejects(() => redlock.acquire("invoice:42", { waitMs: 0 }), LockHeldError);
    await lock.release();
  });
  const spans = lockSpans();
  assertEquals(spans.map(summary), [
    ["redlock.acquire", "acquired", SpanStatusCode.UNSET],
    ["redlock.acquire", "held", SpanStatusCode.UNSET],
    ["redlock.hold", "released", SpanStatusCode.UNSET],
  ]);
  assertParent(spans, span);
  const { attributes, events: [{ name, attributes: attempt = {} }] } = spans[0];
  assertEquals(attributes, {
    "redlock.resources": ["invoice:42"],
    "redlock.group": "invoice",
    "redlock.outcome": "acquired",
    "redlock.attempts": 1,
    "redlock.holder": holder,
  });
  assertEquals(spans.map(({ attributes }) => attributes["redlock.holder"]), [
    holder,
    undefined,
    holder,
  ]);
  assertEquals([name, attempt["redlock.attempt"], attempt["redlock.granted"]], [
    "attempt",
    1,
    true,
  ]);
  const votes = attempt["redlock.votes"] as string[];
  assertGreater(votes.length, 1);
  assert(votes.every((vote) => /^redis:\/\/127\.0\.0\.1:\d+ granted$/u.test(vote)), `${votes}`);
  const global = { exporter: metricExporter, reader: globalReader };
  const outcome = { "redlock.group": "invoice", "redlock.outcome": "released" };
  assertEquals(await pointsOf("redlock.hold.duration s", global), [[outcome, 1]]);
});

Deno.test("otelListener() keeps calls apart that wait for one lock, in one client and in two", async () => {
  spanExporter.reset();
  await using nodes = await startNodes(3);
  await using one = createRedlock(nodes.addresses, { onEvent: telemetry });
  await using other = createRedlock(nodes.addresses, { onEvent: telemetry });
  const clients = [one, one, other, other];
  const callers = await Promise.all(
    clients.map((redlock, index) =>
      inSpan(
        `request ${index}`,
        () => redlock.using("invoice:42", () => new Promise((resolve) => setTimeout(resolve, 20))),
      )
    ),
  );
  assertEquals(lockSpans().length, 2 * callers.length);
  for (const { span } of callers) {
    const own = lockSpans().filter(({ parentSpanContext }) =>
      parentSpanContext?.spanId === span.spanContext().spanId
    );
    assertEquals(own.map(summary), [
      ["redlock.acquire", "acquired", SpanStatusCode.UNSET],
      ["redlock.hold", "released", SpanStatusCode.UNSET],
    ]);
    const [{ events, attributes, startTime, endTime }] = own;
    const attempts = events.filter(({ name }) => name === "attempt");
    assertEquals(attempts.length, attributes["redlock.attempts"]);
    const times = [startTime, ...events.map(({ time }) => time), endTime].map(([s, ns]) =>
      s * 1_000 + ns / 1_000_000
    );
    assertEquals(times, times.toSorted((a, b) => a - b));
  }
  const woken = lockSpans().flatMap(({ events }) => events).filter(({ name }) => name === "woken");
  assertGreater(woken.length, 0);
});

Deno.test("otelListener() ends the span of a lock that is handed over, and links it to the one that adopts it", async () => {
  spanExporter.reset();
  await using nodes = await startNodes(3);
  await using one = createRedlock(nodes.addresses, { onEvent: telemetry });
  await using other = createRedlock(nodes.addresses, { onEvent: telemetry });
  const given = await one.acquire("moved:1");
  const token = given.handOver();
  const lock = await other.adopt(token);
  await lock.release();
  await assertRejects(() => other.adopt(token), LockLostError);
  assertEquals(lockSpans().map(summary), [
    ["redlock.acquire", "acquired", SpanStatusCode.UNSET],
    ["redlock.hold", "handed-over", SpanStatusCode.UNSET],
    ["redlock.acquire", "acquired", SpanStatusCode.UNSET],
    ["redlock.hold", "released", SpanStatusCode.UNSET],
    ["redlock.acquire", "gone", SpanStatusCode.UNSET],
  ]);
  const from = lockSpans().map(({ attributes }) => attributes["redlock.adopted_from"]);
  assertEquals(from, [undefined, undefined, given.holder, given.holder, undefined]);
  const global = { exporter: metricExporter, reader: globalReader };
  const held = await pointsOf("redlock.held {lock}", global);
  assert(held.some((point) => isEqual(point, [{ "redlock.group": "moved" }, 0])), `${held}`);
});

Deno.test("otelListener() marks a call as an error if too few nodes answer, and a lock if it is lost", async () => {
  spanExporter.reset();
  await using nodes = await startNodes(3);
  const options = { onEvent: telemetry, ttlMs: 3_000 };
  await using redlock = createRedlock(nodes.addresses, options);
  using clock = startFakeClock();
  const lock = await redlock.acquire("invoice:42", { autoExtend: true });
  await clock.tick(1_500);
  assertEquals(lock.extensions, 1);
  await nodes.node(0).crash();
  await nodes.node(1).crash();
  const refusing = redlock.acquire("invoice:43", { waitMs: 0 });
  await assertRejects(() => clock.tickUntil(refusing), QuorumError);
  await clock.tick(3_000);
  assertEquals(lock.signal.aborted, true);
  await clock.tickUntil(lock.release());
  const [acquired, refused, held, ...more] = lockSpans();
  assertEquals(more, []);
  assertEquals(summary(acquired), ["redlock.acquire", "acquired", SpanStatusCode.UNSET]);
  assertEquals(refused.attributes["error.type"], "NO_QUORUM");
  assertEquals(refused.status, { code: SpanStatusCode.ERROR, message: "too few nodes answered" });
  assertEquals([held.name, held.attributes["error.type"]], ["redlock.hold", "LOCK_LOST"]);
  assertEquals(held.attributes["redlock.reason"], "extend-failed");
  assertEquals(held.status, {
    code: SpanStatusCode.ERROR,
    message: ((lock.signal.reason as Error).cause as Error).message,
  });
  const names = new Set(held.events.map(({ name }) => name));
  assertEquals(names, new Set(["extended", "extend-failed"]));
});

/** The data points of a metric: their attributes, and their values or counts. */
type Points = (readonly [attributes: object, value: number])[];

/** Reads the metrics of a meter provider of its own, or of the global one. */
async function pointsOf(
  name: string,
  { exporter, reader }: { exporter: InMemoryMetricExporter; reader: MetricReader },
): Promise<Points> {
  exporter.reset();
  await reader.forceFlush();
  const [{ scopeMetrics }] = exporter.getMetrics();
  const { metrics } = scopeMetrics.find(({ scope }) => scope.name === "@hasp/redlock")!;
  const found = metrics.find(({ descriptor }) => `${descriptor.name} ${descriptor.unit}` === name);
  return (found?.dataPoints ?? []).map(({ attributes, value }) =>
    [attributes, typeof value === "number" ? value : value.count] as const
  );
}

/** A listener whose metrics can be read. */
function measuring(group = () => "job") {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, ...NEVER });
  const meterProvider = new MeterProvider({ readers: [reader] });
  const onEvent = otelListener({ meterProvider, group });
  const points = (name: string) => pointsOf(name, { exporter, reader });
  return { onEvent, points, [Symbol.asyncDispose]: () => meterProvider.shutdown() };
}

const GROUP = { "redlock.group": "job" };
const grouped = (outcome: string) => ({ ...GROUP, "redlock.outcome": outcome });

Deno.test("otelListener() measures calls and locks", async () => {
  await using nodes = await startNodes(2);
  await using measured = measuring();
  const { onEvent, points } = measured;
  await using redlock = createRedlock(nodes.addresses, {
    onEvent,
    waitMs: 0,
    nodeTimeoutMs: 5_000,
  });
  const lock = await redlock.acquire("a");
  assertEquals(await points("redlock.held {lock}"), [[GROUP, 1]]);
  assertEquals(await points("redlock.failures {failure}"), [
    [grouped("no-quorum"), 0],
    [grouped("lost"), 0],
    [grouped("release-failed"), 0],
  ]);
  await lock.extend();
  await assertRejects(() => redlock.acquire("a"), LockHeldError);
  const signal = AbortSignal.timeout(10);
  await assertRejects(() => redlock.acquire("a", { waitMs: 60_000, signal }));
  await lock.release();
  const lost = await redlock.acquire("b", { ttlMs: 2_000 });
  await eventually(() => assertEquals(lost.signal.aborted, true));
  await lost.release(); // which is not counted a second time
  const kept = await redlock.acquire("c");
  await nodes.node(0).crash();
  await assertRejects(() => kept.release(), QuorumError);
  const { attributes } = lockSpans().at(-1)!;
  assertEquals([attributes["redlock.outcome"], attributes["error.type"]], [
    "release-failed",
    "NO_QUORUM",
  ]);
  await assertRejects(() => redlock.acquire("d"), QuorumError);
  assertEquals(await points("redlock.acquire.duration s"), [
    [grouped("acquired"), 3],
    [grouped("held"), 1],
    [grouped("aborted"), 1],
    [grouped("no-quorum"), 1],
  ]);
  assertEquals(await points("redlock.hold.duration s"), [
    [grouped("released"), 1],
    [{ ...grouped("lost"), "redlock.reason": "expired" }, 1],
    [grouped("release-failed"), 1],
  ]);
  assertEquals(await points("redlock.held {lock}"), [[GROUP, 0]]);
  assertEquals(await points("redlock.failures {failure}"), [
    [grouped("no-quorum"), 1],
    [grouped("lost"), 1],
    [grouped("release-failed"), 1],
  ]);
  assertEquals(await points("redlock.extensions {try}"), [[grouped("extended"), 1]]);
  assertEquals(await points("redlock.handoffs {lock}"), []); // nobody waited
  assertEquals(await points("redlock.attempts {attempt}"), [
    [{ ...GROUP, "redlock.granted": true }, 3],
    [{ ...GROUP, "redlock.granted": false }, 2],
  ]);
});

for (const type of ["attempt", "acquired", "extended"]) {
  Deno.test(`otelListener() counts no lock as held that ended when a listener closed the client at ${type}`, async () => {
    await using nodes = await startNodes(3);
    await using measured = measuring();
    await using redlock = createRedlock(nodes.addresses, {
      onEvent(event) {
        if (event.type === type) redlock.close();
        measured.onEvent(event);
      },
    });
    const use = async () => await (await redlock.acquire("a")).extend();
    await use().catch(() => {});
    await redlock.close();
    const held = await measured.points("redlock.held {lock}");
    assertEquals(held, [[GROUP, 0]]);
  });
}

Deno.test("otelListener() measures which nodes are connected, and whose votes fail", async () => {
  await using nodes = await startNodes(2);
  await using measured = measuring();
  const { onEvent, points } = measured;
  await using redlock = createRedlock([...nodes.addresses, CLOSED_PORT], { onEvent });
  await redlock.using("a", () => {});
  const [one, other] = nodes.addresses.map((address) => ({ "redlock.node": String(address) }));
  const down = { "redlock.node": CLOSED_PORT };
  const connected = async () => new Map(await points("redlock.node.connected "));
  await eventually(async () => {
    assertEquals([...(await connected()).values()].toSorted(), [0, 1, 1]);
  });
  await nodes.node(0).crash();
  await eventually(async () => {
    const now = [...await connected()];
    assertEquals(now.find(([node]) => isEqual(node, one))?.[1], 0);
    assertEquals(now.find(([node]) => isEqual(node, other))?.[1], 1);
  });
  await redlock.acquire("a", { waitMs: 0 }).catch(() => {});
  const failures = await points("redlock.node.failures {vote}");
  const failed = failures.map(([attributes]) => attributes);
  assert(failed.some((it) => isEqual(it, { ...down, "redlock.outcome": "failed" })));
  assertEquals(failed.some((it) => isEqual(it, { ...other, "redlock.outcome": "failed" })), false);
});

Deno.test("otelListener() counts the locks that a notification handed on, also if its group throws", async () => {
  await using nodes = await startNodes(3);
  await using measured = measuring(() => {
    throw new Error("no group");
  });
  const { onEvent, points } = measured;
  await using one = createRedlock(nodes.addresses);
  await using other = createRedlock(nodes.addresses, { onEvent });
  await eventually(async () => {
    const lock = await one.acquire("a");
    const waiting = other.acquire("a");
    await eventually(async () => assertEquals((await one.inspect("a")).waiters, 1));
    await lock.release();
    await (await waiting).release();
    const [[attributes, handoffs]] = await points("redlock.handoffs {lock}");
    assertEquals(attributes, {});
    assertGreater(handoffs, 0);
    assertEquals(await points("redlock.held {lock}"), [[{}, 0]]);
  });
});

function isEqual(one: object, other: object): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
