/**
 * Nodes for tests: Redis servers in memory, inside the process or on the loopback interface, to
 * test code that locks without a real Redis server.
 *
 * @example Test code that locks
 * ```ts
 * import { assert } from "@std/assert";
 * import { createRedlock } from "@hasp/redlock";
 * import { startNodes } from "@hasp/redlock/testing";
 *
 * await using nodes = await startNodes(3);
 * await using redlock = createRedlock(nodes.addresses);
 * const total = await redlock.using("invoice:42", async (lock) => {
 *   lock.signal.throwIfAborted();
 *   return await Promise.resolve(42);
 * });
 * assert(total === 42);
 * ```
 *
 * @module
 */
export type { Clock, TimerHandle } from "../time/clock.ts";
export {
  MemoryRedis,
  type MemoryRedisOptions,
  type MemoryRestartOptions,
} from "./server/memory_redis.ts";
export type { MemorySession, MemorySessionOptions } from "./server/memory_session.ts";
export { type FakeClock, startFakeClock } from "./time/fake_clock.ts";
export { type FaultProxy, type ProxyDirection, startProxy } from "./proxy/fault_proxy.ts";
export { startNodes, type TestNodes } from "./start_nodes.ts";
export type { TestNode } from "./test_node.ts";
export type { NodeToTest } from "./lock_node/bench.ts";
export {
  type LockNodeCase,
  type LockNodePart,
  testLockNode,
  type TestLockNodeOptions,
} from "./test_lock_node.ts";
export type {
  /** A node's answer. */
  Grant,
  /** What a node has under a key. */
  KeyState,
  /** One node: the seam between the lock and a store. */
  LockNode,
  /** What a node is asked. */
  LockRequest,
} from "../quorum/lock_node.ts";
export type {
  /** What a node reports about itself. */
  NodeDiagnosis,
} from "../quorum/node_diagnosis.ts";
export type {
  /** Opens a transport to a server, instead of the sockets of the runtime. */
  Connect,
  /** What to connect to: a host and port, or the path of a Unix domain socket. */
  ConnectTarget,
  /** TLS settings: authorities to trust, and the certificate of the client. */
  TlsOptions,
  /** An open byte stream, such as a `Deno.Conn`. */
  Transport,
} from "../transport/transport.ts";
