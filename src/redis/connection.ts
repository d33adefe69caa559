/**
 * The *connection* to one server. It is opened by the first command and reopened if it is lost; it never keeps commands
 * for later, and never sends one twice.
 *
 * ```
 * new --submit--> connecting --connected--> open --lost--> down --delay--> (connecting again, still down) --> open
 * ```
 *
 * While the connection is opened for the first time, commands wait; if it is down later, they fail at once. A command
 * that was written keeps its place in the queue even if its caller gives up, so a reply is never passed to another
 * command.
 *
 * Commands go out in one write with the login. If that is refused, the connection is lost, and it is unknown whether
 * the server has executed them. If the address names a database, they wait for the login's replies.
 *
 * The connection is open as soon as commands can be sent. That does not show that the server is there: a proxy accepts
 * connections for a server that is down, and a server may refuse by an error in place of the first reply. Therefore only
 * a reply to a command that is not an error resets the delay between attempts.
 *
 * @module
 */
import { settledWithin } from "../time/settled_within.ts";
import type { TimerEntry, TimerWheel } from "../time/timer_wheel.ts";
import type { Connect, TlsOptions, Transport } from "../transport/transport.ts";
import type { RedisAddress } from "./address.ts";
import { CommandQueue, type ReplyReceiver } from "./command_queue.ts";
import type { DecoderOptions } from "./decoder.ts";
import { type Command, encodeCommand } from "./encoder.ts";
import { ConnectionError, ReplyError } from "./errors.ts";
import { type IdleConnection, IdleWatch } from "./idle_watch.ts";
import { connectTarget, loginCommands } from "./opening.ts";
import { printable } from "../printable.ts";
import { messageOf, toError } from "../to_error.ts";
import type { RawReply } from "./reply.ts";
import { type ReplyLimits, ReplyWatch } from "./reply_watch.ts";
import { Wire, type WireOwner } from "./wire.ts";

/** Limit of the commands that wait for replies. Commands that undo others may exceed it, up to twice as many. */
export const QUEUE_LENGTH_MAX = 16_384;
/** First delay before reconnecting, in milliseconds; doubled each time, with jitter down to one half. */
const RECONNECT_DELAY_MS = 50;
/** Longest delay before reconnecting, in milliseconds. */
const RECONNECT_DELAY_MS_MAX = 2_000;
/** Longest wait of `close` for replies that are due, in milliseconds, so that no undo is cut off. */
const CLOSE_GRACE_MS = 250;

/** How a connection is opened, and the callbacks of its owner. */
export interface ConnectionOptions extends ReplyLimits, Omit<DecoderOptions, "secrets"> {
  /** Opens the stream. */
  readonly connect: Connect;
  /** Timeout for opening the stream and logging in, in milliseconds. */
  readonly connectTimeoutMs: number;
  /** TLS settings for `rediss://`. */
  readonly tls: TlsOptions;
  /** The name that the server's `CLIENT LIST` shows. */
  readonly clientName: string | undefined;
  /** Called when the connection is open: commands can be sent. */
  onConnected?(): void;
  /** Called when an open connection is lost, or the first attempt fails; not for further attempts. */
  onDisconnected?(error: ConnectionError): void;
  /**
   * Called when the server has accepted the login, or has replied to a command if there is no login: the first time, and
   * after each {@linkcode onUnavailable}.
   */
  onAvailable?(): void;
  /** Called when the connection to an available server is lost, or the first connection is lost or could not be made. */
  onUnavailable?(error: ConnectionError): void;
  /** Called for each reply to a command of the owner; returns whether it was a message of a channel, and no reply. */
  takesMessage?(reply: RawReply): boolean;
}

/** The state of a connection. */
export type State = "new" | "connecting" | "open" | "down" | "closing" | "closed";

/** The tag of the command that names the connection: a name is no reason to do without the server. */
const NAMING = 1;
/** The receiver of a command whose reply is not needed. */
const IGNORE: ReplyReceiver = { onReply() {}, onFailure() {} };
const PING: Command = { args: ["PING"] };

/** A connection to one server, which reconnects by itself. */
export class Connection implements WireOwner, IdleConnection {
  /** The arrival of the last bytes, by the monotonic clock, which is read once for all replies of one chunk. */
  receivedAtMs = 0;
  readonly #address: RedisAddress;
  readonly #options: ConnectionOptions;
  readonly #wheel: TimerWheel;
  readonly #queue = new CommandQueue();
  /** How many replies to commands that log in are due. */
  #greetings = 0;
  readonly #watch: ReplyWatch;
  readonly #idle: IdleWatch;
  #state: State = "new";
  #wire: Wire | undefined = undefined;
  #connecting: AbortController | undefined = undefined;
  /** Settles when the last attempt is over, and a stream that was opened too late is closed. */
  #attempt: Promise<void> | undefined = undefined;
  #connectTimer: TimerEntry | undefined = undefined;
  #retry: TimerEntry | undefined = undefined;
  /** Attempts since the server last replied to a command. */
  #failures = 0;
  /** Whether the server has replied to a command on this connection without an error. */
  #served = false;
  /** The last error reply, if all replies on this connection were errors: probably the reason why the server closes it. */
  #refusal: ReplyError | undefined = undefined;
  /** Whether the last call was `onAvailable` or `onUnavailable`. */
  #available: boolean | undefined = undefined;
  #readyAtMs = Infinity;
  #delivering = false;
  #downError: ConnectionError | undefined = undefined;
  #crowdedError: ConnectionError | undefined = undefined;
  #onDrained: (() => void) | undefined = undefined;
  #closing: Promise<void> | undefined = undefined;

  constructor(address: RedisAddress, options: ConnectionOptions, wheel: TimerWheel) {
    this.#address = address;
    this.#options = options;
    this.#wheel = wheel;
    this.#watch = new ReplyWatch(wheel, this.#queue, options, (what) => this.#lose(what));
    this.#idle = new IdleWatch(wheel, this);
  }

  /** The end of the first attempt, by the monotonic clock; `Infinity` until then. */
  get readyAtMs(): number {
    return this.#readyAtMs;
  }

  /** The state at this moment. */
  get state(): State {
    return this.#state;
  }

  /** Whether a command is sent at once. */
  get open(): boolean {
    return this.#state === "open";
  }

  /** Whether too many commands wait for one more that undoes nothing. */
  get crowded(): boolean {
    return this.#queue.length >= QUEUE_LENGTH_MAX;
  }

  /**
   * Queues one command. The receiver is called exactly once; before this returns if the command cannot be sent.
   *
   * @param command A command, which is encoded here if that has not been done.
   * @param receiver Receives the reply, or the error.
   * @param context A value for the receiver.
   * @param tag A number for the receiver.
   */
  submit(command: Command, receiver: ReplyReceiver, context: unknown, tag: number): void {
    if (this.#state === "new") this.#attempt = this.#connect();
    // A reply that arrives during `close` may need one more command, for a script that the server does not know.
    const open = this.#state === "open" || this.#state === "closing" && this.#delivering;
    if (!open && this.#state !== "connecting") {
      return receiver.onFailure(this.#downError ?? this.#error("is closed"), context, tag);
    }
    if (this.#queue.length >= 2 * QUEUE_LENGTH_MAX) {
      return receiver.onFailure(this.crowdedError(), context, tag);
    }
    if (open) this.#flush(); // at the end of this tick
    this.#queue.push(command.bytes ??= encodeCommand(command.args), receiver, context, tag);
  }

  /** Removes a command that is not written yet; returns whether it did. */
  withdraw(context: unknown): boolean {
    return this.#queue.withdraw(context);
  }

  /**
   * The error of a command that is refused because too many wait. It is always the same one: while a server hangs, an
   * error with a stack for each command would cost more than the locks themselves.
   */
  crowdedError(): ConnectionError {
    return this.#crowdedError ??= this.#error(
      `has at least ${QUEUE_LENGTH_MAX} commands waiting for replies`,
    );
  }

  /** Drops a connection that was not ready within `connectTimeoutMs`. */
  timeOut(): void {
    if (!this.#connecting && !this.#wire) return; // it was dropped already
    const { connectTimeoutMs } = this.#options;
    this.#lose("could not be made", new Error(`no answer within ${connectTimeoutMs} ms`));
  }

  /** Closes for good: waits a moment for replies that are due, then fails the other commands. Idempotent. */
  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  /** Part of {@linkcode WireOwner}. */
  onBytes(): void {
    this.#watch.quietTicks = 0;
    this.receivedAtMs = this.#wheel.clock.monotonicMs();
  }

  /** Part of {@linkcode WireOwner}. */
  readonly onReply = (reply: RawReply): void => {
    if (this.#options.takesMessage?.(reply)) return;
    const { queue } = this.#wire!;
    if (queue.sent === 0) return this.#onUnaskedReply(reply);
    if (!this.#served && this.#greetings === 0) this.#onFirstReply(reply);
    this.#delivering = true;
    queue.settleFirst(reply);
    this.#delivering = false;
    if (this.#onDrained && this.#queue.length === 0) this.#onDrained();
  };

  /** Part of {@linkcode WireOwner}. */
  onLost(cause: unknown): void {
    if (this.#refusal) this.#lose("was refused", this.#refusal);
    else this.#lose("was lost", cause);
  }

  /** Part of {@linkcode WireOwner}. */
  nextTurn(callback: () => void): void {
    this.#wheel.after(0, callback);
  }

  async #connect(): Promise<void> {
    if (this.#state === "new") this.#state = "connecting";
    const { connect, connectTimeoutMs, tls } = this.#options;
    const target = connectTarget(this.#address, tls);
    const controller = this.#connecting = new AbortController();
    this.#connectTimer = this.#wheel.deadline(connectTimeoutMs, () => this.timeOut());
    try {
      const transport = await connect(target, { signal: controller.signal });
      if (controller.signal.aborted) transport.close();
      else this.#greet(transport);
    } catch (cause) {
      if (!controller.signal.aborted) this.#lose("could not be made", cause);
    }
  }

  /** Logs in, in front of the commands that wait; before they are sent if they are meant for another database. */
  #greet(transport: Transport): void {
    this.#connecting = undefined;
    const { secrets, database } = this.#address;
    const { clientName, replyBytesMax, replyElementsMax } = this.#options;
    // mutation: database-not-awaited
    const awaited = database !== 0;
    const queue = awaited ? new CommandQueue() : this.#queue;
    for (const command of loginCommands(this.#address, clientName).reverse()) {
      const tag = command[0] === "CLIENT" ? NAMING : 0;
      queue.pushFirst(encodeCommand(command), this.#greeter, undefined, tag);
      this.#greetings++;
    }
    const limits = { replyBytesMax, replyElementsMax, secrets };
    const wire = this.#wire = new Wire(transport, this, queue, limits);
    wire.begin();
    if (this.#wire !== wire) return; // it is lost already
    if (this.#greetings === 0) this.#endConnecting();
    if (awaited) wire.flush();
    else this.#opened();
  }

  /** Receives the replies to the commands that log in. */
  readonly #greeter: ReplyReceiver = {
    onReply: (reply, _context, tag) => {
      this.#greetings--;
      // mutation: refused-login-accepted
      if (reply instanceof ReplyError && !(tag === NAMING && reply.commandRefused)) {
        return this.#lose("was refused", reply);
      }
      if (this.#greetings > 0) return;
      this.#endConnecting();
      this.#becomeAvailable();
      if (this.#wire!.queue !== this.#queue) this.#opened();
    },
    onFailure() {}, // the connection is lost
  };

  #opened(): void {
    this.#state = "open";
    this.#downError = undefined;
    this.#wire!.queue = this.#queue;
    this.receivedAtMs = this.#wheel.clock.monotonicMs();
    if (this.#wire!.outlivesCalls) this.#idle.begin();
    this.#options.onConnected?.();
    if (this.#queue.length > 0) this.#flush();
    if (this.#available === false && this.#options.onAvailable) this.#idle.askSoon();
  }

  /** Sends a PING unless commands are sent anyway: its reply shows that the server is there. */
  ask(): void {
    if (this.open && this.#queue.length === 0) this.submit(PING, IGNORE, undefined, 0);
  }

  /** Has the wire write what is queued by the end of this tick, and watches for the replies. */
  #flush(): void {
    if (this.#queue.sent === 0) this.#watch.quietTicks = 0;
    if (!this.#watch.watching) this.#watch.begin();
    this.#wire!.flush();
  }

  #onFirstReply(reply: RawReply): void {
    if (reply instanceof ReplyError) {
      this.#refusal = reply;
      return;
    }
    this.#served = true;
    this.#idle.answered();
    this.#refusal = undefined;
    this.#failures = 0;
    this.#becomeAvailable();
  }

  #becomeAvailable(): void {
    if (this.#available) return;
    this.#available = true;
    this.#options.onAvailable?.();
  }

  #onUnaskedReply(reply: RawReply): void {
    if (reply instanceof ReplyError) this.#lose("was refused", reply);
    else this.#lose("sent a reply that nobody asked for");
  }

  #endConnecting(): void {
    this.#connecting?.abort();
    this.#connecting = undefined;
    if (this.#connectTimer) this.#wheel.cancel(this.#connectTimer);
    if (this.#readyAtMs === Infinity) this.#readyAtMs = this.#wheel.clock.monotonicMs();
  }

  /** Drops the connection, fails all commands, and schedules the next attempt. */
  #lose(what: string, cause?: unknown): void {
    if (this.#state === "closed") return;
    const closing = this.#state === "closing";
    const down = this.#state === "down";
    this.#teardown();
    this.#state = closing ? "closed" : "down";
    this.#downError = this.#error(what, cause);
    const unknown = this.#error(what, cause, "unknown");
    // mutation: no-reconnect
    if (!closing) this.#planRetry();
    // mutation: sent-commands-count-as-unsent
    this.#queue.failAll(unknown, this.#downError);
    this.#onDrained?.();
    if (!down) this.#options.onDisconnected?.(this.#downError);
    if (this.#available === false) return;
    this.#available = false;
    this.#options.onUnavailable?.(this.#downError);
  }

  #teardown(): void {
    this.#endConnecting();
    this.#idle.end();
    this.#watch.end();
    this.#served = false;
    this.#refusal = undefined;
    const wire = this.#wire;
    this.#wire = undefined;
    this.#greetings = 0;
    wire?.close();
  }

  #planRetry(): void {
    const delayMs = Math.min(RECONNECT_DELAY_MS * 2 ** this.#failures++, RECONNECT_DELAY_MS_MAX);
    const jitteredMs = delayMs * (1 + this.#wheel.random.fraction()) / 2;
    this.#retry = this.#wheel.after(jitteredMs, () => void (this.#attempt = this.#connect()));
  }

  async #close(): Promise<void> {
    if (this.#retry) this.#wheel.cancel(this.#retry);
    const wire = this.#wire;
    if (this.#state === "open" && this.#queue.length > 0) {
      this.#state = "closing";
      const drained = new Promise<void>((resolve) => this.#onDrained = resolve);
      await settledWithin(this.#wheel, drained, CLOSE_GRACE_MS);
    }
    const error = this.#downError = this.#error("was closed");
    this.#teardown();
    this.#state = "closed";
    this.#queue.failAll(this.#error("was closed", undefined, "unknown"), error);
    const closed = Promise.all([this.#attempt, wire?.close()]);
    await settledWithin(this.#wheel, closed, CLOSE_GRACE_MS);
  }

  #error(
    what: string,
    cause?: unknown,
    outcome: "not-sent" | "unknown" = "not-sent",
  ): ConnectionError {
    const { name: address, secrets } = this.#address;
    // The names in a certificate are text of the server too.
    const why = cause === undefined ? "" : `: ${printable(messageOf(cause), secrets)}`;
    return new ConnectionError(`Connection to ${address} ${what}${why}`, {
      address,
      outcome,
      cause: cause === undefined ? undefined : toError(cause),
    });
  }
}
