import { assertEquals, assertStringIncludes } from "@std/assert";
import { COUNTER_TTL_MS } from "../../../src/fencing/token.ts";
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

Deno.test("waitersKey() keeps the list in the cluster slot of its key", () => {
  const lists = {
    "invoice:42": "{invoice:42}:waiters",
    "{user}:42": "{user}:42:waiters",
    "{}:42": "{{}:42}:waiters",
    "a{b": "{a{b}:waiters",
  };
  for (const [key, list] of Object.entries(lists)) assertEquals(scripts.waitersKey(key), list);
});

Deno.test("the scripts' numbers are those of their constants", () => {
  const { ACQUIRE_OR_WAIT, RELEASE, QUEUE_TTL_MS, SKEW_MS_MAX, WAKE_CHANNEL } = scripts;
  for (const { source } of [ACQUIRE_OR_WAIT, RELEASE]) {
    assertStringIncludes(source, `${QUEUE_TTL_MS})`);
    assertStringIncludes(source, `lead > ${SKEW_MS_MAX} `);
    assertStringIncludes(source, `'${WAKE_CHANNEL}' .. id`);
  }
  for (const { source } of [scripts.ACQUIRE_COUNTED, scripts.ACQUIRE_FENCED, scripts.RAISE]) {
    assertStringIncludes(source, `'PX', ${COUNTER_TTL_MS})`);
  }
});
