import { assertEquals, assertInstanceOf, assertStrictEquals } from "@std/assert";
import {
  LockHeldError,
  LockLostError,
  lockName,
  nodeErrors,
  QuorumError,
  RedlockError,
  voteCount,
} from "../../src/errors.ts";
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
    const error = new Class("Cannot", { resources, votes: VOTES, cause });
    assertInstanceOf(error, RedlockError);
    assertInstanceOf(error, Error);
    assertEquals([error.name, error.code, error.message], [name, code, "Cannot"]);
    assertStrictEquals(error.resources, resources);
    assertStrictEquals(error.votes, VOTES);
    assertStrictEquals(error.cause, cause);
  });
}

Deno.test("RedlockError has no votes where no node was asked", () => {
  assertEquals(new RedlockError("Cannot", { resources: ["a"] }).votes, []);
});

Deno.test("lockName() quotes resources so that nothing in them can be taken for the message", () => {
  assertEquals(lockName(["invoice:42"]), 'lock "invoice:42"');
  assertEquals(lockName(["a", 'b"\n']), 'locks "a", "b\\"\\n"');
});

Deno.test("voteCount() says how many did what, and how many are needed", () => {
  assertEquals(
    voteCount(VOTES, 5, 3),
    "1 of 5 nodes granted it, 1 denied, 2 failed, 1 timed out, 3 are needed",
  );
});

Deno.test("voteCount() leaves out what no node did", () => {
  assertEquals(voteCount(VOTES.slice(0, 1), 3, 2), "1 of 3 nodes granted it, 2 are needed");
  assertEquals(voteCount([], 3, 2), "0 of 3 nodes granted it, 2 are needed");
});

Deno.test("nodeErrors() gathers the nodes' errors under their names", () => {
  const error = nodeErrors(VOTES);
  assertInstanceOf(error, AggregateError);
  assertEquals(error.message, "c: refused; e: reset");
  assertEquals(error.errors, [VOTES[2].error, VOTES[4].error]);
});

Deno.test("nodeErrors() is undefined where no node gave one", () => {
  assertEquals(nodeErrors(VOTES.slice(0, 2)), undefined);
});

Deno.test("lockName() cuts long resources without splitting a character, and long lists", () => {
  const long = "x".repeat(100);
  assertEquals(lockName([long]), `lock "${long}"`);
  assertEquals(lockName([`${long}y`]), `lock "${long}…"`);
  assertEquals(lockName([`${"x".repeat(99)}😀`]), `lock "${"x".repeat(99)}…"`);
  const names = Array.from({ length: 7 }, (_, index) => `${index}`);
  assertEquals(lockName(names), 'locks "0", "1", "2", "3", "4" and 2 more');
  assertEquals(lockName(names.slice(0, 5)), 'locks "0", "1", "2", "3", "4"');
});
