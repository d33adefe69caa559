import { assertEquals } from "@std/assert";
import { decide, type Decision, quorumSize } from "../../src/vote.ts";

Deno.test("quorumSize() is the smallest number of nodes of which any two sets share one", () => {
  assertEquals([1, 2, 3, 4, 5, 6, 7, 31].map(quorumSize), [1, 2, 2, 3, 3, 4, 4, 16]);
});

Deno.test("decide() is open only while both outcomes are possible", () => {
  for (let nodeCount = 1; nodeCount <= 31; nodeCount++) {
    const quorum = quorumSize(nodeCount);
    for (let granted = 0; granted <= nodeCount; granted++) {
      for (let pending = 0; pending + granted <= nodeCount; pending++) {
        let expected: Decision = "open";
        if (granted >= quorum) expected = "granted";
        else if (granted + pending < quorum) expected = "refused";
        assertEquals(decide(granted, pending, quorum), expected);
      }
      assertEquals(decide(granted, 0, quorum) === "open", false);
    }
  }
});
