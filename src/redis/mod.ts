/**
 * A minimal RESP2 client for Redis, Valkey and other servers, without dependencies.
 *
 * A *command* is encoded once, and can be sent to many servers. A *connection* writes all commands of one tick at once,
 * and matches replies to commands first in, first out. A *reply* is decoded by its length, however it is split.
 *
 * @example Set a key and read it back
 * ```ts
 * import { assert } from "@std/assert";
 * import { connect } from "@hasp/redlock/redis";
 * import { startNodes } from "@hasp/redlock/testing";
 *
 * await using nodes = await startNodes(1);
 * await using client = await connect(nodes.addresses[0]);
 * await client.send(["SET", "answer", 42]);
 * assert(await client.send(["GET", "answer"]) === "42");
 * ```
 *
 * @module
 */
export { type ClientOptions, connect, RedisClient, type SendOptions } from "./client.ts";
export type { CommandArgument } from "./encoder.ts";
export {
  type CommandOutcome,
  ConnectionError,
  ProtocolError,
  RedisError,
  type RedisErrorCode,
  ReplyError,
} from "./errors.ts";
export type { RawReply, Reply } from "./reply.ts";
export type { Connect, ConnectTarget, TlsOptions, Transport } from "../transport/transport.ts";
