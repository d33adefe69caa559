/** How large the crowds on recipes for other clients are, and what they must report. */
import { assert, assertEquals, assertGreaterOrEqual } from "@std/assert";
import type { runCrowd } from "./crowd.ts";

/** Has a value, such as 10000, for a long run, which prints its reports. */
const LONG = Deno.env.get("HASP_LOCKS");

/** How many locks each crowd takes, and how many faults it survives at least. */
export const CROWD_SIZE = { locks: Number(LONG ?? 150), faults: 8 };

/** Expects that no two clients held the lock at once, and that few locks were lost. */
export function expectExclusion(report: Awaited<ReturnType<typeof runCrowd>>): void {
  if (LONG) console.log(JSON.stringify(report));
  assertEquals(report.overlaps, 0);
  assertGreaterOrEqual(report.locks, CROWD_SIZE.locks);
  assertGreaterOrEqual(report.faults, CROWD_SIZE.faults);
  assert(report.lost < report.locks);
}
