/**
 * Everything of the library that the simulation runs or looks at, in one place: the mutations
 * replace it.
 */

export type { Clock } from "../../../src/time/clock.ts";
export { LockHeldError, LockLostError, QuorumError, RedlockError } from "../../../src/errors.ts";
export type { RedlockEvent } from "../../../src/events.ts";
export type { Lock } from "../../../src/lock/lock.ts";
export type { RedlockOptions } from "../../../src/options.ts";
export { LockOptions } from "../../../src/options.ts";
export { parseAddress } from "../../../src/redis/address.ts";
export { resolveClientOptions } from "../../../src/redis/client_options.ts";
export { RedisNode } from "../../../src/redis_node/redis_node.ts";
export { redisServer } from "../../../src/redis_node/redis_server.ts";
export { insideOf, Redlock, redlockOn } from "../../../src/redlock.ts";
export { CREATED_KEY } from "../../../src/redis_node/restart_guard.ts";
export { ACQUIRE_OR_WAIT } from "../../../src/redis_node/scripts/acquire.ts";
export { ACQUIRE_COUNTED } from "../../../src/redis_node/scripts/fencing.ts";
export { ADOPT, GIVE_BACK } from "../../../src/redis_node/scripts/adopt.ts";
export { EXTEND } from "../../../src/redis_node/scripts/extend.ts";
export { ACQUIRE_ANY } from "../../../src/redis_node/scripts/pool.ts";
export {
  ACQUIRE_SHARED,
  EXTEND_SHARED,
  READERS_PREFIX,
  SHARED,
} from "../../../src/redis_node/scripts/readers.ts";
export { RELEASE, RELEASE_QUEUED } from "../../../src/redis_node/scripts/release.ts";
export { QUEUE_LEAD_MS } from "../../../src/quorum/queue_ticket.ts";
export { queueOf, WAKE_CHANNEL } from "../../../src/redis_node/scripts/queue.ts";
export { publish } from "../../../src/testing/commands/channel_commands.ts";
export { Connection, type ServerState } from "../../../src/testing/commands/command.ts";
export { runCommand } from "../../../src/testing/commands/commands.ts";
export { CommandClock } from "../../../src/testing/server/command_clock.ts";
export { Keyspace } from "../../../src/testing/server/keyspace.ts";
export { encodeReply, failure } from "../../../src/testing/server/replies.ts";
export { Gate } from "../../../src/time/gate.ts";
export { TimerWheel } from "../../../src/time/timer_wheel.ts";
export type { Connect, Transport } from "../../../src/transport/transport.ts";
export { driftMs } from "../../../src/time/validity.ts";
