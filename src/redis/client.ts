/**
 * The RESP2 client by itself: one server, commands in, replies out.
 *
 * @module
 */
import { defineConsoleView } from "../console_view.ts";
import { checkOptions, checkPositiveMs } from "../validate.ts";
import { TimerWheel } from "../time/timer_wheel.ts";
import { connect as connectDefault } from "../transport/default.ts";
import type { Connect, TlsOptions } from "../transport/transport.ts";
import { parseAddress, type RedisAddress } from "./address.ts";
import type { ReplyReceiver } from "./command_queue.ts";
import { Connection, type ConnectionOptions } from "./connection.ts";
import { type CommandArgument, encodeCommand } from "./encoder.ts";
import { ReplyError } from "./errors.ts";
import type { RawReply, Reply } from "./reply.ts";
import { textReply } from "./reply.ts";

/** Longest time for making a connection, in milliseconds, unless told otherwise. */
const CONNECT_TIMEOUT_MS = 1_000;
/** Silence while replies are due after which a connection is made anew, in milliseconds, unless told otherwise. */
const STALL_TIMEOUT_MS = 2_000;

/** How to reach a server. */
export interface ClientOptions {
  /**
   * Longest time for opening a connection and logging in, in milliseconds; more than 0.
   *
   * @default {1000}
   */
  connectTimeoutMs?: number;
  /**
   * How long a connection may be silent while replies are due, in milliseconds, before it is closed and
   * made anew; more than 0. Set it to `Infinity` for commands that block, such as `BLPOP`.
   *
   * @default {2000}
   */
  stallTimeoutMs?: number;
  /** TLS settings for `rediss://` addresses. */
  tls?: TlsOptions;
  /** A name for this client, shown by the server's `CLIENT LIST`. */
  clientName?: string;
  /** Opens the stream, in place of the runtime's own sockets. */
  connect?: Connect;
}

/** How one command is sent. */
export interface SendOptions {
  /** Gives up waiting; the call rejects with the signal's reason. A command that was written still runs. */
  signal?: AbortSignal;
}

const NAMES: { readonly [Name in keyof Required<ClientOptions>]: true } = {
  connectTimeoutMs: true,
  stallTimeoutMs: true,
  tls: true,
  clientName: true,
  connect: true,
};

/** The names of all options of the client. */
export const CLIENT_OPTION_NAMES: readonly string[] = Object.keys(NAMES);

/** Fills in the defaults of the client's options and checks them. */
export function resolveClientOptions(options: ClientOptions = {}): ConnectionOptions {
  checkOptions("connect to Redis", options, CLIENT_OPTION_NAMES);
  const {
    connectTimeoutMs = CONNECT_TIMEOUT_MS,
    stallTimeoutMs = STALL_TIMEOUT_MS,
    tls = {},
    clientName,
    connect = connectDefault,
  } = options;
  checkPositiveMs("connect to Redis", "connectTimeoutMs", connectTimeoutMs);
  if (stallTimeoutMs !== Infinity) {
    checkPositiveMs("connect to Redis", "stallTimeoutMs", stallTimeoutMs);
  }
  if (typeof tls !== "object" || tls === null) {
    throw new TypeError("Cannot connect to Redis as 'tls' must be an object");
  }
  if (typeof connect !== "function") {
    throw new TypeError("Cannot connect to Redis as 'connect' must be a function");
  }
  // The server refuses such a name too, but only once it is connected to.
  if (clientName !== undefined && !/^[!-~]+$/u.test(clientName)) {
    throw new TypeError(
      "Cannot connect to Redis as 'clientName' must be printable ASCII without spaces",
    );
  }
  return { connectTimeoutMs, stallTimeoutMs, tls, clientName, connect };
}

/** One command that somebody waits for. */
interface PendingSend {
  resolve(reply: RawReply): void;
  reject(reason: unknown): void;
}

const receiver: ReplyReceiver = {
  onReply(reply, context) {
    const pending = context as PendingSend;
    if (reply instanceof ReplyError) pending.reject(reply);
    else pending.resolve(reply);
  },
  onFailure: (error, context) => (context as PendingSend).reject(error),
};

/**
 * A client of one Redis, Valkey or other RESP2 server. It keeps one connection, makes it anew when it is
 * lost, and never sends a command twice: a command whose connection is down fails at once.
 *
 * Commands are pipelined: what is sent without awaiting in between goes out in one write.
 *
 * @example Two commands in one round trip
 * ```ts
 * import { assert } from "@std/assert";
 * import { connect } from "@hasp/redlock/redis";
 * import { startNodes } from "@hasp/redlock/testing";
 *
 * await using nodes = await startNodes(1);
 * await using client = await connect(nodes.addresses[0]);
 * const [, value] = await Promise.all([
 *   client.send(["SET", "greeting", "hello"]),
 *   client.send(["GET", "greeting"]),
 * ]);
 * assert(value === "hello");
 * ```
 */
export class RedisClient implements AsyncDisposable {
  readonly #connection: Connection;
  readonly #wheel: TimerWheel;

  static {
    defineConsoleView(this.prototype, "RedisClient", (client) => {
      return { address: client.address, state: client.#connection.state };
    });
  }

  /** The server's address without credentials. */
  readonly address: string;

  /**
   * Makes a client; its connection is made by the first command. {@linkcode connect} waits for it.
   *
   * @param address `redis://…`, `rediss://…` or `redis+unix://…`.
   * @param options How to reach the server.
   * @throws {TypeError} If the address or an option is of the wrong shape.
   * @throws {RangeError} If a time is out of range.
   */
  constructor(address: string | URL, options?: ClientOptions) {
    const parsed: RedisAddress = parseAddress(address);
    this.address = parsed.name;
    this.#wheel = new TimerWheel();
    this.#connection = new Connection(parsed, resolveClientOptions(options), this.#wheel);
  }

  /**
   * Sends one command.
   *
   * @param command The command's name and arguments: strings, safe integers, bytes.
   * @param options Whether and when to give up waiting.
   * @returns The reply, with bulk strings read as UTF-8. An error inside an array is an element of it.
   * @throws {ReplyError} If the server answers with an error.
   * @throws {ConnectionError} If the connection is down (`outcome` is `"not-sent"`) or breaks before the
   *   reply has come (`"unknown"`).
   * @throws {TypeError} If the command is empty or an argument is of the wrong type.
   */
  async send(command: readonly CommandArgument[], options?: SendOptions): Promise<Reply> {
    return textReply(await this.sendRaw(command, options));
  }

  /**
   * Sends one command, like {@linkcode send}, and leaves bulk strings as they are: bytes.
   *
   * @param command The command's name and arguments.
   * @param options Whether and when to give up waiting.
   * @returns The reply, with bulk strings as `Uint8Array`.
   */
  async sendRaw(command: readonly CommandArgument[], options?: SendOptions): Promise<RawReply> {
    const signal = options?.signal;
    signal?.throwIfAborted();
    const encoded = encodeCommand(command);
    let abandon: (() => void) | undefined;
    this.#wheel.ref();
    try {
      return await new Promise<RawReply>((resolve, reject) => {
        const pending: PendingSend = { resolve, reject };
        abandon = () => {
          this.#connection.withdraw(pending);
          reject(signal!.reason);
        };
        signal?.addEventListener("abort", abandon, { once: true });
        if (this.#connection.crowded) reject(this.#connection.crowdedError());
        else this.#connection.submit(encoded, receiver, pending, 0);
      });
    } finally {
      this.#wheel.unref();
      if (abandon) signal?.removeEventListener("abort", abandon);
    }
  }

  /** Closes the connection; what still waits for a reply after a moment rejects. Idempotent. */
  async close(): Promise<void> {
    await this.#connection.close();
    this.#wheel.close();
  }

  /** Closes the client at the end of `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/**
 * Connects to a server and logs in.
 *
 * @param address `redis://[user[:password]@]host[:port][/db]`, `rediss://…` or `redis+unix:///path[?db=n]`.
 * @param options How to reach the server.
 * @returns A client that is ready.
 * @throws {TypeError} If the address or an option is of the wrong shape.
 * @throws {ConnectionError} If the server cannot be reached or does not let us in; `cause` says why.
 */
export async function connect(
  address: string | URL,
  options?: ClientOptions,
): Promise<RedisClient> {
  const client = new RedisClient(address, options);
  try {
    await client.send(["PING"]);
    return client;
  } catch (error) {
    await client.close();
    throw error;
  }
}
