import { assertEquals } from "@std/assert";
import { type Inspection, QuorumError, type RedlockError, type Vote } from "../../../mod.ts";
import type { Inspected } from "../../../src/cli/inspect_command.ts";
import { Changes } from "../../../src/cli/watch_command.ts";

const VOTES: readonly Vote[] = [{ node: "redis://a:1", outcome: "held", elapsedMs: 1 }];
const FREE: Inspection = {
  held: false,
  mode: undefined,
  holders: [],
  remainingMs: 0,
  waiters: 0,
  foreign: undefined,
  votes: [],
};
const ALICE: Inspection = { ...FREE, held: true, remainingMs: 900, holders: [holder("a11ce000")] };
const BOB: Inspection = { ...ALICE, holders: [holder("b0b00000", "web-3:1234")], waiters: 2 };
const [UNKNOWN, LATER] = ["2 failed", "3 failed"].map((count) => {
  return new QuorumError(`Cannot inspect: ${count}`, { resources: ["a"], votes: VOTES });
});

function holder(holder: string, label?: string) {
  return { holder, label, acquiredAt: undefined };
}

/** What is said after each look at one resource. */
function said(...states: (Inspection | RedlockError)[]): (string | undefined)[] {
  const changes = new Changes();
  return states.map((state) => {
    const [change] = changes.update([{ resource: "job\n", key: "app:job\n", state }]);
    return change?.[0];
  });
}

Deno.test("Changes says what has changed since the last look, and nothing else", () => {
  const readers = { ...ALICE, holders: [...ALICE.holders, ...BOB.holders] };
  assertEquals(
    said(FREE, FREE, ALICE, { ...ALICE, remainingMs: 400 }, BOB, UNKNOWN, LATER, BOB, readers),
    [
      "app:job\\u{a}  free",
      undefined,
      "app:job\\u{a}  held by a11ce000, 0 waiting",
      undefined,
      "app:job\\u{a}  held by b0b00000 web-3:1234, 2 waiting",
      "app:job\\u{a}  unknown: Cannot inspect: 2 failed",
      undefined,
      "app:job\\u{a}  held by b0b00000 web-3:1234, 2 waiting",
      "app:job\\u{a}  held by a11ce000 and 1 more, 0 waiting",
    ],
  );
});

Deno.test("Changes says what is wrong with a key that no lock library has set", () => {
  const foreign = "holds a list, so no lock library set it";
  const list = { ...ALICE, holders: [], foreign, waiters: undefined };
  assertEquals(said(list), [
    "app:job\\u{a}  held: this key holds a list, so no lock library set it",
  ]);
});

Deno.test("Changes says that a resource is free which a list no longer has, unless the list failed", () => {
  const changes = new Changes();
  const [a, b] = ["a", "b"].map((name) => ({ resource: name, key: name, state: ALICE }));
  const failed = { ...a, resource: "*", key: "app:*", state: UNKNOWN };
  const looks: [shown: Inspected[], said: string[], held?: boolean][] = [
    [[a], ["a  held by a11ce000, 0 waiting"], true],
    [[b], ["a  free", "b  held by a11ce000, 0 waiting"], false],
    [[b], []],
    [[failed], ["app:*  unknown: Cannot inspect: 2 failed"]],
    [[failed], []],
    [[b], ["app:*  known again"]],
    [[failed], ["app:*  unknown: Cannot inspect: 2 failed"]],
    [[], ["b  free", "app:*  known again"], false],
  ];
  for (const [shown, said, held] of looks) {
    const changed = changes.update(shown);
    assertEquals(changed.map(([text]) => text), said);
    assertEquals((changed[0]?.[1].state as Inspection | undefined)?.held, held);
  }
});
