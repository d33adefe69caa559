import { assertEquals } from "@std/assert";
import type { Script } from "../../../src/redis_node/scripts/script.ts";
import { TRIED } from "../../../src/redis_node/operated_node.ts";
import { STATE_LUA, STATE_SHA1 } from "../../../src/redis_node/restart_guard.ts";
import * as scripts from "../../support/scripts.ts";

const STATE = { source: STATE_LUA, sha1: STATE_SHA1 };
const SCRIPTS = Object.entries({ ...scripts, STATE }).flatMap(([name, it]): [string, Script][] => {
  return typeof it === "object" ? [[name, it]] : [];
});

for (const [name, { source, sha1 }] of SCRIPTS) {
  Deno.test(`${name} is called by the SHA-1 of its source`, async () => {
    const digest = await crypto.subtle.digest("SHA-1", new TextEncoder().encode(source));
    assertEquals(sha1, new Uint8Array(digest).toHex());
  });
}

Deno.test("every script is one of its own, but that of KEEP", () => {
  assertEquals([SCRIPTS.length, new Set(SCRIPTS.map(([, { sha1 }]) => sha1)).size], [13, 12]);
});

Deno.test("no script replies a power, which is a fraction in newer versions of Lua", () => {
  const powers = SCRIPTS.flatMap(([, { source }]) =>
    source.replaceAll(/'[^']*'/gu, "''").match(/.*(?<!math\.floor\(2) \^.*/gu) ?? []
  );
  assertEquals(powers, []);
});

Deno.test("diagnose() tries every command that a script calls", () => {
  const called = SCRIPTS.flatMap(([, { source }]) =>
    [...source.matchAll(/redis\.p?call\('([A-Z]+)'/gu)].map(([, name]) => name)
  );
  // The first four are tried on their own; without PUBSUB the answer of PUBLISH is enough, and
  // without MGET each key is read alone.
  const tried = [...TRIED, "SET", "TIME", "INFO", "PUBLISH", "PUBSUB", "MGET"];
  assertEquals([...new Set(called)].filter((name) => !tried.includes(name)), []);
});

Deno.test("the scripts have the names that the library has", () => {
  const { COUNTER_PREFIX, READERS_PREFIX, SHARED, WAKE_CHANNEL } = scripts;
  const prefixes = [
    COUNTER_PREFIX,
    READERS_PREFIX,
    WAKE_CHANNEL,
    scripts.queueOf(""),
    "hasp:turn:",
  ];
  const named = SCRIPTS.flatMap(([, { source }]) => source.match(/(?<=')hasp:[^']*/gu) ?? []);
  assertEquals(new Set(named), new Set([...prefixes, SHARED]));
});
