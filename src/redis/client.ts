/**
 * A RESP2 client for one server: commands in, replies out.
 *
 * @module
 */
import { defineConsoleView } from "../console_view.ts";
import { offAbort, onAbort } from "../time/abort_listeners.ts";
import { TimerWheel } from "../time/timer_wheel.ts";
import { check, SIGNAL } from "../validate.ts";
import { type Address, parseAddress, type RedisAddress } from "./address.ts";
import type { ReplyReceiver } from "./wire.ts";
import { type ClientOptions, resolveClientOptions } from "./client_options.ts";
import { checkReplies, type CommandArgument, commandArguments } from "./command_arguments.ts";
import { Connection } from "./connection.ts";
import type { Command } from "./encoder.ts";
import { isServing, ReplyError } from "./errors.ts";
import type { RawReply, Reply } from "./reply.ts";
import { textReply } from "./reply.ts";

export type { ClientOptions };

/** Options of {@linkcode RedisClient.send}. */
export interface SendOptions {
  /**
   * Signal that ends the wait: the call rejects with its reason. The command may still be executed,
   * also if it was not sent yet.
   *
   * @default {no signal}
   */
  signal?: AbortSignal | undefined;
}

/** Waits for the first reply; set by the class, because it needs private members. */
let firstReply: (client: RedisClient) => Promise<void>;

/** One command that somebody waits for. */
interface PendingSend extends Command {
  resolve(reply: RawReply): void;
  reject(reason: unknown): void;
}

const receiver: ReplyReceiver<PendingSend> = {
  onReply(reply, pending) {
    if (reply instanceof ReplyError) pending.reject(reply);
    else pending.resolve(reply);
  },
  onFailure: (error, pending) => pending.reject(error),
};

/**
 * A client for one Redis, Valkey or other RESP2 server. It has one connection, and reconnects if
 * that is lost. It never sends a command twice: while the connection is down, commands fail at
 * once.
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
  readonly #connectTimeoutMs: number;
  readonly #wheel: TimerWheel;

  // A field and not a static block: bundlers leave out the class where nobody uses it.
  static readonly #shared = /* @__PURE__ */ ((): void => {
    firstReply = (client) => client.#firstReply();
    defineConsoleView(this, "RedisClient", (client) => {
      return { address: client.address, state: client.#connection.state };
    });
  })();

  /** The address of the server, without credentials. */
  readonly address: string;

  /**
   * Creates a client, which connects with its first command. {@linkcode connect} connects at once.
   *
   * @param address The address of the server, as in {@linkcode connect}.
   * @param options How to reach the server.
   * @throws {TypeError} If the address is malformed, or an option is unknown or of the wrong type.
   * @throws {RangeError} If a number is out of range.
   */
  constructor(address: Address, options?: ClientOptions) {
    const parsed: RedisAddress = parseAddress(address);
    this.address = parsed.name;
    this.#wheel = new TimerWheel();
    const resolved = resolveClientOptions(options, [parsed]);
    this.#connectTimeoutMs = resolved.connectTimeoutMs;
    this.#connection = new Connection(parsed, resolved, this.#wheel);
  }

  /**
   * Sends one command.
   *
   * @param command The name of the command and its arguments.
   * @param options A signal.
   * @returns The reply, with bulk strings decoded as UTF-8. An error inside an array is an element
   * of the array.
   * @throws {ReplyError} If the server replies with an error.
   * @throws {ConnectionError} If the connection is down, or 16 384 commands wait for replies
   * (`outcome` is `"not-sent"`); or if it is lost before the reply (`"unknown"`).
   * @throws {TypeError} If the command is empty, an argument or the signal is of the wrong type, or
   * it is a command after which replies match no commands any more: one that subscribes or
   * unsubscribes, `MONITOR`, `SYNC`, `PSYNC`, `REPLCONF`, `RESET`, `CLIENT REPLY` or `HELLO 3`;
   * or `SELECT`, which the next connection would forget.
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
   * @throws As in {@linkcode send}.
   */
  async sendRaw(command: readonly CommandArgument[], options?: SendOptions): Promise<RawReply> {
    const signal = options?.signal;
    if (signal !== undefined) check("send command", "signal", signal, SIGNAL);
    signal?.throwIfAborted();
    const args = commandArguments(command);
    checkReplies(args);
    let abandon = () => {};
    this.#wheel.ref();
    try {
      return await new Promise<RawReply>((resolve, reject) => {
        abandon = () => reject(signal!.reason);
        if (signal) onAbort(signal, abandon);
        const { crowded } = this.#connection;
        if (crowded) reject(crowded);
        else this.#connection.submit({ args, resolve, reject }, receiver);
      });
    } finally {
      if (signal) offAbort(signal, abandon);
      this.#wheel.unref();
    }
  }

  /** Connects, and waits for a reply; rejects after `connectTimeoutMs`. */
  async #firstReply(): Promise<void> {
    const limit = this.#wheel.deadline(this.#connectTimeoutMs, () => this.#connection.timeOut());
    try {
      await this.send(["PING"]);
    } catch (error) {
      if (!(error instanceof ReplyError && isServing(error))) throw error;
    } finally {
      this.#wheel.cancel(limit);
    }
  }

  /**
   * Closes the connection. Waits for replies that are due while at least one comes every 250 ms,
   * for 20 s at most; then commands without a reply reject with a {@linkcode ConnectionError}.
   * Idempotent.
   */
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
 * Connects to a server, logs in and waits for its first reply, within `connectTimeoutMs` in all; if
 * that fails, closing the connection may take up to 250 ms more.
 *
 * @param address The address of the server: `redis://[user[:password]@]host[:port][/db]`,
 * `rediss://…` for TLS (`valkey://` and `valkeys://` mean the same), or
 * `redis+unix:///path/to.sock[?db=n]`; or an object with these parts.
 * @param options How to reach the server.
 * @returns A client that is ready for commands.
 * @throws {TypeError} If the address is malformed, or an option is unknown or of the wrong type.
 * @throws {RangeError} If a number is out of range.
 * @throws {ConnectionError} If the server cannot be reached, does not reply in time, or refuses the
 * login; `cause` is the reason.
 * @throws {ReplyError} If the server requires a login, and the address has no password.
 */
export async function connect(
  address: Address,
  options?: ClientOptions,
): Promise<RedisClient> {
  const client = new RedisClient(address, options);
  try {
    await firstReply(client);
    return client;
  } catch (error) {
    await client.close();
    throw error;
  }
}
