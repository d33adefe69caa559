import { assertEquals, assertStringIncludes } from "@std/assert";
import { createRedlock } from "../../../mod.ts";
import { connect } from "../../../src/transport/none.ts";

Deno.test("without TCP sockets a call ends at once, and says what to use", async () => {
  await using redlock = createRedlock("redis://10.0.0.1", { connect, waitMs: Infinity });
  const error = await redlock.acquire("report").catch((error) => error);
  assertEquals(error.code, "NO_QUORUM");
  assertStringIncludes(error.message, "by upstashNode() of @hasp/redlock/upstash");
});
