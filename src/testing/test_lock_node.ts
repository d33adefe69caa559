/**
 * A suite of tests for nodes of your own.
 *
 * @module
 */
import { ADOPTING_CASES } from "./lock_node/adopting_cases.ts";
import { BASIC_CASES, type Case } from "./lock_node/basic_cases.ts";
import { Bench, type NodeToTest } from "./lock_node/bench.ts";
import { FENCING_CASES } from "./lock_node/fencing_cases.ts";
import { HANG_CASES } from "./lock_node/hang_cases.ts";
import { RACE_CASES } from "./lock_node/race_cases.ts";
import { SHARING_CASES } from "./lock_node/sharing_cases.ts";
import { checkAll, checkOptions, FUNCTION } from "../validate.ts";

/**
 * A part of the suite that a node may do without: `fencing` needs `raiseCounters`, `adopting` needs
 * `adopt`, `sharing` needs requests with `mode`, `race` needs a second node on the same store, and
 * `hang` needs a store that can be made to hang.
 */
export type LockNodePart = "fencing" | "adopting" | "sharing" | "race" | "hang";

/** The parts, with their cases. */
const PARTS: Readonly<Record<LockNodePart, readonly Case[]>> = {
  fencing: FENCING_CASES,
  adopting: ADOPTING_CASES,
  sharing: SHARING_CASES,
  race: RACE_CASES,
  hang: HANG_CASES,
};

/** Options of {@linkcode testLockNode}. */
export interface TestLockNodeOptions {
  /**
   * Registers a test: `Deno.test`, `test` of `node:test`, of vitest or of Bun.
   *
   * @default {the cases are only returned}
   */
  test?: ((name: string, run: () => Promise<void>) => unknown) | undefined;
  /**
   * The parts to leave out, because the node does not support them.
   *
   * @default {[]}
   */
  without?: readonly LockNodePart[] | undefined;
}

/** One case of the suite. */
export interface LockNodeCase {
  /** What the node must do. */
  readonly name: string;
  /** Makes a node and tests it. Rejects if the node breaks its contract. */
  run(): Promise<void>;
}

/**
 * Tests a `LockNode` of your own. The node must set and delete only the keys that it may, execute
 * requests in their order, answer each of them, and leave nothing behind of a lock that is undone,
 * even if the store hangs meanwhile. Two nodes on one store must exclude each other. Further cases
 * test counters, adoptions and shared mode. One after another, the cases take about 15 seconds.
 * They use keys that begin with `test:`.
 *
 * @example A node on a store of your own
 * ```ts
 * import { type LockNode } from "@hasp/redlock/nodes";
 * import { commandNode } from "@hasp/redlock/nodes";
 * import { connect } from "@hasp/redlock/redis";
 * import { startNodes, testLockNode } from "@hasp/redlock/testing";
 *
 * const cases = testLockNode(async () => {
 *   const servers = await startNodes(1);
 *   const client = await connect(servers.addresses[0]);
 *   const node: LockNode = commandNode({ name: "a", send: (args) => client.send(args) });
 *   return {
 *     node,
 *     close: async () => {
 *       await client.close();
 *       await servers.close();
 *     },
 *   };
 * }, { without: ["race", "hang"] }); // { test: Deno.test } registers them
 * for (const { run } of cases) await run();
 * ```
 *
 * @param factory Makes a node for one case, with functions that make its store hang and resume, and
 * one that makes a second node on that store.
 * @param options How to register the cases, and which parts to leave out.
 * @returns The cases, in their order.
 * @throws {TypeError} If `factory` is not a function, or an option is unknown or of the wrong type.
 */
export function testLockNode(
  factory: () => NodeToTest | Promise<NodeToTest>,
  options: TestLockNodeOptions = {},
): LockNodeCase[] {
  const action = "test node";
  if (typeof factory !== "function") {
    throw new TypeError(`Cannot ${action} as 'factory' must be a function`);
  }
  checkOptions(action, options, ["test", "without"]);
  const { test, without = [] } = options;
  checkAll(action, { test }, { test: FUNCTION });
  const parts = Object.keys(PARTS) as LockNodePart[];
  const unknown = without.find((part) => !parts.includes(part));
  if (unknown !== undefined) {
    throw new TypeError(
      `Cannot ${action} as '${unknown}' in 'without' must be one of ${parts.join(", ")}`,
    );
  }
  const cases = [
    ...BASIC_CASES,
    ...parts.filter((part) => !without.includes(part)).flatMap((part) => PARTS[part]),
  ].map(([name, run]) => ({ name, run: () => runOnBench(factory, run) }));
  if (test) { for (const { name, run } of cases) test(name, run); }
  return cases;
}

async function runOnBench(
  factory: () => NodeToTest | Promise<NodeToTest>,
  run: (bench: Bench) => Promise<void>,
): Promise<void> {
  const bench = new Bench(await factory());
  try {
    await run(bench);
  } catch (error) {
    await bench.end().catch(() => {}); // the first failure is the one to show
    throw error;
  }
  await bench.end();
}
