import { assertEquals } from "@std/assert";
import { RecordedEvents } from "../../../src/cli/timeline/recorded_events.ts";

const START_MS = Date.parse("2026-02-03T04:05:06Z");

/** A line of one process. */
function line(process: string, atMs: number, type: string, fields: object = {}): string {
  return JSON.stringify({ timeMs: START_MS + atMs, process, type, resources: ["job"], ...fields });
}

/** The bars of each row, as kind, beginning, end and text. */
function bars(...lines: string[]): Record<string, unknown[]> {
  const events = new RecordedEvents();
  events.read(lines.join("\n"), "file");
  const { rows } = events.picture("");
  return Object.fromEntries(rows.map(({ name, bars }) => [
    name,
    bars.map(({ kind, fromMs, toMs, text }) => [kind, fromMs, toMs, text]),
  ]));
}

Deno.test("RecordedEvents draws waits, holds and losses of several processes", () => {
  const drawn = bars(
    line("b", 1_050, "acquired", { holder: "b0b00000", elapsedMs: 950 }),
    line("a", 0, "acquired", { holder: "a11ce000", elapsedMs: 0 }),
    line("a", 1_010, "released", { heldMs: 1_010, elapsedMs: 10, confirmed: true }),
    line("c", 700, "denied", { elapsedMs: 200, reason: "held" }),
    line("b", 2_000, "lost", { heldMs: 950, reason: "gone", cause: "its keys are gone" }),
    line("b", 2_100, "released", { heldMs: 1_050, elapsedMs: 1, confirmed: false }),
  );
  assertEquals(drawn, {
    job: [
      ["wait", 0, 0, "a asked for it and got it"],
      ["denied", 500, 700, "c asked for it and did not get it: held"],
      ["hold", 0, 1_000, "a (a11ce000): released"],
      ["wait", 100, 1_050, "b asked for it and got it"],
      ["hold", 1_050, 2_000, "b (b0b00000): lost"],
      ["lost", 2_000, 2_000, "b lost it: its keys are gone"],
    ],
  });
});

Deno.test("RecordedEvents ends what has no end with the last event, and takes a hold from its end alone", () => {
  assertEquals(
    bars(
      line("a", 0, "acquired", { holder: "a11ce000", elapsedMs: 0, resources: ["a", "b"] }),
      line("a", 100, "node-disconnected", { node: "redis://n", resources: undefined }),
      line("a", 150, "node-disconnected", { node: "redis://n", resources: undefined }),
      line("b", 400, "released", { heldMs: 100, elapsedMs: 0, confirmed: true }),
    ),
    {
      "a + b": [
        ["wait", 0, 0, "a asked for it and got it"],
        ["hold", 0, 400, "a (a11ce000): still held"],
      ],
      job: [["hold", 300, 400, "b: released"]],
      "redis://n": [["outage", 100, 400, "a could not reach it"]],
    },
  );
});

Deno.test("RecordedEvents matches ends to the locks of their process by how long they were held", () => {
  const shared = { mode: "shared", elapsedMs: 0 };
  const { job } = bars(
    line("a", 0, "acquired", { holder: "00000001", ...shared }),
    line("a", 100, "acquired", { holder: "00000002", ...shared }),
    line("a", 200, "released", { heldMs: 101, elapsedMs: 0, confirmed: true }),
    line("a", 300, "released", { heldMs: 301, elapsedMs: 0, confirmed: true }),
  );
  assertEquals(job.slice(2), [
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
      ...["", "no JSON", "null", "7", JSON.stringify(event), JSON.stringify({ timeMs: 1 })],
    ].join("\r\n"),
    "worker-7",
  );
  assertEquals([events.count, events.skipped], [2, 5]);
  const { lines, summary, originMs } = events.picture("");
  assertEquals(lines.map(({ who }) => who), ["web-3:12", "worker-7"]);
  assertEquals(summary, "1 resource, 2 processes: 0 acquired, 0 denied, 0 lost.");
  assertEquals(originMs, START_MS - 5);
});
