/**
 * Servers in memory, on the loopback interface of this machine.
 *
 * @module
 */
import { onRandomPort } from "./ports.ts";
import { MEMORY_REDIS_OPTION_NAMES, type MemoryRedisOptions } from "./server/memory_redis.ts";
import { TcpNode } from "./server/tcp_node.ts";
import type { TestNode } from "./test_node.ts";
import { countedNetwork } from "./time/traffic.ts";
import { checkOptions, rangeError } from "../validate.ts";

/** Most nodes that one call can start. */
const NODES_MAX = 31;

/**
 * The nodes that {@linkcode startNodes} started, as an array. Close them, or declare them with
 * `await using`.
 */
export interface TestNodes extends ReadonlyArray<TestNode>, AsyncDisposable {
  /** The addresses of all nodes: `redis://127.0.0.1:port`, with the password if there is one. */
  readonly addresses: string[];
  /**
   * Returns one node.
   *
   * @param index The index of the node, from 0.
   * @returns The node.
   * @throws {RangeError} If there is no node with this index.
   */
  node(index: number): TestNode;
  /**
   * Stops every node: closes its port and its connections. A stopped node cannot be restarted.
   * Idempotent.
   */
  close(): Promise<void>;
  /** Does what {@linkcode close} does, at the end of `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Starts independent servers in memory, each on its own port of 127.0.0.1, to test code that locks:
 * without Redis, and under every fault of a node. In Deno, this needs the permission
 * `--allow-net=127.0.0.1`.
 *
 * @example A lock excludes a second one
 * ```ts
 * import { assert } from "@std/assert";
 * import { createRedlock } from "@hasp/redlock";
 * import { startNodes } from "@hasp/redlock/testing";
 *
 * await using nodes = await startNodes(3);
 * await using redlock = createRedlock(nodes.addresses);
 * await using lock = await redlock.acquire("invoice:42");
 * assert(lock.held);
 * assert(await redlock.tryAcquire("invoice:42") === undefined);
 * ```
 *
 * @example Without `await using`
 * ```ts
 * import { createRedlock } from "@hasp/redlock";
 * import { startNodes } from "@hasp/redlock/testing";
 *
 * const nodes = await startNodes(3);
 * const redlock = createRedlock(nodes.addresses);
 * try {
 *   await redlock.using("invoice:42", () => {});
 * } finally {
 *   await redlock.close();
 *   await nodes.close();
 * }
 * ```
 *
 * @example A lock survives the crash of a minority, not of a majority
 * ```ts
 * import { assert, assertRejects } from "@std/assert";
 * import { createRedlock, QuorumError } from "@hasp/redlock";
 * import { startNodes } from "@hasp/redlock/testing";
 *
 * await using nodes = await startNodes(3);
 * await using redlock = createRedlock(nodes.addresses, { waitMs: 0, nodeTimeoutMs: 100 });
 * await nodes.node(0).crash();
 * assert(await (await redlock.acquire("invoice:42")).release());
 * nodes.node(1).hang();
 * await assertRejects(() => redlock.acquire("invoice:42"), QuorumError);
 * nodes.node(1).resume();
 * await nodes.node(0).restart({ keepData: true });
 * ```
 *
 * @param count The number of nodes, an integer from 1 to 31.
 * @param options The clock and the password of each node.
 * @returns The nodes, once all of them accept connections.
 * @throws {RangeError} If `count` is out of range.
 * @throws {TypeError} If an option is unknown.
 */
export async function startNodes(
  count: number,
  options: MemoryRedisOptions = {},
): Promise<TestNodes> {
  if (!Number.isInteger(count) || count < 1 || count > NODES_MAX) {
    throw rangeError("start nodes", "count", `must be an integer from 1 to ${NODES_MAX}`, count);
  }
  checkOptions("start nodes", options, MEMORY_REDIS_OPTION_NAMES);
  const network = await countedNetwork();
  const started = await Promise.allSettled(
    Array.from({ length: count }, () =>
      onRandomPort(async (port) => {
        const node = new TcpNode(port, network, options);
        await node.start();
        return node;
      })),
  );
  const nodes = started.filter((it) => it.status === "fulfilled").map((it) => it.value);
  const failed = started.find((it) => it.status === "rejected");
  if (failed) {
    await stopAll(nodes);
    throw failed.reason;
  }
  return Object.assign(nodes as TestNode[], {
    addresses: nodes.map(({ address }) => address),
    node: (index: number) => nodeAt(nodes, index),
    close: () => stopAll(nodes),
    [Symbol.asyncDispose]: () => stopAll(nodes),
  });
}

function nodeAt(nodes: readonly TestNode[], index: number): TestNode {
  const node = nodes[index];
  if (node) return node;
  throw rangeError(
    "return node",
    "index",
    `must be an integer from 0 to ${nodes.length - 1}`,
    index,
  );
}

async function stopAll(nodes: readonly TcpNode[]): Promise<void> {
  await Promise.all(nodes.map((node) => node.stop()));
}
