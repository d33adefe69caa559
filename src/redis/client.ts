/**
 * A RESP2 client for one server: commands in, replies out.
 *
 * @module
 */
import { defineConsoleView } from "../console_view.ts";
import { checkOptions, checkPositiveMs } from "../validate.ts";
import { offAbort, onAbort } from "../time/abort_listeners.ts";
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

/** Default timeout for opening a connection, in milliseconds. */
const CONNECT_TIMEOUT_MS = 1_000;
/** Default silence while replies are due after which a connection is replaced, in milliseconds. */
const STALL_TIMEOUT_MS = 2_000;

/** Options of {@linkcode connect} and {@linkcode RedisClient}: how to reach a server. */
export interface ClientOptions {
  /**
   * Timeout for opening a connection and logging in, in milliseconds; greater than 0 and finite.
   *
   * @default {1000}
   */
  connectTimeoutMs?: number;
  /**
   * Timeout for silence: if replies are due and nothing arrives for this long, in milliseconds, the connection is closed
   * and replaced. Greater than 0; `Infinity` turns it off, for commands that block, such as `BLPOP`.
   *
   * @default {2000}
   */
  stallTimeoutMs?: number;
  /**
   * TLS settings for `rediss://` addresses.
   *
   * @default {the runtime's own certificate authorities, no client certificate}
   */
  tls?: TlsOptions;
  /**
   * Name of this client in the server's `CLIENT LIST`: printable ASCII without spaces.
   *
   * @default {no name}
   */
  clientName?: string;
  /**
   * Function that opens a stream to a server, in place of the runtime's own sockets.
   *
   * @default {the sockets of the runtime}
   */
  connect?: Connect;
}

/** Options of {@linkcode RedisClient.send}. */
export interface SendOptions {
  /** Signal that ends the waiting: the call rejects with its reason. A command that was sent is executed all the same. */
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
 * A client for one Redis, Valkey or other RESP2 server. It has one connection, and reconnects if that is lost. It never
 * sends a command twice: while the connection is down, commands fail at once.
 *
 * Commands are pipelined: all commands of one tick are sent in one write.
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

  /** The address of the server, without credentials. */
  readonly address: string;

  /**
   * Creates a client, which connects with its first command. {@linkcode connect} connects at once.
   *
   * @param address The address of the server, as in {@linkcode connect}.
   * @param options How to reach the server.
   * @throws {TypeError} If the address is malformed, or an option is unknown or of the wrong type.
   * @throws {RangeError} If a timeout is out of range.
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
   * @param command The name of the command and its arguments.
   * @param options A signal.
   * @returns The reply, with bulk strings decoded as UTF-8. An error inside an array is an element of the array.
   * @throws {ReplyError} If the server replies with an error.
   * @throws {ConnectionError} If the connection is down (`outcome` is `"not-sent"`), or is lost before the reply
   *   (`"unknown"`).
   * @throws {TypeError} If the command is empty, or an argument is of the wrong type.
   * @throws {RangeError} If a number is not a safe integer.
   * @throws The reason of the signal, if it aborts.
   */
  async send(command: readonly CommandArgument[], options?: SendOptions): Promise<Reply> {
    return textReply(await this.sendRaw(command, options));
  }

  /**
   * Sends one command, like {@linkcode send}, and returns bulk strings as bytes.
   *
   * @param command The name of the command and its arguments.
   * @param options A signal.
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
        if (signal) onAbort(signal, abandon);
        if (this.#connection.crowded) reject(this.#connection.crowdedError());
        else this.#connection.submit(encoded, receiver, pending, 0);
      });
    } finally {
      this.#wheel.unref();
      if (abandon && signal) offAbort(signal, abandon);
    }
  }

  /** Closes the connection. Commands without a reply after 250 ms reject with a {@linkcode ConnectionError}. Idempotent. */
  async close(): Promise<void> {
    await this.#connection.close();
    this.#wheel.close();
  }

  /** Closes the client at the end of `await using`, as {@linkcode close} does. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/**
 * Connects to a server and logs in.
 *
 * @param address The address of the server: `redis://[user[:password]@]host[:port][/db]`, `rediss://…` for TLS
 *   (`valkey://` and `valkeys://` mean the same), or `redis+unix:///path/to.sock[?db=n]`.
 * @param options How to reach the server.
 * @returns A client that is ready for commands.
 * @throws {TypeError} If the address is malformed, or an option is unknown or of the wrong type.
 * @throws {RangeError} If a timeout is out of range.
 * @throws {ConnectionError} If the server cannot be reached, or refuses the login; `cause` says why.
 * @throws {ReplyError} If the server requires a login, and the address has no password.
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
