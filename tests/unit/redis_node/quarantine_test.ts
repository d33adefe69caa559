import { assertEquals } from "@std/assert";
import { quarantineOf } from "../../../src/redis_node/quarantine.ts";

Deno.test("quarantineOf() lasts for the guard if a node was emptied just now, whatever the clock's fraction", () => {
  for (let nowMs = 1_000.1; nowMs < 2_000; nowMs += 0.7) {
    assertEquals(quarantineOf(3_000, nowMs, -Infinity, 0)?.remainingMs, 3_000);
  }
});
