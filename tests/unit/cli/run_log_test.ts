import { assertEquals } from "@std/assert";
import type { Vote } from "../../../mod.ts";
import { eventText, plainEvent, watchAttempts } from "../../../src/cli/run/run_log.ts";
import { startFakeClock } from "../../../src/testing/mod.ts";

const votes: readonly Vote[] = [
  { node: "redis://a:1", outcome: "granted", elapsedMs: 1 },
  { node: "redis://b:1", outcome: "granted", elapsedMs: 2 },
  { node: "redis://c:1", outcome: "failed", elapsedMs: 3, error: new Error("down\n") },
];

Deno.test("eventText() is one line about an event, with durations and counts of votes for people", () => {
  const resources = ["job\u{1b}[31m", "mail"];
  const took = { holder: "7c1f09be web-3", attempts: 1, remainingMs: 29_700 };
  const [cause, broken] = ["its validity\nhas ended", "redis://:pw@h is down"].map(Error);
  const [reason, lost] = ["aborted", { type: "lost", reason: "expired" }] as const;
  const denied = { type: "denied", reason, votes: [], attempts: 2, elapsedMs: 5 } as const;
  const events: [Parameters<typeof eventText>[0], string][] = [
    [
      { type: "acquired", resources, votes, elapsedMs: 12, ...took },
      'acquired "job\\u001b[31m", "mail": 2 granted, 1 failed, elapsed 12 ms, holder 7c1f09be web-3, attempts 1, remaining 29.7 s',
    ],
    [
      { ...lost, resources: ["job"], cause, heldMs: 61_000 },
      'lost "job": reason expired, its validity\\u{a}has ended, held 1 min 1 s',
    ],
    [{ ...denied, resources: ["s3"] }, 'denied "s3": reason aborted, attempts 2, elapsed 5 ms'],
    [
      { ...lost, resources: ["x://a@b"], cause: broken, heldMs: 1 },
      'lost "x://a@b": reason expired, redis://***@h is down, held 1 ms',
    ],
    [{ type: "node-connected", node: "a" }, "node-connected: node a"],
    [{ type: "skipped", resources: ["job"] }, 'skipped "job"'],
  ];
  for (const [event, text] of events) assertEquals(eventText(event), `hasp: ${text}`);
});

Deno.test("plainEvent() is an event as data that JSON can hold", () => {
  const event = { type: "extended", resources: ["job"], elapsedMs: 1, extensions: 2 } as const;
  assertEquals(plainEvent({ ...event, votes, remainingMs: Infinity }), {
    ...event,
    votes: [
      { node: "redis://a:1", outcome: "granted", elapsedMs: 1 },
      { node: "redis://b:1", outcome: "granted", elapsedMs: 2 },
      { node: "redis://c:1", outcome: "failed", elapsedMs: 3, error: "down\\u{a}" },
    ],
    remainingMs: null,
  });
  const error = new Error("down");
  assertEquals(plainEvent({ type: "node-disconnected", node: "a", error }).error, "down");
});

Deno.test("watchAttempts() reports once that a quorum of nodes fails for a minute, and again after it has answered", async () => {
  using clock = startFakeClock();
  const texts: string[] = [];
  const watch = watchAttempts(() => 3, (text) => texts.push(text));
  const attempt = (...outcomes: Vote["outcome"][]) => {
    const votes = outcomes.map((outcome, index) => ({ node: `${index}`, outcome, elapsedMs: 1 }));
    watch({ type: "attempt", resources: ["a"], votes, attempt: 1, granted: false, elapsedMs: 1 });
  };
  const minute = async (...outcomes: Vote["outcome"][]) => {
    attempt(...outcomes);
    await clock.tick(60_000);
    attempt(...outcomes);
    return texts.splice(0).length;
  };
  assertEquals(await minute("failed", "denied"), 0);
  assertEquals(await minute("failed", "timed-out"), 1);
  assertEquals(await minute("failed", "timed-out"), 0);
  assertEquals(await minute("denied", "denied"), 0);
  assertEquals(await minute("granted", "failed", "quarantined"), 1);
});
