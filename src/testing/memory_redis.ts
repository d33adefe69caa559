/**
 * A Redis server in memory: its state, and one session for each of its connections.
 *
 * @module
 */
import { type Clock, systemClock } from "../clock.ts";
import { RespDecoder } from "../redis/decoder.ts";
import { ProtocolError } from "../redis/errors.ts";
import type { RawReply } from "../redis/reply.ts";
import type { Connect } from "../transport/transport.ts";
import type { ConnectionState, ServerState } from "./command.ts";
import { runCommand } from "./commands.ts";
import { Keyspace } from "./keyspace.ts";
import { MemoryTransport } from "./memory_transport.ts";
import { failure, fromByteString, toByteString, utf8ByteString } from "./replies.ts";

/** How many databases there are. */
const DATABASES = 16;

/** What a {@linkcode MemoryRedis} can be given. */
export interface MemoryRedisOptions {
  /** Where time comes from; keys expire by its wall clock. The runtime's own clock by default. */
  clock?: Clock;
  /** The password that clients must log in with, as the user `default` or as none; left out: none is needed. */
  password?: string;
}

/** One connection to a {@linkcode MemoryRedis}: bytes in, bytes out. */
export interface MemorySession {
  /**
   * Takes in the next bytes, whatever pieces they come in, and runs every command that they complete.
   *
   * @param bytes RESP2 requests: arrays of bulk strings. Not kept.
   * @returns The replies, one after the other; empty where no command is complete.
   */
  push(bytes: Uint8Array): Uint8Array;
  /** Whether the server ends the connection: it was sent something that is no request. */
  readonly ended: boolean;
}

/**
 * A RESP2 server in memory, for tests. It answers what this library sends byte for byte as Redis 7.0 does, and
 * whatever else it knows too: PING, AUTH, SELECT, CLIENT (ID, GETNAME, SETNAME), TIME, FLUSHALL, GET, SET (NX, XX,
 * PX, EX), DEL, EXISTS, PTTL, PEXPIRE, INCR, and EVAL, EVALSHA and SCRIPT for the library's own scripts. Every
 * other command is unknown to it, HELLO too, as to a server that speaks RESP2 alone.
 *
 * It holds no timer and no socket, so there is nothing to close. {@linkcode startNodes} puts it on the network.
 *
 * @example Three nodes without any socket
 * ```ts
 * import { assert } from "@std/assert";
 * import { createRedlock } from "@hasp/redlock";
 * import { type Connect } from "@hasp/redlock/redis";
 * import { MemoryRedis } from "@hasp/redlock/testing";
 *
 * const hosts = ["node-1", "node-2", "node-3"];
 * const servers = new Map(hosts.map((host) => [host, new MemoryRedis()]));
 * const connect: Connect = (target, options) => {
 *   if (target.kind !== "tcp") throw new TypeError("Only TCP addresses are served");
 *   return servers.get(target.hostname)!.connect(target, options);
 * };
 * await using redlock = createRedlock(hosts.map((host) => `redis://${host}`), { connect });
 * await using lock = await redlock.acquire("invoice:42");
 * assert(lock.held);
 * ```
 */
export class MemoryRedis {
  readonly #state: ServerState;
  #connections = 0;

  /**
   * Makes a server without any key.
   *
   * @param options Its clock and password.
   */
  constructor(options: MemoryRedisOptions = {}) {
    const { clock = systemClock, password } = options;
    this.#state = {
      clock,
      password: password === undefined ? undefined : utf8ByteString(password),
      databases: Array.from({ length: DATABASES }, () => new Keyspace(clock)),
      scripts: new Set(),
    };
  }

  /** Opens a connection, for a transport of your own. */
  session(): MemorySession {
    return new Session(this.#state, ++this.#connections);
  }

  /** Connects to this server inside the process, whatever the target; for the client's option of that name. */
  readonly connect: Connect = (_target, { signal }) => {
    if (signal.aborted) return Promise.reject(signal.reason);
    return Promise.resolve(new MemoryTransport(this.session()));
  };
}

class Session implements MemorySession {
  readonly #server: ServerState;
  readonly #connection: ConnectionState;
  readonly #decoder: RespDecoder;
  #replies = "";
  #ended = false;

  constructor(server: ServerState, id: number) {
    this.#server = server;
    const authenticated = server.password === undefined;
    this.#connection = { id, database: 0, authenticated, name: "" };
    this.#decoder = new RespDecoder((request) => this.#onRequest(request));
  }

  get ended(): boolean {
    return this.#ended;
  }

  push(bytes: Uint8Array): Uint8Array {
    if (this.#ended) return new Uint8Array(0);
    this.#replies = "";
    try {
      this.#decoder.push(bytes);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#end();
    }
    return fromByteString(this.#replies);
  }

  /** The decoder reads what servers send; only an array of bulk strings is a request as well. */
  #onRequest(request: RawReply): void {
    if (this.#ended || request === null) return;
    const words = Array.isArray(request) ? request : [request];
    if (!words.every((word) => word instanceof Uint8Array) || !Array.isArray(request)) {
      return this.#end();
    }
    if (words.length === 0) return;
    const connection = this.#connection;
    const keys = this.#server.databases[connection.database];
    const context = { server: this.#server, connection, keys };
    this.#replies += runCommand(context, words.map(toByteString));
  }

  #end(): void {
    this.#ended = true;
    this.#replies += failure("ERR Protocol error: expected an array of bulk strings");
  }
}
