import { assertEquals } from "@std/assert";
import { type Inspection, QuorumError, type Vote } from "../../../mod.ts";
import { formatInspected, toJson } from "../../../src/cli/inspect_command.ts";
import { paintColours, paintNothing } from "../../../src/cli/terminal.ts";

const VOTES: readonly Vote[] = [
  { node: "redis://a:1", outcome: "held", elapsedMs: 1 },
  { node: "redis://b:2", outcome: "held", elapsedMs: 2 },
  { node: "redis://c:3", outcome: "failed", elapsedMs: 3, error: new Error("gone\x1b[2J") },
];
const HELD: Inspection = {
  held: true,
  remainingMs: 12_345,
  holder: "0123abcd web-3:1234",
  sharers: undefined,
  waiters: 2,
  foreign: undefined,
  votes: VOTES,
};
const FREE: Inspection = {
  held: false,
  remainingMs: 0,
  holder: undefined,
  sharers: undefined,
  waiters: undefined,
  foreign: undefined,
  votes: [{ node: "redis://a:1", outcome: "free", elapsedMs: 1 }],
};
const FOREIGN: Inspection = {
  ...HELD,
  remainingMs: Infinity,
  holder: "0123abcd",
  waiters: undefined,
  foreign: "has no TTL, so no lock library set it",
};
const UNKNOWN = new QuorumError("Cannot inspect lock: 1 of 3", { resources: ["d"], votes: VOTES });

Deno.test("formatInspected() has a row for each resource, and says what is wrong with keys", () => {
  const states = { a: HELD, "b\n": FREE, c: FOREIGN, d: UNKNOWN };
  const inspected = Object.entries(states).map(([resource, state]) => ({ resource, state }));
  assertEquals(formatInspected(inspected, paintNothing), [
    "resource  state    holder               expires in  waiting  nodes",
    "a         held     0123abcd web-3:1234  12.3 s      2        2 held, 1 failed",
    "b\\u{a}    free     –                    –           –        1 free",
    "c         held     0123abcd             forever     ?        2 held, 1 failed",
    "d         unknown  ?                    ?           ?        2 held, 1 failed",
    "c: its key has no TTL, so no lock library set it",
  ]);
});

Deno.test("formatInspected() aligns cells in colours", () => {
  const inspected = [{ resource: "a", state: FREE }];
  assertEquals(formatInspected(inspected, paintColours), [
    "\x1b[2mresource  state  holder  expires in  waiting  nodes\x1b[0m",
    "a         \x1b[32mfree\x1b[0m   –       –           –        1 free",
  ]);
});

Deno.test("toJson() has null for what is not known, and no control characters of servers", () => {
  const common = { resource: "a", sharers: null, foreign: null, error: null };
  const votes = [
    { node: "redis://a:1", outcome: "held", elapsedMs: 1 },
    { node: "redis://b:2", outcome: "held", elapsedMs: 2 },
    { node: "redis://c:3", outcome: "failed", elapsedMs: 3, error: "gone\\u{1b}[2J" },
  ];
  assertEquals([HELD, FREE, FOREIGN, UNKNOWN].map((state) => toJson({ resource: "a", state })), [
    {
      ...common,
      held: true,
      remainingMs: 12_345,
      holder: "0123abcd web-3:1234",
      waiters: 2,
      votes,
    },
    { ...common, held: false, remainingMs: 0, holder: null, waiters: null, votes: FREE.votes },
    {
      ...common,
      held: true,
      remainingMs: null,
      holder: "0123abcd",
      waiters: null,
      foreign: "has no TTL, so no lock library set it",
      votes,
    },
    {
      ...common,
      held: null,
      remainingMs: null,
      holder: null,
      waiters: null,
      error: { code: "NO_QUORUM", message: "Cannot inspect lock: 1 of 3" },
      votes,
    },
  ]);
});
