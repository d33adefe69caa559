import { assertEquals } from "@std/assert";
import { decide, type Decision } from "../../../src/quorum/round.ts";
import { quorumSize } from "../../../src/vote.ts";

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
