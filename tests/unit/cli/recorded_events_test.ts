import { assertEquals } from "@std/assert";
import { RecordedEvents } from "../../../src/cli/timeline/recorded_events.ts";

const START_MS = Date.parse("2026-02-03T04:05:06Z");

/** A line of one process. */
function line(process: string, atMs: number, type: string, fields: object = {}): string {
  return JSON.stringify({ timeMs: START_MS + atMs, process, type, resources: ["job"], ...fields });
}

/** The picture of these lines, and the bars of its rows: kind, beginning, end and text. */
function drawn(...lines: string[]) {
  const events = new RecordedEvents();
  events.read(lines.join("\n"), "file");
  const picture = events.picture("");
  const rows = picture.rows.map(({ name, bars }) => [
    name,
    ...bars.map(({ kind, fromMs, toMs, text }) => {
      return [kind, fromMs - picture.startMs, toMs - picture.startMs, text];
    }),
  ]);
  return { ...picture, rows };
}

Deno.test("RecordedEvents draws waits, holds and losses of several processes, and lists all events", () => {
  const { rows, summary, marks, endMs, lines } = drawn(
    line("b", 1_050, "acquired", { holder: "b0b00000", elapsedMs: 950 }),
    line("a", 0, "acquired", { holder: "a11ce000", elapsedMs: 0 }),
    line("a", 1_010, "released", { heldMs: 1_010, elapsedMs: 10, confirmed: true }),
    line("c", 700, "denied", { elapsedMs: 200, reason: "held", error: null }),
    line("b", 2_000, "lost", { heldMs: 950, reason: "gone", cause: { message: "no keys" } }),
    line("b", 2_100, "released", { heldMs: 1_050, elapsedMs: 1, confirmed: false }),
  );
  assertEquals(rows, [[
    "job",
    ["wait", 0, 0, "a asked for it and got it"],
    ["denied", 500, 700, "c asked for it and did not get it: held"],
    ["hold", 0, 1_000, "a (a11ce000): released"],
    ["wait", 100, 1_050, "b asked for it and got it"],
    ["hold", 1_050, 2_000, "b (b0b00000): lost"],
    ["lost", 2_000, 2_000, "b lost it: no keys"],
  ]]);
  assertEquals(summary, "1 resource, 3 processes: 2 acquired, 1 denied, 1 lost.");
  assertEquals(marks, [
    { atMs: START_MS + 2_000, checker: "b lost job", what: "no keys", kind: "violation" },
  ]);
  assertEquals([endMs - START_MS, lines[1], lines[4].what], [
    2_121,
    { atMs: START_MS + 700, who: "c", what: "denied job: elapsedMs 200, reason held" },
    "lost job: heldMs 950, reason gone, cause no keys",
  ]);
});

Deno.test("RecordedEvents ends what has no end with the last event, takes a hold from its end alone, and does with what it can read", () => {
  const node = (atMs: number, type: string, name: string) =>
    line("a", atMs, `node-${type}`, { node: name, resources: undefined });
  const { rows, summary } = drawn(
    line("a", 0, "acquired", { elapsedMs: "0", resources: ["x 10"] }),
    line("a", 0, "denied", { reason: "held", resources: "x" }),
    node(50, "connected", "n"),
    node(100, "disconnected", "n"),
    node(150, "disconnected", "n"),
    node(200, "disconnected", "m"),
    node(300, "connected", "m"),
    line("b", 400, "released", { heldMs: 100, resources: ["x 9"], confirmed: true }),
    line("b", 400, "released", { heldMs: 100, resources: ["x 9"], confirmed: false }),
    line("b", 400, "lost", { resources: ["x 9", "y"], elapsedMs: 5, reason: "expired" }),
    line("b", 400, "lost", {}),
  );
  assertEquals(rows, [
    ["?", ["denied", 0, 0, "a asked for it and did not get it: held"]],
    ["job", ["hold", 400, 400, "b: lost"], ["lost", 400, 400, "b lost it: "]],
    ["x 9", ["hold", 300, 400, "b: released"], ["hold", 300, 400, "b: it was gone"]],
    ["x 9 + y", ["hold", 400, 400, "b: lost"], ["lost", 400, 400, "b lost it: expired"]],
    ["x 10", ["wait", 0, 0, "a asked for it and got it"], ["hold", 0, 400, "a: still held"]],
    ["m", ["outage", 200, 300, "a could not reach it"]],
    ["n", ["outage", 100, 400, "a could not reach it"]],
  ]);
  assertEquals(summary, "5 resources, 2 processes: 1 acquired, 1 denied, 2 lost.");
});

Deno.test("RecordedEvents matches ends to the locks of their process by how long they were held", () => {
  const shared = { mode: "shared", elapsedMs: 0 };
  const { rows: [[, ...job]] } = drawn(
    line("b", 0, "acquired", { holder: "00000003", ...shared }),
    line("a", 0, "acquired", { holder: "00000001", ...shared }),
    line("a", 100, "acquired", { holder: "00000002", ...shared }),
    line("a", 100, "acquired", { holder: "00000004", ...shared, resources: ["other"] }),
    line("a", 200, "released", { heldMs: 101, elapsedMs: 0, confirmed: true }),
    line("a", 300, "released", { heldMs: 301, elapsedMs: 0, confirmed: true }),
  );
  assertEquals(job.slice(3, 5), [
    ["hold", 100, 200, "a (00000002): released"],
    ["hold", 0, 300, "a (00000001): released"],
  ]);
});

Deno.test("RecordedEvents finds times and processes as loggers write them, and skips what is no event", () => {
  const events = new RecordedEvents();
  const event = { type: "released", resources: ["job"], heldMs: 5 };
  events.read(
    [
      JSON.stringify({ ...event, time: START_MS, hostname: "web-3", pid: 12 }),
      JSON.stringify({ ...event, time: "2026-02-03T04:05:07Z" }),
      ...["", "no JSON", "null", "7"],
      ...[event, { timeMs: 1 }, { ...event, time: "soon" }, { ...event, timeMs: true }]
        .map((it) => JSON.stringify(it)),
    ].join("\r\n"),
    "worker-7",
  );
  assertEquals([events.count, events.skipped], [2, 7]);
  const { lines, summary, startMs } = events.picture("");
  assertEquals(lines.map(({ who }) => who), ["web-3:12", "worker-7"]);
  assertEquals(summary, "1 resource, 2 processes: 0 acquired, 0 denied, 0 lost.");
  assertEquals(startMs, START_MS - 5);
});
