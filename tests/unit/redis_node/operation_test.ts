import { assertEquals } from "@std/assert";
import * as adopting from "../../../src/redis_node/adopt_operations.ts";
import * as counting from "../../../src/redis_node/count_operations.ts";
import { EXTEND_KEYS } from "../../../src/redis_node/extend_operation.ts";
import { type Operation, RELEASE_KEY, SET_KEY } from "../../../src/redis_node/operation.ts";
import * as pooling from "../../../src/redis_node/pool_operations.ts";
import * as queueing from "../../../src/redis_node/queue_operations.ts";
import * as reading from "../../../src/redis_node/reader_operations.ts";

/** The largest code that has room in a tag. */
const CODE_MAX = 31;

Deno.test("every operation has a code of its own that fits into a tag, and its own script", () => {
  const operations = [
    ...Object.values(adopting),
    ...Object.values(counting),
    ...Object.values(pooling),
    ...Object.values(queueing),
    ...Object.values(reading),
  ]
    .filter((each): each is Operation => typeof each === "object" && "code" in each)
    .concat(SET_KEY, RELEASE_KEY as Operation, EXTEND_KEYS);
  const codes = operations.map(({ code }) => code);
  assertEquals(new Set(codes).size, codes.length, `${codes}`);
  assertEquals(codes.filter((code) => !(code >= 0 && code <= CODE_MAX)), []);
  assertEquals(operations.filter(({ script }) => script === undefined), [SET_KEY]);
});
