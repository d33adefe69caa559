/**
 * A connection to a server in memory: bytes in, bytes out.
 *
 * @module
 */
import { RespDecoder } from "../../redis/decoder.ts";
import { ProtocolError } from "../../redis/errors.ts";
import type { RawReply } from "../../redis/reply.ts";
import { Connection, type ServerState } from "../commands/command.ts";
import { runCommand } from "../commands/commands.ts";
import { encodeReply, failure, fromByteString, type Reply, toByteString } from "./replies.ts";

/** A connection to a {@linkcode MemoryRedis}: bytes in, bytes out. */
export interface MemorySession {
  /**
   * Receives the next bytes, however they are split, and executes every command that they complete.
   *
   * @param bytes Requests, that is, arrays of bulk strings. The array is not kept.
   * @returns The replies, one after the other; empty if no command is complete.
   */
  push(bytes: Uint8Array): Uint8Array;
  /** Closes the connection from the client's side, and ends its subscriptions. Idempotent. */
  close(): void;
  /**
   * Whether the connection has ended: by `close()`, by QUIT, by a malformed request, or by a
   * restart of the server.
   */
  readonly ended: boolean;
}

/** Options of {@linkcode MemoryRedis.session}: callbacks for what the client did not ask for. */
export interface MemorySessionOptions {
  /**
   * Called with messages of the channels that the client is subscribed to. Without this callback,
   * the next `push` returns them before its replies.
   */
  onMessage?: ((bytes: Uint8Array) => void) | undefined;
  /** Called once when the connection has ended, for whatever reason. */
  onEnd?: (() => void) | undefined;
}

/** A session on a server's state. */
export class ServerSession implements MemorySession {
  readonly #server: ServerState;
  readonly #options: MemorySessionOptions;
  readonly #connection: Connection;
  readonly #decoder: RespDecoder;
  #replies = "";
  /** Whether it executes requests: a message that these make stands between their replies. */
  #isBusy = false;
  #ended = false;

  /**
   * @param server The state of the server.
   * @param id The number of the connection.
   * @param options Callbacks of the owner.
   */
  constructor(server: ServerState, id: number, options: MemorySessionOptions) {
    this.#server = server;
    this.#options = options;
    const deliver = (message: Reply) => this.#onMessage(message);
    this.#connection = new Connection(server, id, deliver, () => this.close());
    server.connections.add(this.#connection);
    this.#decoder = new RespDecoder((request) => this.#onRequest(request));
  }

  get ended(): boolean {
    return this.#ended;
  }

  push(bytes: Uint8Array): Uint8Array {
    if (this.#ended) return new Uint8Array(0);
    this.#isBusy = true;
    try {
      this.#decoder.push(bytes);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#refuse();
    } finally {
      this.#isBusy = false;
    }
    const replies = fromByteString(this.#replies);
    this.#replies = "";
    return replies;
  }

  close(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#server.connections.delete(this.#connection);
    this.#options.onEnd?.();
  }

  #onMessage(message: Reply): void {
    const encoded = encodeReply(message, this.#connection.protocol);
    if (this.#options.onMessage && !this.#isBusy) this.#options.onMessage(fromByteString(encoded));
    else this.#replies += encoded;
  }

  /** The decoder reads what servers send; only an array of bulk strings is a request as well. */
  #onRequest(request: RawReply): void {
    if (this.#ended || request === null) return;
    if (!Array.isArray(request) || !request.every((word) => word instanceof Uint8Array)) {
      return this.#refuse();
    }
    if (request.length === 0) return;
    const words = request.map(toByteString);
    const reply = runCommand(this.#server, this.#connection, words); // first: it may send messages
    this.#replies += reply;
  }

  #refuse(): void {
    this.#replies += failure("ERR Protocol error: expected an array of bulk strings");
    this.close();
  }
}
