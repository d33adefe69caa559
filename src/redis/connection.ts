/**
 * The *connection* to one server. It is opened by the first command and reopened if it is lost; it
 * never keeps commands for later, and never sends one twice.
 *
 * ```
 * new --submit--> connecting --stream--> open --lost--> down --delay, stream, PING--> open
 *                                         | \ given up --> ending --lost--> down
 *                                         + close() --> closing --no reply due--> closed
 * ```
 *
 * | state      | a command                | a reply                                            |
 * | ---------- | ------------------------ | -------------------------------------------------- |
 * | new        | opens the stream         |                                                    |
 * | connecting | waits                    | to the login only                                  |
 * | open       | is sent                  | goes to the first command that waits               |
 * | closing    | is sent; see `crowded`   | goes to the first command that waits               |
 * | ending     | is sent; see `crowded`   | is ignored                                         |
 * | down       | fails                    | to the login and its PING only                     |
 * | closed     | fails                    |                                                    |
 *
 * It is *accepted* once the server has accepted the login, or has executed a command without one,
 * or refused that alone. It is *lost* when its stream has ended, and its commands have failed: all
 * ends lead there. It is *given up* if the login was refused, or not answered in time, though
 * commands were sent with it: then it is lost after a moment. The owner has callbacks for open,
 * accepted and lost.
 *
 * A command keeps its place in the queue even if its caller gives up, so a reply is never passed to
 * another command.
 *
 * The first commands go out in one write with the login. If that is refused, the connection is
 * lost, and it is unknown whether the server has executed them. If the address names a database,
 * they wait for the login's replies.
 *
 * A connection that was lost is open again when the server has answered a PING behind the login.
 * Only one that has lived for two seconds resets the delay between attempts, because a proxy may
 * accept the login and end each connection; but the delay counts from when it was accepted. That a
 * stream could be opened does not show that the server is there: the system accepts it for one that
 * hangs, a proxy for one that is down, and a server may refuse by an error in place of the first
 * reply.
 *
 * @module
 */
import { settledWithin } from "../time/pause.ts";
import type { TimerEntry, TimerWheel } from "../time/timer_wheel.ts";
import type { Transport } from "../transport/transport.ts";
import type { RedisAddress } from "./address.ts";
import type { DecoderOptions } from "./decoder.ts";
import { Dialer, type DialerOwner, type DialOptions, logIn, loginCommands } from "./dialer.ts";
import { type Command, encodeCommand } from "./encoder.ts";
import { ConnectionError, isServing, ReplyError } from "./errors.ts";
import { printable } from "../printable.ts";
import { stackless } from "../stackless.ts";
import { messageOf, toError } from "../to_error.ts";
import type { RawReply } from "./reply.ts";
import {
  CommandQueue,
  type ReplyLimits,
  type ReplyReceiver,
  Wire,
  type WireOwner,
} from "./wire.ts";

/**
 * Limit of the commands that wait for replies, which those keep who submit them (`crowded`). What
 * undoes others may exceed it: so nothing of it is lost.
 */
export const QUEUE_LENGTH_MAX = 16_384;
/**
 * For how long a connection that is given up takes what undoes its commands, in milliseconds: other
 * nodes decide, too.
 */
const ENDING_MS = 50;
/**
 * For how long `close` waits for a further reply while some are due, in milliseconds, so that no
 * undo is cut off.
 */
const CLOSE_GRACE_MS = 250;
/** How often it does that at most: for 20 seconds in all. */
const CLOSE_GRACES_MAX = 80;
/**
 * A server that closes a connection because of an error that it answered does so within this time,
 * in milliseconds.
 */
const REFUSED_MS_MAX = 1_000;

/** How a connection is opened, and the callbacks of its owner. */
export interface ConnectionOptions
  extends DialOptions, ReplyLimits, Omit<DecoderOptions, "secrets"> {
  /** The name that the server's `CLIENT LIST` shows. */
  readonly clientName: string | undefined;
  /** Called when the connection is open. */
  onOpen?(): void;
  /** Called once for each connection that is accepted; the first one may be open before. */
  onAccepted?(): void;
  /**
   * Called when an open connection is lost, or the first attempt fails; not for further attempts.
   */
  onLost?(error: ConnectionError): void;
  /**
   * Called for each reply to a command of the owner; returns whether it was a message of a channel,
   * and no reply.
   */
  takesMessage?(reply: RawReply): boolean;
}

/**
 * What may be wrong if no connection was ever accepted, by its kind and what became of it. A server
 * with TLS ends a connection when it gets plain text, and a proxy without a server ends each; a
 * server without TLS waits for the rest, or answers in plain text.
 */
const HINTS: readonly (readonly [pattern: RegExp, hint: string])[] = [
  [
    /^tcp was lost: .*(reset|closed)/iu,
    "a server with TLS needs rediss://; a proxy may have no server",
  ],
  [
    /^tls could.*(: no answer|wrong.version|InvalidContentType)/iu,
    "a server without TLS needs redis://",
  ],
  [
    /^tls could.*(self.signed|unable to (get|verify)|UnknownIssuer)/iu,
    "its authority must be in 'tls.caCerts'",
  ],
  [/^tcp was lost: .* a reply begins/u, "it may be no Redis server"],
];

/** The state of a connection; see the module. */
export type State = "new" | "connecting" | "open" | "closing" | "ending" | "down" | "closed";

/** A connection to one server, which reconnects by itself. */
export class Connection implements WireOwner, DialerOwner {
  /**
   * The arrival of the last bytes, by the monotonic clock, which is read once for all replies of
   * one chunk.
   */
  receivedAtMs = 0;
  readonly #options: ConnectionOptions;
  readonly #wheel: TimerWheel;
  #queue = new CommandQueue();
  /** Whether the login of this connection has commands, so that their replies accept it. */
  #logsIn = false;
  readonly #dialer: Dialer;
  /**
   * The last error reply on this connection, if that is not accepted: probably the reason why the
   * server closes it.
   */
  #refusal: ReplyError | undefined;
  #state: State = "new";
  /** Whether the server has ever accepted a connection. */
  #known = false;
  #wire: Wire | undefined;
  #downError: ConnectionError | undefined;
  #crowded: ConnectionError | undefined;
  #ending: TimerEntry | undefined;
  #onDrained: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(address: RedisAddress, options: ConnectionOptions, wheel: TimerWheel) {
    this.#options = options;
    this.#wheel = wheel;
    this.#dialer = new Dialer(address, options, wheel, this);
  }

  /** The end of the first attempt, by the monotonic clock; `Infinity` until then. */
  get readyAtMs(): number {
    return this.#dialer.readyAtMs;
  }

  /** The state at this moment. */
  get state(): State {
    return this.#state;
  }

  /** The password of the last login. */
  get password(): string | undefined {
    return this.#dialer.address.password;
  }

  /** Whether a command is sent at once. */
  get open(): boolean {
    return this.#state === "open";
  }

  /**
   * The error of a command that undoes nothing, if too many others wait for it to be sent now, or
   * if the connection is given up, or closes. It is always the same one: while a server hangs, an
   * error with a stack for each command would cost more than the locks themselves.
   */
  get crowded(): ConnectionError | undefined {
    if (this.#state === "ending" || this.#state === "closing") return this.#downError;
    if (this.#queue.length < QUEUE_LENGTH_MAX) return undefined;
    return this.#crowded ??= this.#error(
      `has at least ${QUEUE_LENGTH_MAX} commands waiting for replies`,
    );
  }

  /**
   * Queues a command, or several at once. The receiver is called once for each reply, and once for
   * all that will not come; before this returns if the command cannot be sent.
   *
   * @param command A command, which is encoded here if that has not been done.
   * @param receiver Receives the reply, or the error.
   * @param tag A number for the receiver.
   */
  submit<Sent extends Command>(command: Sent, receiver: ReplyReceiver<Sent>, tag = 0): void {
    if (this.#state === "new") {
      this.#state = "connecting";
      this.#dialer.dial();
    }
    const state = this.#state;
    const sends = state === "open" || state === "closing" || state === "ending";
    if (!sends && state !== "connecting") {
      return receiver.onFailure(this.#downError ??= this.#error("was closed"), command, tag);
    }
    try {
      command.bytes ??= encodeCommand(command.args, command.count);
    } catch (cause) { // no memory
      return receiver.onFailure(this.#error("could not send a command", cause), command, tag);
    }
    // before it is written, because that may fail at once
    this.#queue.push(command, receiver, tag);
    if (sends) this.#wire!.flush();
  }

  /** Part of {@linkcode DialerOwner}: gives up a connection that took too long to be made. */
  timeOut(): void {
    if (!this.#dialer.dialing && !this.#wire) return; // it was dropped already
    const { connectTimeoutMs } = this.#options;
    const cause = new Error(`no ${this.#dialer.awaited} within ${connectTimeoutMs} ms`);
    this.#giveUp("could not be made", cause);
  }

  /**
   * Closes for good: waits a moment for replies that are due, then fails the other commands.
   * Idempotent.
   */
  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  /** Part of {@linkcode WireOwner}. */
  readonly onReply = (reply: RawReply): void => {
    if (this.#state === "ending" || this.#options.takesMessage?.(reply)) return;
    const { queue } = this.#wire!;
    if (queue.sent === 0) return this.#onUnaskedReply(reply);
    if (this.#dialer.acceptedMs === Infinity && !this.#logsIn) this.#onFirstReply(reply);
    queue.settleFirst(reply);
    if (this.#onDrained && this.#queue.length === 0) this.#onDrained();
  };

  /** Part of {@linkcode WireOwner}. */
  onStreamEnd(cause: unknown): void {
    const silentMs = this.#wheel.clock.monotonicMs() - this.receivedAtMs;
    const refusal = silentMs < REFUSED_MS_MAX && this.#refusal;
    if (refusal) this.lose("was refused", refusal);
    else this.lose("was lost", cause);
  }

  /**
   * Part of {@linkcode DialerOwner}. Logs in, in front of the commands that wait; before they are
   * sent if they are meant for another database.
   */
  onStream(transport: Transport): void {
    const { address } = this.#dialer;
    // mutation: server-that-hangs-counts-as-connected
    const again = this.#state === "down";
    // mutation: database-not-awaited
    const alone = again || address.database !== 0;
    // so that nothing but the login is written until `#opened`
    const queue = alone ? new CommandQueue() : this.#queue;
    const commands = loginCommands(address, this.#options.clientName, again);
    this.#logsIn = commands.length > 0;
    logIn(commands, queue, (refusal) => this.#onLoginEnd(refusal));
    const limits = { ...this.#options, secrets: address.secrets };
    const wire = this.#wire = new Wire(transport, this, this.#wheel, queue, limits);
    wire.read();
    if (this.#wire !== wire) return; // it is lost already
    if (!this.#logsIn) {
      this.#dialer.stop();
      wire.watch();
    }
    if (alone) wire.flush();
    else this.#opened();
  }

  #onLoginEnd(refusal: ReplyError | undefined): void {
    if (refusal) {
      this.#refusal = refusal;
      return this.#giveUp("was refused", refusal);
    }
    this.#onAccepted();
    this.#wire!.watch();
    if (this.#wire!.queue !== this.#queue) this.#opened();
  }

  #opened(): void {
    this.#state = "open";
    this.#downError = undefined;
    this.#wire!.queue = this.#queue;
    this.#options.onOpen?.();
    if (this.#queue.length > 0) this.#wire!.flush();
  }

  #onFirstReply(reply: RawReply): void {
    if (reply instanceof ReplyError && !isServing(reply)) this.#refusal = reply;
    else this.#onAccepted();
  }

  #onAccepted(): void {
    this.#known = true;
    this.#refusal = undefined;
    this.#dialer.accept();
    this.#options.onAccepted?.();
  }

  #onUnaskedReply(reply: RawReply): void {
    if (reply instanceof ReplyError) this.lose("was refused", reply);
    else this.lose("sent a reply that nobody asked for");
  }

  /**
   * Drops a connection whose login was refused, or not answered in time. The server has got the
   * commands that were sent with it, and may execute them, even later. So those fail first, and
   * what undoes them goes out behind them.
   */
  #giveUp(what: string, cause: Error): void {
    if (!this.open) return this.lose(what, cause);
    this.#state = "ending";
    this.#ending = this.#wheel.after(ENDING_MS, () => this.lose(what, cause));
    this.#failAll(what, cause); // what a receiver submits may end it at once
  }

  /**
   * Leaves a server that is not the primary any more: the next connection looks its name up again.
   * At the end of this chunk of replies, because each command behind is refused for the same
   * reason.
   */
  leave(refusal: ReplyError): void {
    queueMicrotask(() => {
      if (this.open) this.lose("leads to a replica", refusal);
    });
  }

  /**
   * Part of {@linkcode WireOwner} and {@linkcode DialerOwner}: drops the connection, fails all
   * commands, and schedules the next attempt.
   */
  lose(what: string, cause?: unknown): void {
    if (this.#state === "closed") return;
    const closing = this.#state === "closing";
    const down = this.#state === "down";
    this.#teardown();
    this.#dialer.lose();
    const { endedEarly } = this.#dialer;
    if (endedEarly > 1) what += ` right after the login, ${endedEarly} times in a row`;
    this.#state = closing ? "closed" : "down";
    // mutation: no-reconnect
    if (closing) this.#dialer.close();
    const error = this.#failAll(what, cause);
    this.#onDrained?.();
    if (!down) this.#options.onLost?.(error);
  }

  /** Fails all commands; returns the error of those that cannot be sent from now on. */
  #failAll(what: string, cause?: unknown): ConnectionError {
    const error = this.#downError = this.#error(what, cause);
    const failing = this.#queue;
    this.#queue = new CommandQueue(); // a receiver may submit a command, which may be sent at once
    if (this.#wire) this.#wire.queue = this.#queue;
    // mutation: sent-commands-count-as-unsent
    failing.failAll(this.#error(what, cause, "unknown"), error);
    return error;
  }

  #teardown(): void {
    this.#wheel.cancel(this.#ending);
    this.#dialer.stop();
    this.#refusal = undefined;
    const wire = this.#wire;
    this.#wire = undefined;
    wire?.close();
  }

  async #close(): Promise<void> {
    this.#dialer.close();
    const wire = this.#wire;
    const queue = this.#queue;
    if (this.#state === "open") {
      this.#state = "closing";
      this.#downError = this.#error("was closed");
      const drained = new Promise<void>((resolve) => this.#onDrained = resolve);
      let settled = -1;
      for (let graces = 0; graces < CLOSE_GRACES_MAX && queue.settled > settled; graces++) {
        if (queue.length === 0 || this.#wheel.closed) break;
        settled = queue.settled;
        await settledWithin(this.#wheel, drained, CLOSE_GRACE_MS);
      }
    }
    this.#teardown();
    this.#state = "closed";
    this.#failAll("was closed"); // from here on, whatever was wrong before
    const closed = Promise.all([this.#dialer.attempt, wire?.close()]);
    await settledWithin(this.#wheel, closed, CLOSE_GRACE_MS);
  }

  /** One of {@linkcode HINTS}. A subscription is behind another connection, which works. */
  #hint(what: string): string {
    const { address: { target }, awaited } = this.#dialer;
    if (this.#known || awaited !== "answer" || this.#options.takesMessage) return "";
    const [, hint] = HINTS.find(([pattern]) => pattern.test(`${target.kind} ${what}`)) ?? [];
    return hint ? ` (${hint})` : "";
  }

  #error(
    what: string,
    cause?: unknown,
    outcome: "not-sent" | "unknown" = "not-sent",
  ): ConnectionError {
    const { name: address, secrets } = this.#dialer.address;
    // The names in a certificate are text of the server too.
    const why = cause === undefined ? "" : printable(messageOf(cause).trim(), secrets);
    const hint = this.#hint(`${what}: ${why}`);
    const message = `Connection to ${address} ${what}${hint}${why && `: ${why}`}`;
    const details = {
      address,
      outcome,
      cause: cause === undefined ? undefined : toError(cause),
      endedEarly: cause === undefined ? 0 : this.#dialer.endedEarly,
      passes: this.#options.credentials !== undefined && cause instanceof ReplyError,
    };
    return stackless(() => new ConnectionError(message, details));
  }
}
