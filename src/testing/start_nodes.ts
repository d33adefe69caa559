/**
 * Servers in memory on the network of this machine.
 *
 * @module
 */
import type { Listener } from "../transport/node_listener.ts";
import { MemoryRedis, type MemoryRedisOptions } from "./memory_redis.ts";

/** Most nodes that can be started at once. */
const NODES_MAX = 31;

/** Nodes that were started; dispose of them to stop them. */
export interface TestNodes extends AsyncDisposable {
  /** Their addresses: `redis://127.0.0.1:port`, with the password in it where one was given. */
  readonly addresses: string[];
  /** Stops listening and closes every connection at the end of `await using`. Idempotent. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Starts independent servers in memory, each on a free port of 127.0.0.1, so that code which locks can be tested
 * without Redis. In Deno this needs the permission `--allow-net=127.0.0.1`.
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
 * @param count How many, from 1 to 31.
 * @param options The clock and the password of each.
 * @returns The nodes, once all of them listen.
 * @throws {RangeError} If the count is out of range.
 */
export async function startNodes(count: number, options?: MemoryRedisOptions): Promise<TestNodes> {
  if (!Number.isInteger(count) || count < 1 || count > NODES_MAX) {
    throw new RangeError(
      `Cannot start nodes as 'count' must be an integer from 1 to ${NODES_MAX}: current value is ${count}`,
    );
  }
  const { listen } = await import("../transport/node_listener.ts");
  const started = await Promise.allSettled(
    Array.from({ length: count }, () => {
      const server = new MemoryRedis(options);
      return listen(() => server.session());
    }),
  );
  const listeners = started.filter((it) => it.status === "fulfilled").map((it) => it.value);
  const failed = started.find((it) => it.status === "rejected");
  if (failed) {
    await closeAll(listeners);
    throw failed.reason;
  }
  const password = options?.password;
  const credentials = password === undefined ? "" : `:${encodeURIComponent(password)}@`;
  let closing: Promise<void> | undefined;
  return {
    addresses: listeners.map(({ port }) => `redis://${credentials}127.0.0.1:${port}`),
    [Symbol.asyncDispose]: () => closing ??= closeAll(listeners),
  };
}

async function closeAll(listeners: readonly Listener[]): Promise<void> {
  await Promise.all(listeners.map((listener) => listener.close()));
}
