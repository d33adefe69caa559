import { assertEquals } from "@std/assert";
import { quorumSize } from "../../src/vote.ts";

Deno.test("quorumSize() is the smallest number of nodes of which any two sets share one", () => {
  assertEquals([1, 2, 3, 4, 5, 6, 7, 31].map(quorumSize), [1, 2, 2, 3, 3, 4, 4, 16]);
});
