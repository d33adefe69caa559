import { assert, assertEquals, assertInstanceOf, assertStrictEquals } from "@std/assert";
import { LockHeldError, LockLostError, QuorumError, RedlockError } from "../../src/errors.ts";
import { lockName, quorumError, voteCount } from "../../src/messages.ts";
import type { Vote } from "../../src/vote.ts";

const VOTES: Vote[] = [
  { node: "a", outcome: "granted", elapsedMs: 1 },
  { node: "b", outcome: "denied", elapsedMs: 1 },
  { node: "c", outcome: "failed", elapsedMs: 1, error: new Error("refused") },
  { node: "d", outcome: "timed-out", elapsedMs: 50 },
  { node: "e", outcome: "failed", elapsedMs: 1, error: new Error("reset") },
];

for (
  const [Class, name, code] of [
    [RedlockError, "RedlockError", "CLOSED"],
    [LockHeldError, "LockHeldError", "LOCK_HELD"],
    [QuorumError, "QuorumError", "NO_QUORUM"],
    [LockLostError, "LockLostError", "LOCK_LOST"],
  ] as const
) {
  Deno.test(`${name} carries a name, the code ${code}, resources, votes and the cause`, () => {
    const cause = new Error("why");
    const resources = ["a"];
    const error = new Class("Cannot", { resources, votes: VOTES, reason: "gone", cause });
    assertInstanceOf(error, RedlockError);
    assertInstanceOf(error, Error);
    assertEquals([error.name, error.code, error.message], [name, code, "Cannot"]);
    assertEquals(new URL(error.help).hash, `#${code.toLowerCase()}`);
    assertEquals(Object.keys(error).includes("help"), true); // so consoles show it with the error
    assertEquals([error.resources, error.votes], [resources, VOTES]);
    assert(error.resources !== resources && error.votes !== VOTES); // a listener may change them
    assertStrictEquals(error.cause, cause);
    // what a log has if it is written as JSON; a console shows the votes' errors as the cause
    const { message, votes } = JSON.parse(JSON.stringify(error));
    assertEquals([message, votes.length], ["Cannot", 5]);
    assertEquals(Object.keys(error).includes("votes"), false);
    Object.assign(error, { votes: [] }); // as a logger may that removes what it must not show
    assertEquals(error.votes, []);
  });
}

Deno.test("RedlockError has no votes if no node was asked, and no cause that consoles would show", () => {
  const error = new RedlockError("Cannot", { resources: ["a"], cause: undefined });
  assertEquals([error.votes, "cause" in error], [[], false]);
});

Deno.test("lockName() quotes resources so that nothing in them can be taken for the message, and cuts them", () => {
  const long = "x".repeat(100);
  const names = Array.from({ length: 7 }, (_, index) => `${index}`);
  for (
    const [resources, name] of [
      [["invoice:42"], 'lock "invoice:42"'],
      [["a", 'b"\n'], 'locks "a", "b\\"\\n"'],
      [["\u202e\x9b\x7f\u2028"], 'lock "\\u{202e}\\u{9b}\\u{7f}\\u{2028}"'],
      [[long], `lock "${long}"`],
      [[`${long}y`], `lock "${long}…"`],
      [[`${long.slice(1)}😀`], `lock "${long.slice(1)}…"`], // and no half of a character
      [names.slice(0, 5), 'locks "0", "1", "2", "3", "4"'],
      [names, 'locks "0", "1", "2", "3", "4" and 2 more'],
    ] as const
  ) {
    assertEquals(lockName(resources), name);
  }
});

Deno.test("voteCount() says how many did what, and how many are needed", () => {
  const others = "1 denied, 2 failed, 1 timed out, 3 are needed";
  assertEquals(voteCount(VOTES, 5), `1 of 5 nodes granted it, ${others}`);
  assertEquals(voteCount(VOTES, 5, "extend"), `1 of 5 nodes extended it, ${others}`);
  assertEquals(voteCount(VOTES, 5, "release"), `1 of 5 nodes released it, ${others}`);
  assertEquals(voteCount(VOTES.slice(0, 1), 3), "1 of 3 nodes granted it, 2 are needed");
  assertEquals(voteCount([], 1), "0 of 1 node granted it, 1 is needed");
  const votes = (["held", "held", "free", "timed-out"] as const)
    .map((outcome) => ({ node: "a", outcome, elapsedMs: 1 }));
  assertEquals(
    voteCount(votes, 4, "inspect"),
    "3 of 4 nodes answered, 2 held, 1 free, 1 timed out, 3 are needed to agree",
  );
});

for (
  const [outcome, text] of [
    ["granted", "granted it"],
    ["denied", "denied"],
    ["failed", "failed"],
    ["timed-out", "timed out"],
    ["quarantined", "is quarantined"],
  ] as const
) {
  Deno.test(`voteCount() counts nothing if there is one node, but says that it ${text}`, () => {
    assertEquals(voteCount([{ node: "a", outcome, elapsedMs: 1 }], 1), `the node ${text}`);
  });
}

const SILENT: Vote = { node: "d", outcome: "timed-out", elapsedMs: 1 };

/** The vote of a node that fails, for good or not. */
function failed(message: string, permanent?: boolean, node = "a"): Vote {
  const error = Object.assign(new Error(message), permanent === undefined ? {} : { permanent });
  return { node, outcome: "failed", elapsedMs: 1, error };
}

for (
  const [votes, error] of [
    [[], ""],
    [[VOTES[0]], ""],
    [[VOTES[0], SILENT, { ...SILENT, node: "e" }], "; first error: d: no answer"],
    [[SILENT, failed("one")], "; first error: a: one"],
    [[failed("one"), failed("two")], "; first error: a: one"],
    [[failed("one", false), failed("two", true)], "; permanent error: a: two"],
    [[failed("no way to web-1", false, "web-1")], "; error: no way to web-1"],
  ] as const
) {
  Deno.test(`quorumError() names a node, and its error if it has one: ${error || "none"}`, () => {
    const made = quorumError("release", ["a"], votes, 3);
    assertInstanceOf(made, QuorumError);
    const count = voteCount(votes, 3, "release");
    assertEquals(made.message, `Cannot release lock "a": ${count}${error}`);
    assertEquals(made.cause instanceof AggregateError, votes.some((vote) => "error" in vote));
    const noted = quorumError("acquire", ["a"], votes, 3, ", but too late");
    assertEquals(
      noted.message,
      `Cannot acquire lock "a": ${voteCount(votes, 3)}, but too late${error}`,
    );
  });
}
