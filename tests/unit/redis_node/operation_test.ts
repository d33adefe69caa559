import { assertEquals } from "@std/assert";
import * as adopting from "../../../src/redis_node/adopt_operations.ts";
import * as counting from "../../../src/redis_node/count_operations.ts";
import { EXTEND_KEYS } from "../../../src/redis_node/extend_operation.ts";
import { type Operation, RELEASE_KEY, SET_KEY } from "../../../src/redis_node/operation.ts";
import * as queueing from "../../../src/redis_node/queue_operations.ts";

Deno.test("every operation has a code of its own that fits into a tag, and its own script", () => {
  const operations = [
    ...Object.values(adopting),
    ...Object.values(counting),
    ...Object.values(queueing),
  ]
    .filter((each): each is Operation => typeof each === "object" && "code" in each)
    .concat(SET_KEY, RELEASE_KEY as Operation, EXTEND_KEYS);
  const codes = operations.map(({ code }) => code);
  assertEquals([...codes].sort((a, b) => a - b), operations.map((_, index) => index));
  assertEquals(Math.max(...codes) < 16, true);
  assertEquals(operations.filter(({ script }) => script === undefined), [SET_KEY]);
});
