/**
 * Servers in memory on the network of this machine.
 *
 * @module
 */
import { systemRandom } from "../time/random.ts";
import type { MemoryRedisOptions } from "./server/memory_redis.ts";
import { type Listen, TcpNode } from "./server/tcp_node.ts";
import type { TestNode } from "./test_node.ts";

/** Most nodes that can be started at once. */
const NODES_MAX = 31;
/**
 * Ports are drawn below those that systems give to the local end of outgoing connections (from 32 768 on on Linux,
 * from 49 152 on elsewhere): a client that connects again and again to a crashed node on such a port may be given
 * that very port for its own end, and so talk to itself.
 */
const PORT_MIN = 12_000;
const PORT_MAX = 32_000;
/** How many ports are tried for one node. */
const PORTS_TRIED_MAX = 20;

/** Nodes that were started, in an array; dispose of them to stop them. */
export interface TestNodes extends ReadonlyArray<TestNode>, AsyncDisposable {
  /** Their addresses: `redis://127.0.0.1:port`, with the password in it where one was given. */
  readonly addresses: string[];
  /**
   * One of them.
   *
   * @param index Which, counted from 0.
   * @returns The node.
   * @throws {RangeError} If there is none.
   */
  node(index: number): TestNode;
  /** Stops listening and closes every connection at the end of `await using`. Idempotent. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Starts independent servers in memory, each on a port of its own of 127.0.0.1, so that code which locks can be
 * tested without Redis, and under every fault that a node can have. In Deno this needs the permission
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
 * @example A minority that fails is not noticed, a majority is
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
 * @param count How many, from 1 to 31.
 * @param options The clock and the password of each.
 * @returns The nodes, once all of them listen.
 * @throws {RangeError} If the count is out of range.
 */
export async function startNodes(
  count: number,
  options: MemoryRedisOptions = {},
): Promise<TestNodes> {
  if (!Number.isInteger(count) || count < 1 || count > NODES_MAX) {
    throw new RangeError(
      `Cannot start nodes as 'count' must be an integer from 1 to ${NODES_MAX}: current value is ${count}`,
    );
  }
  const { listen } = await import("../transport/node_listener.ts");
  const started = await Promise.allSettled(
    Array.from({ length: count }, () => startNode(listen, options)),
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
    [Symbol.asyncDispose]: () => stopAll(nodes),
  });
}

/** A port that another program has is left to it. */
async function startNode(listen: Listen, options: MemoryRedisOptions): Promise<TcpNode> {
  for (let tried = 1;; tried++) {
    const port = PORT_MIN + Math.floor(systemRandom.fraction() * (PORT_MAX - PORT_MIN));
    const node = new TcpNode(port, listen, options);
    try {
      await node.start();
      return node;
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (code !== "EADDRINUSE" || tried === PORTS_TRIED_MAX) throw error;
    }
  }
}

function nodeAt(nodes: readonly TestNode[], index: number): TestNode {
  const node = nodes[index];
  if (node) return node;
  throw new RangeError(
    `Cannot return node as 'index' must be an integer from 0 to ${
      nodes.length - 1
    }: current value is ${index}`,
  );
}

async function stopAll(nodes: readonly TcpNode[]): Promise<void> {
  await Promise.all(nodes.map((node) => node.stop()));
}
