/**
 * A minimal RESP2 client for Redis, Valkey and other servers: hand-written, without dependencies.
 *
 * Three words carry it. A *command* is encoded once and may go to many servers. A *connection* writes what
 * one tick queued in one piece and matches replies first in, first out. A *frame* is decoded by length, in
 * whatever pieces it comes.
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
