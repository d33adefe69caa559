/**
 * How a connection begins: the streams, of which one at a time is opened, at once or again after a
 * delay that grows; and the commands that log in.
 *
 * @module
 */
import type { GetCredentials } from "../credentials.ts";
import { backoffMs, SERVER_BACKOFF } from "../time/backoff.ts";
import type { TimerEntry, TimerWheel } from "../time/timer_wheel.ts";
import type { Connect, ConnectTarget, TlsOptions, Transport } from "../transport/transport.ts";
import { credentialsOf, type RedisAddress } from "./address.ts";
import { closeTransport, type CommandQueue, type ReplyReceiver } from "./wire.ts";
import { encodeApart } from "./encoder.ts";
import { isServing, ReplyError } from "./errors.ts";

/** How long a connection must live before failures are forgotten, in milliseconds. */
const LIVED_MS = 2_000;

/** Commands whose replies need not be good: a connection does without a name. */
const OPTIONAL_COMMANDS: readonly unknown[] = ["CLIENT", "PING"];

/** How streams are opened. */
export interface DialOptions {
  /** Opens the stream. */
  readonly connect: Connect;
  /** Timeout for opening the stream and logging in, in milliseconds. */
  readonly connectTimeoutMs: number;
  /** TLS settings for `rediss://`. */
  readonly tls: TlsOptions;
  /** Returns the credentials of each login; those of the address if it is missing. */
  readonly credentials?: GetCredentials | undefined;
}

/** Who gets the streams. */
export interface DialerOwner {
  /** Called with an open stream. {@linkcode Dialer.stop} must follow when the login is done. */
  onStream(transport: Transport): void;
  /** Called with `could not be made`, and why, if the stream could not be opened. */
  lose(what: string, cause: unknown): void;
  /** Called if stream and login took longer than `connectTimeoutMs`. */
  timeOut(): void;
}

/** Opens the streams of one connection. */
export class Dialer {
  /** The server, with the credentials of the last login. */
  address: RedisAddress;
  /** What an attempt waits for. */
  awaited = "answer";
  /** The end of the first attempt, by the monotonic clock; `Infinity` until then. */
  readyAtMs = Infinity;
  /** Settles when the last attempt is over, and a stream that was opened too late is closed. */
  attempt: Promise<void> | undefined;
  /**
   * When the server accepted the login, or served without one, by the monotonic clock; `Infinity`
   * until then.
   */
  acceptedMs = Infinity;
  /**
   * How many connections in a row have ended early, soon after the server had accepted the login.
   */
  endedEarly = 0;
  readonly #target: ConnectTarget;
  readonly #options: DialOptions;
  readonly #wheel: TimerWheel;
  readonly #owner: DialerOwner;
  /** Attempts since a connection last lived for a while. */
  #failures = 0;
  #opening: AbortController | undefined;
  #timer: TimerEntry | undefined;
  #retry: TimerEntry | undefined;

  /**
   * @param address Where the streams lead.
   * @param options How they are opened.
   * @param wheel Where timers wait.
   * @param owner Gets the streams.
   */
  constructor(address: RedisAddress, options: DialOptions, wheel: TimerWheel, owner: DialerOwner) {
    this.address = address;
    const { target } = address;
    this.#target = target.kind === "tls" ? { ...target, tls: options.tls } : target;
    this.#options = options;
    this.#wheel = wheel;
    this.#owner = owner;
  }

  /** Whether a stream is being opened. */
  get dialing(): boolean {
    return this.#opening !== undefined;
  }

  /**
   * Opens a stream, in the async context of the client: it outlives the call that needs it first.
   */
  dial(): void {
    const { connectTimeoutMs } = this.#options;
    const { signal } = this.#opening = new AbortController();
    this.#limit(connectTimeoutMs, connectTimeoutMs);
    this.#wheel.context.run(() => this.attempt = this.#dial(signal));
  }

  async #dial(signal: AbortSignal): Promise<void> {
    const { connect, credentials } = this.#options;
    try {
      signal.throwIfAborted();
      if (credentials) {
        this.awaited = "credentials";
        const address = await withCredentials(this.address, credentials);
        if (signal.aborted) return; // the next attempt has asked for others
        this.address = address;
        this.awaited = "answer";
      }
      const transport = await connect(this.#target, { signal });
      if (signal.aborted) return closeTransport(transport);
      this.#opening = undefined;
      this.#owner.onStream(transport);
    } catch (cause) {
      if (!signal.aborted) this.#owner.lose("could not be made", cause);
    }
  }

  /**
   * Gives the attempt up after `limitMs`. If that is noticed late, the process stood still, and
   * replies may not have been due before it did: so they get the time that it stood still, once, up
   * to `extraMsMax`. Else a process that stands still in each attempt would never connect.
   */
  #limit(limitMs: number, extraMsMax: number): void {
    const timer = this.#timer = this.#wheel.deadline(limitMs, () => {
      const lateMs = this.#wheel.clock.monotonicMs() - timer.dueMs;
      const extraMs = Math.min(lateMs, extraMsMax);
      if (extraMs > 0) this.#limit(extraMs, 0);
      else this.#owner.timeOut();
    });
  }

  /** The server has accepted the connection. */
  accept(): void {
    this.stop();
    this.acceptedMs = this.#wheel.clock.monotonicMs();
  }

  /** The stream is lost, or could not be opened: opens another one after a delay. */
  lose(): void {
    const { clock, random } = this.#wheel;
    const accepted = this.acceptedMs < Infinity;
    const livedMs = accepted ? clock.monotonicMs() - this.acceptedMs : 0;
    if (livedMs >= LIVED_MS) this.#failures = 0;
    this.endedEarly = accepted && livedMs < LIVED_MS ? this.endedEarly + 1 : 0;
    this.acceptedMs = Infinity;
    const delayMs = backoffMs(random, SERVER_BACKOFF, this.#failures++);
    // It counts from the login: a connection that ends each second would be down as long otherwise.
    // What is left is at least a first delay, and random as that, because a server ends the
    // connections of all clients together.
    const shortestMs = SERVER_BACKOFF.retryDelayMs / 2; // the first is up to twice as long
    const leftMs = Math.max(delayMs - livedMs, shortestMs + delayMs % shortestMs);
    this.#retry = this.#wheel.after(leftMs, () => this.dial());
  }

  /** Ends the attempt: it has succeeded, or is given up. */
  stop(): void {
    this.#opening?.abort();
    this.#opening = undefined;
    this.#wheel.cancel(this.#timer);
    if (this.readyAtMs === Infinity) this.readyAtMs = this.#wheel.clock.monotonicMs();
  }

  /** Opens no other stream. */
  close(): void {
    this.#wheel.cancel(this.#retry);
  }
}

/** An address with the credentials of the next login. */
async function withCredentials(
  address: RedisAddress,
  credentials: GetCredentials,
): Promise<RedisAddress> {
  const { username, password } = await credentials(address.name) ?? {};
  if (typeof password === "string" && ["string", "undefined"].includes(typeof username)) {
    return { ...address, ...credentialsOf(username ?? "", password) };
  }
  throw new TypeError("'credentials' must return { username?, password } with strings");
}

/**
 * Puts the commands that log in, if there are any, in front of all others in a queue.
 *
 * @param commands The commands.
 * @param queue The queue.
 * @param onEnd Called when the server has accepted the last command, or with its refusal of one.
 */
export function logIn(
  commands: string[][],
  queue: CommandQueue,
  onEnd: (refusal?: ReplyError) => void,
): void {
  let due = commands.length;
  const receiver: ReplyReceiver = {
    onReply(reply, { args }) {
      due--;
      const isOptional = OPTIONAL_COMMANDS.includes(args[0]);
      // mutation: refused-login-accepted
      if (reply instanceof ReplyError && !(isOptional && isServing(reply))) onEnd(reply);
      else if (due === 0) onEnd();
    },
    onFailure() {}, // the connection is lost
  };
  for (const args of commands.reverse()) {
    queue.pushFirst({ args, bytes: encodeApart(args) }, receiver);
  }
}

/**
 * The commands that log in, select the database and name the connection, in their order.
 *
 * @param address The server.
 * @param clientName The name of the connection.
 * @param again Whether a connection was lost before: then the server must show that it answers.
 */
export function loginCommands(
  { username, password, database }: RedisAddress,
  clientName: string | undefined,
  again: boolean,
): string[][] {
  const commands: string[][] = [];
  if (username !== undefined) commands.push(["AUTH", username, password ?? ""]);
  else if (password !== undefined) commands.push(["AUTH", password]);
  if (database !== 0) commands.push(["SELECT", String(database)]);
  if (clientName !== undefined) commands.push(["CLIENT", "SETNAME", clientName]);
  if (again) commands.push(["PING"]);
  return commands;
}
