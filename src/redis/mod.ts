/**
 * A minimal RESP2 client for Redis, Valkey and other servers, without dependencies.
 *
 * A *command* is encoded once, and can be sent to many servers. A *connection* writes all commands
 * of one tick at once, and matches replies to commands first in, first out. A *reply* is decoded by
 * its length, however it is split.
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
export {
  /** How to reach a server. */
  type ClientOptions,
  connect,
  RedisClient,
  type SendOptions,
} from "./client.ts";
export type {
  /** The address of a server, in one of its forms. */
  Address,
  /** The address of a server as an object. */
  AddressParts,
} from "./address.ts";
export type {
  /** The user and the password of a login. */
  Credentials,
  /** Says who logs in, at each login. */
  GetCredentials,
} from "../credentials.ts";
export type { CommandArgument } from "./command_arguments.ts";
export {
  /** Whether a command whose connection failed was sent. */
  type CommandOutcome,
  /** Rejects a command if its connection could not be made, or was lost before the reply. */
  ConnectionError,
  /** Rejects a command if the server sent bytes that are not RESP2. */
  ProtocolError,
  /** Base class of the client's errors. */
  RedisError,
  /** The `code` of a {@linkcode RedisError}. */
  type RedisErrorCode,
  /** An error reply of the server; `prefix` is its first word, such as `NOAUTH`. */
  ReplyError,
} from "./errors.ts";
export type { RawReply, Reply } from "./reply.ts";
export type {
  /** Opens a transport to a server, instead of the sockets of the runtime. */
  Connect,
  /** What to connect to: a host and port, or the path of a Unix domain socket. */
  ConnectTarget,
  /** Takes the bytes of a transport that calls back. */
  OnChunk,
  /** TLS settings: authorities to trust, and the certificate of the client. */
  TlsOptions,
  /** An open byte stream, such as a `Deno.Conn`. */
  Transport,
} from "../transport/transport.ts";
