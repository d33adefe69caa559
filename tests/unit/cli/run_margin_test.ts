import { assertEquals } from "@std/assert";
import { marginMs } from "../../../src/cli/run/run_command.ts";

Deno.test("marginMs() is a twentieth of the TTL, and at least 100 ms", () => {
  assertEquals([1_000, 2_000, 30_000].map(marginMs), [100, 100, 1_500]);
});
