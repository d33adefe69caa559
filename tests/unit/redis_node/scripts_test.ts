import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import {
  COUNTER_AGE_MAX_MS,
  COUNTER_TTL_MS,
  HINT_TOLERANCE_MS,
} from "../../../src/fencing/token.ts";
import type { Script } from "../../../src/redis_node/scripts/script.ts";
import { scripts } from "../../support/scripts.ts";

const SCRIPTS = Object.entries(scripts).filter((entry): entry is [string, Script] => {
  return typeof entry[1] === "object";
});

for (const [name, { source, sha1 }] of SCRIPTS) {
  Deno.test(`${name} is called by the SHA-1 of its source`, async () => {
    const digest = await crypto.subtle.digest("SHA-1", new TextEncoder().encode(source));
    const hex = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0"));
    assertEquals(sha1, hex.join(""));
  });
}

Deno.test("every script is one of its own", () => {
  assertEquals(SCRIPTS.length, 10);
  assertEquals(new Set(SCRIPTS.map(([, { sha1 }]) => sha1)).size, SCRIPTS.length);
});

Deno.test("the scripts' numbers and names are those of their constants", () => {
  const { ACQUIRE_OR_WAIT, NOTIFIED_SUFFIX, QUEUE_LEAD_MS, QUEUE_TTL_MS, TAKEN_SUFFIX } = scripts;
  for (const { source } of [ACQUIRE_OR_WAIT, scripts.ACQUIRE_FENCED]) {
    assertStringIncludes(source, `last - ${QUEUE_LEAD_MS}000 `);
    assertStringIncludes(source, `now + ${QUEUE_LEAD_MS}000)`);
    assertStringIncludes(source, `.. '${TAKEN_SUFFIX}'`);
  }
  for (const { source } of [ACQUIRE_OR_WAIT, scripts.RELEASE_QUEUED]) {
    assertStringIncludes(source, `queue, ${QUEUE_TTL_MS})`);
  }
  for (const { source } of [ACQUIRE_OR_WAIT, scripts.RELEASE, scripts.LEAVE]) {
    assertStringIncludes(source, `'${scripts.WAKE_CHANNEL}' .. id`);
    assertStringIncludes(source, `'${scripts.queueOf("")}' .. key`);
    assertStringIncludes(source, `.. '${NOTIFIED_SUFFIX}'`);
  }
});

Deno.test("the numbers in the scripts that count are those of their constants", () => {
  const scriptsThatCount = [scripts.ACQUIRE_COUNTED, scripts.ACQUIRE_FENCED, scripts.RAISE];
  for (const { source } of scriptsThatCount) {
    assertStringIncludes(source, ` ${HINT_TOLERANCE_MS * 1_000} `);
    assertStringIncludes(source, ` ${Number.MAX_SAFE_INTEGER} `);
    assertStringIncludes(source, `'${scripts.COUNTER_PREFIX}' .. `);
    assertMatch(source, new RegExp(`\\b${COUNTER_TTL_MS}\\b`, "u"));
  }
  const [{ source }] = scriptsThatCount;
  assertStringIncludes(source, ` - ${COUNTER_AGE_MAX_MS * 1_000} `);
});
