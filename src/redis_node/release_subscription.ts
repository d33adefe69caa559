/**
 * How a Redis node notifies its client of releases: by messages on a channel of the client's own.
 *
 * The subscription is kept: it is made again whenever it is lost, after delays that grow. Each
 * time, and whenever the connection for commands was made again, a message to itself shows whether
 * messages arrive.
 *
 * ```
 * closed --subscribe--> subscribing --confirmed--> probing --a receiver--> listening
 *                         ^    lost \                 | lost                 | lost, no receiver,
 *                         +--delay---+----------------+----------------------+ or no message
 * ```
 *
 * If the server refuses `SUBSCRIBE` or `PUBLISH`, or seems to, because several subscriptions in a
 * row had no answer or received nothing while commands were answered, the client polls this node.
 * It subscribes again after ten seconds, because an operator may have allowed it by then, and
 * faults in a row look the same; or when the connection for commands was made again, or callers
 * wait again.
 *
 * @module
 */
import type { ReleaseListener } from "../quorum/queue_ticket.ts";
import { ConnectionError, ReplyError } from "../redis/errors.ts";
import { type RawReply, textOf, timeReplyMs } from "../redis/reply.ts";
import { backoffMs, SERVER_BACKOFF } from "../time/backoff.ts";
import { settledWithin } from "../time/pause.ts";
import type { TimerEntry } from "../time/timer_wheel.ts";
import {
  type ChannelListener,
  type CommandSender,
  repliesTo,
  type ServerAccess,
} from "./command_sender.ts";
import { readMessage, WAKE_CHANNEL } from "./scripts/queue.ts";

/** How long a subscription must last for the delay to start over, in milliseconds. */
const STABLE_MS = 2_000;
/** Longest wait for a client to subscribe, in milliseconds, because some clients wait forever. */
const SUBSCRIBE_MS_MAX = 10_000;
/** Longest wait for the end of a subscription, in milliseconds. */
const CLOSE_MS_MAX = 250;
/** Longest wait for a message to itself, in milliseconds. */
const HEARD_MS_MAX = 2_000;
/** How long after a refusal it subscribes again, in milliseconds. */
const REFUSED_DELAY_MS = 10_000;
/**
 * How often a client is probed, in milliseconds: most do not notice that a connection on which they
 * only receive is silent.
 */
const PROBE_MS = 10_000;
/** After this many probes in a row that nobody received, the client subscribes again. */
const UNRECEIVED_MAX = 3;
/** How long to wait before the next probe, in milliseconds. */
const UNRECEIVED_DELAY_MS = 100;
/** How long to wait before the next probe after an error, in milliseconds. */
const BUSY_DELAY_MS = 500;
/** After this many subscriptions that seem to be refused, they count as refused. */
const SUSPICIONS_MAX = 5;

/**
 * One subscription, from when it is asked for: subscribing until `confirmedMs`, then probing until
 * it is `listening`.
 */
class Subscription {
  /** Aborts when it is not needed any more. */
  readonly ended = new AbortController();
  /** Resolves once the server has confirmed it, to what ends it. */
  end!: Promise<() => unknown>;
  /** When the server confirmed it, by the monotonic clock; `Infinity` if it has not. */
  confirmedMs = Infinity;
  /** Whether the last probe had a receiver; that it came here is known later. */
  listening = false;
  /** Whether a message has come since the last probe was sent. */
  heard = false;
  /** How many probes in a row have had no receiver. */
  unreceived = 0;
}

/** The notifications of one node. */
export class ReleaseSubscription {
  readonly #server: ServerAccess;
  readonly #commands: CommandSender;
  /** Who is notified; `undefined` while it is closed. */
  #listener: ReleaseListener | undefined;
  #nodeIndex = 0;
  /** The last subscription; `undefined` if that is over. */
  #current: Subscription | undefined;
  /** How many were lost in a row. */
  #losses = 0;
  /**
   * How many have seemed to be refused since one received a probe; and when the last did, by the
   * monotonic clock.
   */
  #suspicions = 0;
  #suspectedMs = -Infinity;
  /** The longest wait for what was asked for, or the delay before the next step. */
  #timer: TimerEntry | undefined;
  #closing: Promise<unknown> = Promise.resolve();

  /**
   * @param server The node's server.
   * @param commands Sends all other commands.
   */
  constructor(server: ServerAccess, commands: CommandSender) {
    this.#server = server;
    this.#commands = commands;
  }

  /** Whether the node sends notifications: a ticket in its queue would be dropped otherwise. */
  get listening(): boolean {
    return this.#current?.listening === true;
  }

  /** Subscribes; does nothing if that was begun before. */
  subscribe(listener: ReleaseListener, nodeIndex: number): void {
    if (this.#listener) return;
    this.#listener = listener;
    this.#nodeIndex = nodeIndex;
    this.#begin();
  }

  /** Ends the subscription; resolves once its connection is closed. */
  close(): Promise<unknown> {
    this.#listener = undefined;
    const closed = Promise.all([this.#closing, this.#end()]); // of the one before, too
    return settledWithin(this.#server.wheel, closed, CLOSE_MS_MAX);
  }

  /**
   * The connection for commands has been made; what ended the one before may have ended the
   * subscription's, too.
   */
  onOpen(): void {
    // mutation: subscription-outlives-its-server
    const subscription = this.#current;
    if (!subscription && this.#listener) this.#begin();
    // this may be another server
    if (subscription && subscription.confirmedMs !== Infinity) this.#probe(subscription);
  }

  /** The server does not allow what it takes. */
  onRefused(error: Error): void {
    if (!this.#current) return; // it has been refused, or lost
    this.#end();
    this.#wait(REFUSED_DELAY_MS, () => this.#begin());
    this.#listener!.onRefused(this.#nodeIndex, error);
  }

  #begin(): void {
    const subscription = this.#current = new Subscription();
    const { signal } = subscription.ended;
    const isLive = () => this.#current === subscription;
    const listener: ChannelListener = {
      onMessage: (message) => isLive() && this.#onMessage(subscription, message),
      onLost: () => isLive() && this.#lose(),
    };
    // Later, because the client may call the listener at once.
    subscription.end = Promise.resolve().then(() => {
      signal.throwIfAborted();
      return this.#server.subscribe!(this.#channel, listener, signal);
    });
    this.#wait(SUBSCRIBE_MS_MAX, listener.onLost);
    subscription.end.then(() => {
      if (!isLive()) return;
      subscription.confirmedMs = this.#nowMs;
      this.#probe(subscription);
    }, (error) => isLive() && this.#onFailed(error));
  }

  get #nowMs(): number {
    return this.#server.wheel.clock.monotonicMs();
  }

  get #channel(): string {
    return WAKE_CHANNEL + this.#listener!.id;
  }

  #onFailed(error: Error): void {
    // not if the server refused the connection or its login: that says nothing of the command
    const isUnanswered = error instanceof ConnectionError && error.outcome === "unknown" &&
      !(error.cause instanceof ReplyError);
    if (error instanceof ReplyError && error.commandRefused) this.onRefused(error);
    else if (isUnanswered) this.#suspect(error);
    else this.#lose();
  }

  /**
   * A subscription seems to be refused: that counts if the server has answered a command since the
   * last, because one that hangs answers nothing.
   */
  #suspect(error: Error): void {
    if (this.#commands.receivedAtMs > this.#suspectedMs) this.#suspicions++;
    this.#suspectedMs = this.#nowMs;
    if (this.#suspicions >= SUSPICIONS_MAX) this.onRefused(error);
    else this.#lose();
  }

  /**
   * Text that is no ticket is a probe, or sent by somebody else; the listener ignores tickets that
   * it does not know.
   */
  #onMessage(subscription: Subscription, bytes: string | Uint8Array): void {
    subscription.heard = true;
    const text = ArrayBuffer.isView(bytes) ? textOf(bytes) : bytes;
    const message = typeof text === "string" ? readMessage(text) : undefined;
    if (message) this.#listener!.onQueueMessage(this.#nodeIndex, message);
  }

  #lose(): void {
    const { random } = this.#server.wheel;
    this.#end();
    this.#wait(backoffMs(random, SERVER_BACKOFF, this.#losses++), () => this.#begin());
    this.#listener!.onUnsubscribed(this.#nodeIndex);
  }

  /** Ends the last subscription, also one that the server has not confirmed yet. */
  #end(): Promise<unknown> {
    const subscription = this.#current;
    this.#current = undefined;
    this.#server.wheel.cancel(this.#timer);
    if (!subscription) return this.#closing;
    if (this.#nowMs - subscription.confirmedMs >= STABLE_MS) this.#losses = 0;
    subscription.ended.abort();
    const ended = subscription.end.then((end) => end()).catch(() => {});
    return this.#closing = ended;
  }

  #wait(delayMs: number, next: () => unknown): void {
    this.#server.wheel.cancel(this.#timer);
    this.#timer = this.#server.wheel.deadline(delayMs, next as () => void);
  }

  /**
   * Asks for the time and sends a message to itself, which shows that `PUBLISH` is allowed and that
   * messages arrive.
   *
   * @param subscription The subscription that is to receive it.
   */
  async #probe(subscription: Subscription): Promise<void> {
    this.#server.wheel.cancel(this.#timer); // what it waits for may not be this probe's message
    subscription.heard = false;
    const sentMs = this.#nowMs;
    const commands = [["TIME"], ["PUBLISH", this.#channel, ""]];
    const [time, receivers] = await repliesTo(this.#commands, commands).catch(() => []);
    if (this.#current !== subscription) return; // it is over
    if (receivers instanceof ReplyError && receivers.commandRefused) {
      return this.onRefused(receivers);
    }
    if (Number(receivers) > 0) this.#onReceived(subscription, sentMs, timeReplyMs(time));
    else this.#onUnreceived(subscription, receivers);
  }

  /** Somebody has received a probe; that it was this client is known once the message comes. */
  #onReceived(subscription: Subscription, sentMs: number, timeMs: number | undefined): void {
    subscription.unreceived = this.#suspicions = 0;
    const { receivedAtMs: receivedMs } = this.#commands;
    const reading = timeMs === undefined ? undefined : { timeMs, sentMs, receivedMs };
    if (!subscription.listening) this.#listener!.onSubscribed(this.#nodeIndex, reading);
    subscription.listening = true;
    this.#wait(HEARD_MS_MAX, () => {
      if (!subscription.heard) this.#lose();
      else if (this.#server.thirdParty) this.#wait(PROBE_MS, () => this.#probe(subscription));
    });
  }

  /**
   * Nobody has received a probe. If that was sent, the subscription may have died unnoticed, or the
   * server drops messages: it is made again.
   */
  #onUnreceived(subscription: Subscription, reply: RawReply | undefined): void {
    const isReplied = reply !== undefined;
    const probe = () => this.#probe(subscription);
    if (reply instanceof ReplyError) return this.#wait(BUSY_DELAY_MS, probe);
    // without a reply, callers do not wait for this node even if it has never been listening
    if (subscription.listening || !isReplied) this.#listener!.onUnsubscribed(this.#nodeIndex);
    subscription.listening = false;
    if (!isReplied) return this.#commands.open ? this.#wait(BUSY_DELAY_MS, probe) : undefined;
    if (++subscription.unreceived < UNRECEIVED_MAX) return this.#wait(UNRECEIVED_DELAY_MS, probe);
    this.#suspect(new Error(`${this.#server.name} does not deliver published messages`));
  }
}
