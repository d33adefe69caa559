import { assertEquals } from "@std/assert";
import {
  Causes,
  markerAgeMs,
  oldCountsBelow,
  type Quarantine,
  quarantineOf,
  restartedAtMs,
} from "../../../src/redis_node/quarantine.ts";

/** What a server answers to `INFO server`, in part. */
function info(uptime: string): string {
  return `# Server\r\nredis_version:7.0.15\r\n${uptime}\r\nuptime_in_days:0\r\n`;
}

for (
  const [uptime, atMs] of [
    ["uptime_in_seconds:0", 11_000],
    ["uptime_in_seconds:1", 10_000],
    ["uptime_in_seconds:86400", 11_000 - 86_400_000],
    ["uptime_in_seconds:-59", 11_000],
    ["uptime_in_seconds:-1", 11_000],
    ["uptime_in_seconds:", 11_000],
    ["uptime_in_seconds:soon", 11_000],
    ["process_uptime_in_seconds:5", -Infinity],
    ["uptime_in_seconds_more:5", -Infinity],
  ] as const
) {
  Deno.test(`restartedAtMs() of ${uptime} is a second late: ${atMs}`, () => {
    assertEquals(restartedAtMs(info(uptime), 10_000), atMs);
  });
}

Deno.test("restartedAtMs() of an answer without the uptime is long ago", () => {
  assertEquals(restartedAtMs("", 10_000), -Infinity);
});

for (
  const [what, restartedMs, ageMs, remainingMs, reason] of [
    ["new in every way", 10_000, 0, 500, "restarted"],
    ["restarted of late", 9_700, 5_000, 200, "restarted"],
    ["emptied of late", -Infinity, 100, 400, "emptied"],
    ["restarted, and emptied later", 9_600, 100, 400, "emptied"],
    ["emptied, and restarted later", 9_900, 400, 400, "restarted"],
    ["one of a millisecond less than the guard", -Infinity, 499, 1, "emptied"],
  ] as const
) {
  Deno.test(`quarantineOf() a server that is ${what} ends ${remainingMs} ms later`, () => {
    const quarantine = quarantineOf(500, 10_000, restartedMs, ageMs);
    assertEquals(quarantine, { reason, remainingMs, sinceMs: 9_500 + remainingMs });
  });
}

Deno.test("quarantineOf() a server that is as old as the guard is none", () => {
  assertEquals(quarantineOf(500, 10_000, 9_500, 500), undefined);
  assertEquals(quarantineOf(500, 10_000, -Infinity, 501), undefined);
});

Deno.test("Causes tells one that shows again, more or less at the same time, once", () => {
  const causes = new Causes();
  const quarantine = (sinceMs: number): Quarantine => {
    return { reason: "restarted", sinceMs, remainingMs: 1 };
  };
  const times = [1_000, 1_000, 2_900, 100, 3_001, 4_000, 9_000];
  const fresh = times.filter((sinceMs) => causes.isNew(quarantine(sinceMs)));
  assertEquals(fresh, [1_000, 3_001, 9_000]);
});

Deno.test("oldCountsBelow() is the clock of the restart, and as much as a counter may be ahead of it", () => {
  assertEquals(oldCountsBelow(1_700_000_000_000, 90_000), (1_700_000_000_000 - 29_000) * 1_000);
  assertEquals(oldCountsBelow(1_700_000_000_000, 0.5), 1_700_000_060_999_500);
  assertEquals(oldCountsBelow(1_700_000_000_000, Infinity), -Infinity); // the uptime is not known
});

for (
  const [marker, ageMs] of [
    ["1000", 9_000],
    ["10000", 0],
    ["10001", undefined],
    ["99999999999999", undefined],
    ["-5", undefined],
    ["", undefined],
    ["abc", undefined],
    ["1e3", undefined],
    [" 1", undefined],
    ["1.5", undefined],
  ] as const
) {
  Deno.test(`markerAgeMs() of ${JSON.stringify(marker)} is ${ageMs}`, () => {
    assertEquals(markerAgeMs(marker, 10_000), ageMs);
  });
}
