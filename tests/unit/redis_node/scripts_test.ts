import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import {
  COUNTER_AGE_MS_MAX,
  COUNTER_TTL_MS,
  HINT_TOLERANCE_MS,
} from "../../../src/fencing/token.ts";
import type { Script } from "../../../src/redis_node/scripts/script.ts";
import { TRIED } from "../../../src/redis_node/scripts/trial.ts";
import * as scripts from "../../support/scripts.ts";

const SCRIPTS = Object.entries(scripts).filter((entry): entry is [string, Script] => {
  return typeof entry[1] === "object";
});

for (const [name, { source, sha1 }] of SCRIPTS) {
  Deno.test(`${name} is called by the SHA-1 of its source`, async () => {
    const digest = await crypto.subtle.digest("SHA-1", new TextEncoder().encode(source));
    assertEquals(sha1, new Uint8Array(digest).toHex());
  });
}

Deno.test("every script is one of its own", () => {
  assertEquals([SCRIPTS.length, new Set(SCRIPTS.map(([, { sha1 }]) => sha1)).size], [17, 17]);
});

Deno.test("no script replies a power, which is a fraction in newer versions of Lua", () => {
  const powers = SCRIPTS.flatMap(([, { source }]) =>
    source.replaceAll(/'[^']*'/gu, "''").match(/.*(?<!math\.floor\(2) \^.*/gu) ?? []
  );
  assertEquals(powers, []);
});

Deno.test("TRIAL and diagnose() try every command that a script calls", () => {
  const called = SCRIPTS.flatMap(([, { source }]) =>
    [...source.matchAll(/redis\.p?call\('([A-Z]+)'/gu)].map(([, name]) => name)
  );
  // SET, TIME and PUBLISH are tried on their own; without PUBSUB the answer of PUBLISH is enough,
  // and without MGET a lock is asked for alone.
  const tried = [...TRIED, "SET", "TIME", "PUBLISH", "PUBSUB", "MGET"];
  assertEquals([...new Set(called)].filter((name) => !tried.includes(name)), []);
  const named = scripts.TRIAL.source.matchAll(/try\((\d+), '([A-Z]+)', (?!fence\) then)/gu);
  assertEquals(
    [...named].map(([, number, name]) => `${number} ${name}`),
    TRIED.map((name, index) => `${index + 1} ${name}`),
  );
});

Deno.test("the scripts' numbers and names are those of their constants", () => {
  const {
    ACQUIRE_ANY,
    ACQUIRE_OR_WAIT,
    ACQUIRE_SHARED,
    ACQUIRE_COUNTED,
    ADOPT,
    RAISE,
    RELEASE,
    RELEASE_QUEUED,
  } = scripts;
  const { PATIENCE_MS_MAX, PATIENCE_MS_MIN, TURN_OVER_MS, TURN_PREFIX } = scripts;
  const { QUEUE_LEAD_MS, QUEUE_TTL_MS, WATCH_SUFFIX, TAKEN_SUFFIX, WAKE_CHANNEL } = scripts;
  const { BESIDE_SUFFIX, RELEASE_SHARED } = scripts;
  const expected: readonly (readonly [Script[], string[]])[] = [
    [[ACQUIRE_OR_WAIT], [
      `last - ${QUEUE_LEAD_MS}000 `,
      `now + ${QUEUE_LEAD_MS}000 `,
      `.. '${TAKEN_SUFFIX}'`,
    ]],
    [[RELEASE_QUEUED, RELEASE_SHARED], [`.. '${BESIDE_SUFFIX}'`]],
    [[ACQUIRE_OR_WAIT, RELEASE_QUEUED], [`queue, ${QUEUE_TTL_MS})`]],
    [[ACQUIRE_OR_WAIT, RELEASE, RELEASE_QUEUED], [
      `'${WAKE_CHANNEL}' .. id`,
      `'${scripts.queueOf("")}' .. key`,
      `.. '${WATCH_SUFFIX}'`,
      `or ${PATIENCE_MS_MIN}, ${PATIENCE_MS_MAX})`,
      `'PX', wait + ${TURN_OVER_MS})`,
      `'PTTL', '${TURN_PREFIX}' .. key) - ${TURN_OVER_MS}\n`,
    ]],
    [[ACQUIRE_COUNTED, ACQUIRE_OR_WAIT, ADOPT, RAISE], [
      ` ${HINT_TOLERANCE_MS * 1_000} `,
      ` ${Number.MAX_SAFE_INTEGER} `,
      `'${scripts.COUNTER_PREFIX}' .. `,
    ]],
    [[ACQUIRE_OR_WAIT, ACQUIRE_ANY, ACQUIRE_SHARED, RELEASE_QUEUED], [`'${scripts.SHARED}'`]],
    [[ACQUIRE_SHARED], [`'${scripts.READERS_PREFIX}'`]],
    [[ACQUIRE_COUNTED], [` - ${COUNTER_AGE_MS_MAX * 1_000} `]],
  ];
  for (const [sources, texts] of expected) {
    for (const { source } of sources) for (const text of texts) assertStringIncludes(source, text);
  }
  for (const { source } of [ACQUIRE_COUNTED, ACQUIRE_OR_WAIT, RAISE]) {
    assertMatch(source, new RegExp(`\\b${COUNTER_TTL_MS}\\b`, "u"));
  }
});
