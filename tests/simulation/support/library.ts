/**
 * Everything of the library that the simulation runs or looks at, in one place: the mutations replace it.
 *
 * @module
 */
export type { Clock } from "../../../src/clock.ts";
export { LockHeldError, LockLostError, QuorumError, RedlockError } from "../../../src/errors.ts";
export type { RedlockEvent } from "../../../src/events.ts";
export type { Lock } from "../../../src/lock.ts";
export type { RedlockOptions } from "../../../src/options.ts";
export { resolveOptions } from "../../../src/options.ts";
export { parseAddress } from "../../../src/redis/address.ts";
export { resolveClientOptions } from "../../../src/redis/client.ts";
export { RespDecoder } from "../../../src/redis/decoder.ts";
export { RedisNode } from "../../../src/redis_node.ts";
export { Redlock, redlockOn } from "../../../src/redlock.ts";
export { BIRTH_KEY } from "../../../src/restart_guard.ts";
export {
  ACQUIRE_ALL,
  ACQUIRE_COUNTED,
  ACQUIRE_FENCED,
  ACQUIRE_OR_WAIT,
  EXTEND,
  EXTEND_FENCED,
  RELEASE,
  SKEW_MS_MAX,
  waitersKey,
} from "../../../src/scripts.ts";
export type { ConnectionState, ServerState } from "../../../src/testing/command.ts";
export { runCommand } from "../../../src/testing/commands.ts";
export { Keyspace } from "../../../src/testing/keyspace.ts";
export { failure, fromByteString, toByteString } from "../../../src/testing/replies.ts";
export { TimerWheel } from "../../../src/timer_wheel.ts";
export type { Connect, Transport } from "../../../src/transport/transport.ts";
export { driftMs } from "../../../src/validity.ts";
