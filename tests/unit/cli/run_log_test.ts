import { assertEquals } from "@std/assert";
import type { Vote } from "../../../mod.ts";
import { eventText, plainEvent } from "../../../src/cli/run/run_log.ts";

const votes: readonly Vote[] = [
  { node: "redis://a:1", outcome: "granted", elapsedMs: 1 },
  { node: "redis://b:1", outcome: "granted", elapsedMs: 2 },
  { node: "redis://c:1", outcome: "failed", elapsedMs: 3, error: new Error("down\n") },
];

Deno.test("eventText() is one line about an event, with durations and counts of votes for people", () => {
  const resources = ["job\u{1b}[31m", "mail"];
  const acquired = {
    type: "acquired",
    resources,
    votes,
    elapsedMs: 12,
    holder: "7c1f09be web-3",
    attempts: 1,
    remainingMs: 29_700,
  } as const;
  assertEquals(
    eventText(acquired),
    'hasp: acquired "job\\u001b[31m", "mail": 2 granted, 1 failed, elapsed 12 ms, holder 7c1f09be web-3, attempts 1, remaining 29.7 s',
  );
  const cause = new Error("its validity\nhas ended");
  assertEquals(
    eventText({ type: "lost", resources: ["job"], reason: "expired", cause, heldMs: 61_000 }),
    'hasp: lost "job": reason expired, its validity\\u{a}has ended, held 1 min 1 s',
  );
  const reason = "aborted";
  assertEquals(
    eventText({ type: "denied", resources: ["s3"], reason, votes: [], attempts: 2, elapsedMs: 5 }),
    'hasp: denied "s3": reason aborted, attempts 2, elapsed 5 ms',
  );
  const broken = new Error("redis://:pw@h is down");
  assertEquals(
    eventText({
      type: "lost",
      resources: ["x://a@b"],
      reason: "expired",
      cause: broken,
      heldMs: 1,
    }),
    'hasp: lost "x://a@b": reason expired, redis://***@h is down, held 1 ms',
  );
  assertEquals(eventText({ type: "node-connected", node: "a" }), "hasp: node-connected: node a");
  assertEquals(eventText({ type: "skipped", resources: ["job"] }), 'hasp: skipped "job"');
});

Deno.test("plainEvent() is an event as data that JSON can hold", () => {
  const event = {
    type: "extended",
    resources: ["job"],
    votes,
    elapsedMs: 1,
    extensions: 2,
    remainingMs: Infinity,
  } as const;
  assertEquals(plainEvent(event), {
    type: "extended",
    resources: ["job"],
    votes: [
      { node: "redis://a:1", outcome: "granted", elapsedMs: 1 },
      { node: "redis://b:1", outcome: "granted", elapsedMs: 2 },
      { node: "redis://c:1", outcome: "failed", elapsedMs: 3, error: "down\\u{a}" },
    ],
    elapsedMs: 1,
    extensions: 2,
    remainingMs: null,
  });
  const error = new Error("down");
  assertEquals(plainEvent({ type: "node-disconnected", node: "a", error }).error, "down");
});
