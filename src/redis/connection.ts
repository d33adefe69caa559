/**
 * The *connection* to one server: made on first need, made again when it is lost, and never a place where
 * commands pile up or are sent twice.
 *
 * ```
 * new --submit--> connecting --greeted--> open --lost--> down --delay--> (connecting again, still down) --> open
 * ```
 *
 * While the first connection is being made commands wait for it; whenever it is down later they fail at
 * once. A command that was written keeps its place in the queue whatever its caller does, so that replies
 * can never be handed to the wrong command.
 *
 * @module
 */
import type { TimerEntry, TimerWheel } from "../time/timer_wheel.ts";
import type { Connect, ConnectTarget, TlsOptions, Transport } from "../transport/transport.ts";
import type { RedisAddress } from "./address.ts";
import { CommandQueue, type ReplyReceiver } from "./command_queue.ts";
import { encodeCommand } from "./encoder.ts";
import { ConnectionError, ReplyError } from "./errors.ts";
import { type RawReply, textReply } from "./reply.ts";
import { Wire, type WireOwner } from "./wire.ts";

/** Commands that may wait for their replies; one more is refused. Commands that undo others may take as many again. */
export const QUEUE_LENGTH_MAX = 16_384;
/** First delay before connecting again, in milliseconds; doubled each time, with jitter down to its half. */
const RECONNECT_DELAY_MS = 50;
/** Longest delay before connecting again, in milliseconds. */
const RECONNECT_DELAY_MAX_MS = 2_000;
/** How often silence is looked for within `stallTimeoutMs`. */
const WATCH_TICKS = 2;
/** How long closing waits for replies that are due, in milliseconds, so that no undo is cut off on its way. */
const CLOSE_GRACE_MS = 250;

/** How a connection is made. */
export interface ConnectionOptions {
  /** Opens the stream. */
  readonly connect: Connect;
  /** Longest time for opening the stream and logging in, in milliseconds. */
  readonly connectTimeoutMs: number;
  /** Silence while replies are due, in milliseconds, after which the connection is made anew. */
  readonly stallTimeoutMs: number;
  /** TLS settings for `rediss://`. */
  readonly tls: TlsOptions;
  /** The name that the server's `CLIENT LIST` shows. */
  readonly clientName: string | undefined;
  /** Called when a connection is ready for commands. */
  onConnected?(): void;
  /** Called with what is no reply to a command: a message of a channel that was subscribed to. */
  onMessage?(channel: Uint8Array, message: Uint8Array): void;
  /** Called when a connection is lost or the first one could not be made; not for each further try. */
  onDisconnected?(error: ConnectionError): void;
}

/** What a connection does. */
export type State = "new" | "connecting" | "open" | "down" | "closing" | "closed";

/** A connection to one server that looks after itself. */
export class Connection implements WireOwner, ReplyReceiver {
  readonly #address: RedisAddress;
  readonly #options: ConnectionOptions;
  readonly #wheel: TimerWheel;
  readonly #queue = new CommandQueue();
  /** The commands that log in; only while there are any, replies are theirs. */
  readonly #greeting = new CommandQueue();
  #state: State = "new";
  #wire: Wire | undefined = undefined;
  #connecting: AbortController | undefined = undefined;
  /** Settles once the last try at connecting is over, and what it opened in vain is closed. */
  #attempt: Promise<void> | undefined = undefined;
  #connectTimer: TimerEntry | undefined = undefined;
  #retry: TimerEntry | undefined = undefined;
  #watch: TimerEntry | undefined = undefined;
  #quietTicks = 0;
  #failures = 0;
  #readyAtMs = Infinity;
  #receivedAtMs = 0;
  #delivering = false;
  #downError: ConnectionError | undefined = undefined;
  #onDrained: (() => void) | undefined = undefined;
  #closing: Promise<void> | undefined = undefined;

  constructor(address: RedisAddress, options: ConnectionOptions, wheel: TimerWheel) {
    this.#address = address;
    this.#options = options;
    this.#wheel = wheel;
  }

  /** When the first connecting was over, by the monotonic clock; Infinity until then. */
  get readyAtMs(): number {
    return this.#readyAtMs;
  }

  /** When bytes came last, by the monotonic clock: one reading serves all replies that came with them. */
  get receivedAtMs(): number {
    return this.#receivedAtMs;
  }

  /** What the connection does at this moment. */
  get state(): State {
    return this.#state;
  }

  /** Whether commands are sent at once. */
  get open(): boolean {
    return this.#state === "open";
  }

  /** Whether an ordinary command would be refused for want of room. */
  get crowded(): boolean {
    return this.#queue.length >= QUEUE_LENGTH_MAX;
  }

  /**
   * Queues one command. The receiver is told exactly once what became of it, at once where it cannot be sent.
   *
   * @param command What {@linkcode encodeCommand} or its like returned.
   * @param receiver Who is told.
   * @param context Handed back to the receiver.
   * @param tag Handed back to the receiver.
   */
  submit(command: Uint8Array, receiver: ReplyReceiver, context: unknown, tag: number): void {
    if (this.#state === "new") this.#attempt = this.#connect();
    // A reply that came while closing may call for one more command: a script that the server does not know.
    const open = this.#state === "open" || this.#state === "closing" && this.#delivering;
    if (!open && this.#state !== "connecting") {
      return receiver.onFailure(this.#downError ?? this.#error("is closed"), context, tag);
    }
    if (this.#queue.length >= 2 * QUEUE_LENGTH_MAX) {
      return receiver.onFailure(this.crowdedError(), context, tag);
    }
    this.#queue.push(command, receiver, context, tag);
    if (open) {
      if (this.#queue.length === 1) this.#expectBytes();
      this.#wire!.flush();
    }
  }

  /** Takes back a command that is not written yet; says whether it was in time. */
  withdraw(context: unknown): boolean {
    return this.#queue.withdraw(context);
  }

  /** The error of a command for which there is no room. */
  crowdedError(): ConnectionError {
    return this.#error(`has ${this.#queue.length} commands waiting for replies already`);
  }

  /** Closes for good: waits a moment for replies that are due, then fails what is left. Idempotent. */
  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  /** Part of {@linkcode WireOwner}. */
  takeUnsent(): Uint8Array | undefined {
    const greeting = this.#state === "connecting" || this.#state === "down";
    const queue = greeting ? this.#greeting : this.#queue;
    return queue.unsent > 0 ? queue.takeUnsent() : undefined;
  }

  /** Part of {@linkcode WireOwner}. */
  onBytes(): void {
    this.#quietTicks = 0;
    this.#receivedAtMs = this.#wheel.clock.monotonicMs();
  }

  /** Part of {@linkcode WireOwner}; and of {@linkcode ReplyReceiver}, for the commands that log in. */
  onReply(reply: RawReply, context?: unknown): void {
    if (context === this.#greeting) return this.#onGreetingReply(reply);
    if (this.#options.onMessage && isMessage(reply)) {
      return this.#options.onMessage(reply[1], reply[2]);
    }
    const queue = this.#greeting.length > 0 ? this.#greeting : this.#queue;
    if (queue === this.#queue) this.#failures = 0; // a server that serves is worth connecting to at once
    this.#delivering = true;
    const expected = queue.settleFirst(reply);
    this.#delivering = false;
    if (!expected) this.#lose("sent a reply that nobody asked for");
    else if (this.#onDrained && this.#queue.length === 0) this.#onDrained();
  }

  /** Part of {@linkcode WireOwner}. */
  onLost(cause: unknown): void {
    this.#lose("was lost", cause);
  }

  /** Part of {@linkcode ReplyReceiver}: what became of logging in is told by {@linkcode onLost}. */
  onFailure(): void {}

  async #connect(): Promise<void> {
    if (this.#state === "new") this.#state = "connecting";
    const { connect, connectTimeoutMs } = this.#options;
    const controller = this.#connecting = new AbortController();
    this.#connectTimer = this.#wheel.deadline(connectTimeoutMs, () => {
      this.#lose("could not be made", new Error(`no answer within ${connectTimeoutMs} ms`));
    });
    try {
      const transport = await connect(this.#target(), { signal: controller.signal });
      if (controller.signal.aborted) transport.close();
      else this.#greet(transport);
    } catch (cause) {
      if (!controller.signal.aborted) this.#lose("could not be made", cause);
    }
  }

  #target(): ConnectTarget {
    const { kind, hostname, port, path } = this.#address;
    if (kind === "unix") return { kind, path };
    return kind === "tcp"
      ? { kind, hostname, port }
      : { kind, hostname, port, tls: this.#options.tls };
  }

  /** Logs in before anything else is sent: a lock must not land in another database, or as another user. */
  #greet(transport: Transport): void {
    const { username, password, database } = this.#address;
    const { clientName } = this.#options;
    const commands: string[][] = [];
    if (username !== undefined) commands.push(["AUTH", username, password ?? ""]);
    else if (password !== undefined) commands.push(["AUTH", password]);
    if (database !== 0) commands.push(["SELECT", String(database)]);
    if (clientName !== undefined) commands.push(["CLIENT", "SETNAME", clientName]);
    for (const command of commands) {
      this.#greeting.push(encodeCommand(command), this, this.#greeting, 0);
    }
    this.#wire = new Wire(transport, this);
    if (commands.length === 0) this.#opened();
    else this.#wire.flush();
  }

  #onGreetingReply(reply: RawReply): void {
    if (reply instanceof ReplyError) this.#lose("was refused", reply);
    else if (this.#greeting.length === 0) this.#opened();
  }

  #opened(): void {
    this.#connecting = undefined;
    this.#endConnecting();
    this.#state = "open";
    this.#downError = undefined;
    this.#options.onConnected?.();
    if (this.#queue.length > 0) {
      this.#expectBytes();
      this.#wire!.flush();
    }
  }

  #endConnecting(): void {
    this.#connecting?.abort();
    this.#connecting = undefined;
    if (this.#connectTimer) this.#wheel.cancel(this.#connectTimer);
    if (this.#readyAtMs === Infinity) this.#readyAtMs = this.#wheel.clock.monotonicMs();
  }

  /** Gives the connection up, fails what is queued, and plans the next one. */
  #lose(what: string, cause?: unknown): void {
    if (this.#state === "closed") return;
    const closing = this.#state === "closing";
    const down = this.#state === "down";
    this.#teardown();
    this.#state = closing ? "closed" : "down";
    this.#downError = this.#error(what, cause);
    const unknown = this.#error(what, cause, "unknown");
    if (!closing) this.#planRetry();
    this.#queue.failAll(unknown, this.#downError);
    this.#onDrained?.();
    if (!down) this.#options.onDisconnected?.(this.#downError);
  }

  #teardown(): void {
    this.#endConnecting();
    if (this.#watch) this.#wheel.cancel(this.#watch);
    this.#watch = undefined;
    const wire = this.#wire;
    this.#wire = undefined;
    const error = this.#error("was lost");
    this.#greeting.failAll(error, error);
    wire?.close();
  }

  #planRetry(): void {
    const delayMs = Math.min(RECONNECT_DELAY_MS * 2 ** this.#failures++, RECONNECT_DELAY_MAX_MS);
    const jitteredMs = delayMs * (1 + this.#wheel.random.fraction()) / 2;
    this.#retry = this.#wheel.after(jitteredMs, () => {
      this.#attempt = this.#connect();
    });
  }

  /** Watches for silence. The watch is left in the wheel between commands, so that a command costs nothing. */
  #expectBytes(): void {
    this.#quietTicks = 0;
    if (!this.#watch && this.#options.stallTimeoutMs !== Infinity) this.#watchOnce();
  }

  #watchOnce(): void {
    const { stallTimeoutMs } = this.#options;
    this.#watch = this.#wheel.deadline(stallTimeoutMs / WATCH_TICKS, () => {
      this.#watch = undefined;
      if (this.#queue.length === 0) return;
      // The first tick after a silence began may come at once, so one more is waited for.
      if (++this.#quietTicks > WATCH_TICKS) {
        return this.#lose(`was silent for ${stallTimeoutMs} ms`);
      }
      this.#watchOnce();
    });
  }

  async #close(): Promise<void> {
    if (this.#retry) this.#wheel.cancel(this.#retry);
    const wire = this.#wire;
    if (this.#state === "open" && this.#queue.length > 0) {
      this.#state = "closing";
      await this.#within(CLOSE_GRACE_MS, new Promise<void>((resolve) => this.#onDrained = resolve));
    }
    const error = this.#downError = this.#error("was closed");
    this.#teardown();
    this.#state = "closed";
    this.#queue.failAll(this.#error("was closed", undefined, "unknown"), error);
    await this.#within(CLOSE_GRACE_MS, Promise.all([this.#attempt, wire?.close()]));
  }

  /** Waits for `promise`, but no longer than `limitMs`. */
  #within(limitMs: number, promise: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      let settled = false;
      const settle = () => {
        if (settled) return;
        settled = true;
        this.#wheel.cancel(limit);
        this.#wheel.unref();
        resolve();
      };
      this.#wheel.ref();
      const limit = this.#wheel.deadline(limitMs, settle);
      promise.then(settle, settle);
    });
  }

  #error(
    what: string,
    cause?: unknown,
    outcome: "not-sent" | "unknown" = "not-sent",
  ): ConnectionError {
    const address = this.#address.name;
    const why = cause instanceof Error ? `: ${cause.message}` : "";
    return new ConnectionError(`Connection to ${address} ${what}${why}`, {
      address,
      outcome,
      cause,
    });
  }
}

/** A message of a channel, as RESP2 sends it among the replies. */
type Message = [kind: Uint8Array, channel: Uint8Array, message: Uint8Array];

function isMessage(reply: RawReply): reply is Message {
  return Array.isArray(reply) && reply.length === 3 && reply[2] instanceof Uint8Array &&
    textReply(reply[0]) === "message";
}
