import { assertEquals } from "@std/assert";
import { type Inspection, QuorumError, type Vote } from "../../../mod.ts";
import type { ListedLock } from "../../../src/operate/mod.ts";
import { formatInspected, toJson } from "../../../src/cli/inspect_command.ts";
import { paintColours, paintNothing, TIME_FORMAT } from "../../../src/cli/terminal.ts";

const AT = new Date("2026-02-03T04:05:06Z");
const SINCE = TIME_FORMAT.format(AT);
const VOTES: readonly Vote[] = [
  { node: "redis://a:1", outcome: "held", elapsedMs: 1 },
  { node: "redis://b:2", outcome: "held", elapsedMs: 2 },
  { node: "redis://c:3", outcome: "failed", elapsedMs: 3, error: new Error("gone\x1b[2J") },
];
const HELD: Inspection = {
  held: true,
  remainingMs: 12_345,
  mode: "exclusive",
  holders: [{ holder: "0123abcd", label: "web-3:1234", acquiredAt: AT }],
  waiters: 2,
  foreign: undefined,
  votes: VOTES,
};
const FREE: Inspection = {
  held: false,
  remainingMs: 0,
  mode: undefined,
  holders: [],
  waiters: undefined,
  foreign: undefined,
  votes: [{ node: "redis://a:1", outcome: "free", elapsedMs: 1 }],
};
const FOREIGN: Inspection = {
  ...HELD,
  remainingMs: Infinity,
  holders: [{ holder: "0123abcd", label: undefined, acquiredAt: undefined }],
  waiters: undefined,
  foreign: "has no TTL, so no lock library set it",
};
const UNKNOWN = new QuorumError("Cannot inspect lock: 1 of 3", { resources: ["d"], votes: VOTES });

Deno.test("formatInspected() has a row for each resource, and says what is wrong with keys", () => {
  const blocked = { ...FREE, foreign: FOREIGN.foreign, votes: VOTES };
  const left = { ...blocked, votes: [...VOTES.slice(1), ...FREE.votes] };
  const states = { a: HELD, "b\n": FREE, c: FOREIGN, d: UNKNOWN, e: blocked, f: left };
  const inspected = Object.entries(states).map(([resource, state]) => {
    return { resource, key: `app:${resource}`, state };
  });
  assertEquals(formatInspected(inspected, paintNothing), [
    "key         state    holder               since                expires in  waiting  nodes",
    `app:a       held     0123abcd web-3:1234  ${SINCE}  12.3 s      2        2 held, 1 failed`,
    "app:b\\u{a}  free     –                    –                    –           –        1 free",
    "app:c       held     0123abcd             ?                    forever     ?        2 held, 1 failed",
    "app:d       unknown  ?                    ?                    ?           ?        2 held, 1 failed",
    "app:e       blocked  ?                    ?                    ?           ?        2 held, 1 failed",
    "app:f       residue  ?                    ?                    ?           ?        1 held, 1 failed, 1 free",
    ..."cef".split("").map((name) => `app:${name}: this key has no TTL, so no lock library set it`),
  ]);
});

Deno.test("formatInspected() has a row for each of some readers, and one for all others", () => {
  const holders = Array.from({ length: 10 }, (_, index) => ({
    holder: `${index}`.repeat(8),
    label: `web-${index}`,
    acquiredAt: undefined,
  }));
  const state: Inspection = { ...HELD, mode: "shared", holders };
  const lines = formatInspected([{ resource: "a", key: "a", state }], paintNothing);
  assertEquals(lines.length, 10);
  assertEquals(lines[1].trim().split(/ {2,}/u).slice(0, 3), ["a", "held", "00000000 web-0"]);
  assertEquals(lines[8].trim().split(/ {2,}/u), ["77777777 web-7", "?"]);
  assertEquals(lines[9].trim(), "and 2 more");
});

Deno.test("formatInspected() tells residue, and what silent nodes leave open, from what is free", () => {
  const states = { a: false, b: undefined };
  const inspected = Object.entries(states).map(([resource, held]) => {
    const state: ListedLock = { ...HELD, mode: undefined, resource, held, remainingMs: 0 };
    return { resource, key: resource, state };
  });
  assertEquals(
    formatInspected(inspected, paintNothing).slice(1).map((line) => line.split(/ {2,}/u)),
    [
      ["a", "residue", "0123abcd web-3:1234", SINCE, "?", "2", "2 held, 1 failed"],
      ["b", "unknown", "0123abcd web-3:1234", SINCE, "?", "2", "2 held, 1 failed"],
    ],
  );
});

Deno.test("formatInspected() aligns cells in colours", () => {
  const inspected = [{ resource: "a", key: "a", state: FREE }];
  assertEquals(formatInspected(inspected, paintColours), [
    ["key", " state", " holder", " since", " expires in", " waiting", " nodes"]
      .map((text) => text.replace(/\w.*/u, "\x1b[2m$&\x1b[0m")).join(" "),
    "a    \x1b[32mfree\x1b[0m   –       –      –           –        1 free",
  ]);
});

Deno.test("toJson() has null for what is not known, and no control characters of servers", () => {
  const votes = [
    ...VOTES.slice(0, 2),
    { node: "redis://c:3", outcome: "failed", elapsedMs: 3, error: "gone\\u{1b}[2J" },
  ];
  const [holder, acquiredAt] = ["0123abcd", "2026-02-03T04:05:06.000Z"];
  const common = { resource: "a", key: "app:a", mode: null, foreign: null, error: null, votes };
  const exclusive = { ...common, held: true, mode: "exclusive" };
  const holders = [{ holder, label: "web-3:1234", acquiredAt }];
  const others = [{ holder, label: null, acquiredAt: null }];
  const { foreign } = FOREIGN;
  const error = { code: "NO_QUORUM", message: "Cannot inspect lock: 1 of 3" };
  const none = { holders: [], waiters: null };
  assertEquals(
    [HELD, FREE, FOREIGN, UNKNOWN].map((state) => toJson({ resource: "a", key: "app:a", state })),
    [
      { ...exclusive, remainingMs: 12_345, holders, waiters: 2 },
      { ...common, held: false, remainingMs: 0, ...none, votes: FREE.votes },
      { ...exclusive, remainingMs: null, holders: others, waiters: null, foreign },
      { ...common, held: null, remainingMs: null, ...none, error },
    ],
  );
});
