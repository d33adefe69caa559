/**
 * Distributed locks for Deno, Node, Bun and edge workers, on one Redis or Valkey server, or on
 * several independent ones by the Redlock algorithm: then a minority of them may be down, be slow
 * or hang, which delays a lock by at most one `nodeTimeoutMs`.
 *
 * {@linkcode createRedlock} is where to begin. The other entry points are `./operate` (check the
 * nodes, list and break locks), `./nodes` (nodes on any client or store), `./upstash` (nodes over
 * HTTP), `./redis` (the client and its errors), `./otel` (traces and metrics), `./testing` (servers
 * in memory) and `./cli` (the command). `docs/architecture.md` is the map of the source.
 *
 * @example Lock, work, release
 * ```ts
 * import { createRedlock } from "@hasp/redlock";
 * import { startNodes } from "@hasp/redlock/testing";
 *
 * await using nodes = await startNodes(1); // in memory; yours: "redis://localhost:6379"
 * await using redlock = createRedlock(nodes.addresses);
 *
 * await redlock.using("invoice:42", { ttlMs: 10_000 }, async (lock) => {
 *   // Pass lock.signal to everything that must stop when the lock is lost.
 *   await Promise.resolve(lock.signal);
 * });
 * ```
 *
 * @module
 */
export {
  type Address,
  type AddressParts,
  createRedlock,
  type CreateRedlockOptions,
} from "./src/create_redlock.ts";
export type { Credentials, GetCredentials } from "./src/credentials.ts";
export {
  LockHeldError,
  type LockHeldErrorDetails,
  LockLostError,
  type LockLostErrorDetails,
  type LockLostReason,
  QuorumError,
  RedlockError,
  type RedlockErrorCode,
  type RedlockErrorDetails,
} from "./src/errors.ts";
export type { EventListener, LockEvent, NodeEvent, RedlockEvent, VoteEvent } from "./src/events.ts";
export type { Holder } from "./src/holder.ts";
export type { Inspection } from "./src/lock/inspection.ts";
export type { ExtendOptions, FencedLock, Lock, LockOf } from "./src/lock/lock.ts";
export type { LockMode, RedlockOptions } from "./src/options.ts";
export type { Routine } from "./src/lock/using.ts";
export { Redlock } from "./src/redlock.ts";
export { slots } from "./src/resources.ts";
export type { Connect, ConnectTarget, TlsOptions, Transport } from "./src/transport/transport.ts";
export type { Vote } from "./src/vote.ts";
