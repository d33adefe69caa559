/**
 * What a pair of acquire and release may cost the client, counted where the machine's other work
 * changes nothing.
 */

import { assertEquals, assertGreater, assertLessOrEqual } from "@std/assert";
import { RELEASE } from "../../src/redis_node/scripts/release.ts";
import { wire } from "../support/fake_transport.ts";
import { startProgram } from "../support/programs.ts";
import type { PairCost } from "../programs/pair_cost.ts";

const NODES = 5;

/**
 * Promises that a pair creates at the most: of each of the two calls, of its round, and one for
 * each `await` of them.
 */
const PROMISES_MAX = 8.5;

/**
 * The same if streams make promises: in addition, for each node and command, one of a write and two
 * of a read.
 */
const PROMISES_ON_PROMISES_MAX = PROMISES_MAX + 2 * NODES * 3;

/** Bytes that a pair allocates at the most, without the optimizing compiler. */
const ALLOCATED_BYTES_MAX = 6_000;

/** Bytes of a pair that outlive collections of the young generation at the most. */
const KEPT_BYTES_MAX = 500;

const FLAGS = "--expose-gc,--no-opt,--single-threaded,--min-semi-space-size=64," +
  "--max-semi-space-size=64";

/** How long the program may take: it computes for a second on a machine that does nothing else. */
const ENDS_WITHIN_MS = 60_000;

let cost: PairCost;

Deno.test.beforeAll(async () => {
  await using program = startProgram("pair_cost.ts", [], { flags: [`--v8-flags=${FLAGS}`] });
  const { code, stdout, stderr } = await program.end(ENDS_WITHIN_MS);
  assertEquals([code, stderr], [0, ""]);
  cost = JSON.parse(stdout);
});

Deno.test("acquire() and release() write each command once to each node, and nothing else", () => {
  const value = "0".repeat(40) + ":second:"; // and no label
  const set = wire("SET", "job", value, "NX", "PX", "30000");
  const release = wire("EVALSHA", RELEASE.sha1, "1", "job", value);
  const { commands, writes, bytes } = cost;
  assertEquals({ commands, writes, bytes }, {
    commands: 2 * NODES,
    writes: 2 * NODES,
    bytes: (set.length + release.length) * NODES,
  });
});

Deno.test("acquire() and release() of a hundred locks in one moment take one write each to each node", () => {
  assertEquals(cost.writesAtOnce, 2 * NODES);
});

Deno.test("acquire() and release() have all nodes written to in one microtask each", () => {
  assertEquals(cost.microtasks, 2);
});

Deno.test("acquire() and release() create no more promises than they did", () => {
  assertGreater(cost.promises, 0);
  assertLessOrEqual(cost.promises, PROMISES_MAX);
  assertLessOrEqual(cost.promisesOnPromises, PROMISES_ON_PROMISES_MAX);
});

Deno.test("acquire() and release() allocate no more than they did", () => {
  assertGreater(cost.allocatedBytes, 0); // null if it could not be counted
  assertLessOrEqual(cost.allocatedBytes!, ALLOCATED_BYTES_MAX);
});

Deno.test("acquire() and release() leave next to nothing that only a collection of the whole heap would free", () => {
  assertLessOrEqual(cost.keptBytes, KEPT_BYTES_MAX);
});
