/**
 * Distributed locks for Deno, Node, Bun and edge workers: the Redlock algorithm over independent Redis or Valkey
 * servers. If a minority of the servers is down, slow or hangs, a lock is delayed by at most one `nodeTimeoutMs`.
 *
 * @example Lock, work, release
 * ```ts
 * import { createRedlock } from "@hasp/redlock";
 * import { startNodes } from "@hasp/redlock/testing";
 *
 * await using nodes = await startNodes(3); // or the addresses of your servers: "redis://10.0.0.1", …
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
export { createRedlock, type CreateRedlockOptions } from "./src/create_redlock.ts";
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
export type {
  AcquiredEvent,
  AttemptEvent,
  DeniedEvent,
  EventListener,
  ExtendedEvent,
  ExtendFailedEvent,
  LockEvent,
  LostEvent,
  NodeConnectedEvent,
  NodeDisconnectedEvent,
  NodeQuarantinedEvent,
  NotifyRefusedEvent,
  RedlockEvent,
  ReleasedEvent,
  ReleaseFailedEvent,
  VoteEvent,
  WokenEvent,
} from "./src/events.ts";
export {
  type Finding,
  type FindingCode,
  formatHealthReport,
  type HealthReport,
  type NodeHealth,
  type Severity,
} from "./src/health/report.ts";
export type { Inspection } from "./src/lock/inspection.ts";
export type { ExtendOptions, FencedLock, Lock, LockOf } from "./src/lock/lock.ts";
export type { KeyState, LockNode, LockRequest } from "./src/quorum/lock_node.ts";
export type { NodeDiagnosis } from "./src/quorum/node_diagnosis.ts";
export type {
  QueueNotice,
  QueuePosition,
  QueuePriority,
  QueueTicket,
  ReleaseListener,
  TimeReading,
} from "./src/quorum/queue_ticket.ts";
export type { Vote } from "./src/vote.ts";
export type { RedlockOptions } from "./src/options.ts";
export {
  type CommandOutcome,
  ConnectionError,
  ProtocolError,
  RedisError,
  type RedisErrorCode,
  ReplyError,
} from "./src/redis/errors.ts";
export type { ClientOptions } from "./src/redis/client.ts";
export { Redlock, type Routine } from "./src/redlock.ts";
export type { Connect, ConnectTarget, TlsOptions, Transport } from "./src/transport/transport.ts";
