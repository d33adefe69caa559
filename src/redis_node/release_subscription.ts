/**
 * How a Redis node notifies its client of releases: by messages on a channel of the client's own.
 *
 * @module
 */
import type { ReleaseListener } from "../quorum/queue_ticket.ts";
import { ReplyError } from "../redis/errors.ts";
import { timeReplyMs } from "../redis/reply.ts";
import type { SubscriberOwner } from "../redis/subscriber.ts";
import type { CommandSender, ServerAccess, Subscription } from "./command_sender.ts";
import { repliesTo } from "./replies_to.ts";
import { readMessage, WAKE_CHANNEL } from "./scripts/queue.ts";
import type { TimerEntry } from "../time/timer_wheel.ts";

/** After this many probes in a row without a receiver the subscription is taken for dead, or messages for lost. */
const UNHEARD_MAX = 3;
/** How long to wait before the next probe, in milliseconds. */
const UNHEARD_DELAY_MS = 100;
/** How long to wait before the next probe after an error, in milliseconds. */
const BUSY_DELAY_MS = 500;

/** After this many subscriptions in a row without an answer, while commands are answered, the server refuses them. */
const UNANSWERED_MAX = 5;

const decoder = /* @__PURE__ */ new TextDecoder("utf-8", { ignoreBOM: true });

/** The notifications of one node: subscribes, and probes each subscription by a message to itself. */
export class ReleaseSubscription implements SubscriberOwner {
  readonly #server: ServerAccess;
  readonly #commands: CommandSender;
  #subscriber: Subscription | undefined = undefined;
  #listener: ReleaseListener | undefined = undefined;
  #nodeIndex = 0;
  /** Whether the server has confirmed the subscription. */
  #subscribed = false;
  /** Whether the replies to a probe are due. */
  #probing = false;
  /** How many probes in a row have had no receiver. */
  #unheard = 0;
  /** How many subscriptions in a row have had no answer. */
  #unanswered = 0;
  /** Whether this subscription replaces one on which nothing was received. */
  #renewed = false;
  #retry: TimerEntry | undefined = undefined;
  #listening = false;
  #refused = false;
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
    return this.#listening;
  }

  /** Subscribes; does nothing if that was begun before. */
  open(listener: ReleaseListener, nodeIndex: number): void {
    if (this.#subscriber || this.#refused) return;
    this.#listener = listener;
    this.#nodeIndex = nodeIndex;
    this.#subscriber = this.#server.subscribe!(WAKE_CHANNEL + listener.id, this);
  }

  /** Ends the subscription; resolves once its connection is closed. */
  close(): Promise<unknown> {
    const subscriber = this.#subscriber;
    this.#subscriber = undefined;
    this.#subscribed = this.#listening = false;
    if (this.#retry) this.#server.wheel.cancel(this.#retry);
    if (subscriber) this.#closing = Promise.all([this.#closing, subscriber.close()]);
    return this.#closing;
  }

  /** The connection for commands has been made; what ended the one before may have ended the subscription's, too. */
  onCommandsPossible(): void {
    // mutation: subscription-outlives-its-server
    if (this.#subscribed) {
      this.#probe(); // this may be another server
      this.#subscriber!.ask?.();
    }
  }

  /** The server does not allow what it takes. */
  onRefused(error: Error): void {
    if (this.#refused) return;
    this.#refused = true;
    this.close();
    this.#listener?.onUnsupported(this.#nodeIndex, error);
  }

  onSubscribed(): void {
    this.#subscribed = true;
    this.#unanswered = 0;
    this.#probe();
  }

  onUnsubscribed(): void {
    this.#subscribed = this.#listening = false;
    this.#listener!.onUnsubscribed(this.#nodeIndex);
  }

  onUnanswered(error: Error): void {
    if (this.#commands.open && ++this.#unanswered >= UNANSWERED_MAX) this.onRefused(error);
  }

  /** Text that is no ticket is a probe, or sent by somebody else; the listener ignores tickets that it does not know. */
  onMessage(bytes: Uint8Array): void {
    const message = readMessage(decoder.decode(bytes));
    if (message) this.#listener!.onReleased(this.#nodeIndex, message);
  }

  /** The subscription may have died unnoticed. If a new one has no receiver either, the server drops messages. */
  #onNeverHeard(): void {
    // mutation: dead-subscription-taken-for-a-refusal
    if (this.#renewed) {
      return this.onRefused(new Error(`${this.#server.name} does not deliver published messages`));
    }
    const listener = this.#listener!;
    this.close();
    this.#unheard = 0;
    this.#renewed = true;
    this.open(listener, this.#nodeIndex);
  }

  #probeLater(delayMs: number): void {
    this.#retry = this.#server.wheel.after(delayMs, () => this.#probe());
  }

  /** Asks for the time and sends a message to itself, which shows that `PUBLISH` is allowed and that messages arrive. */
  async #probe(): Promise<void> {
    if (this.#probing || !this.#subscribed) return;
    this.#probing = true;
    const sentMs = this.#server.wheel.clock.monotonicMs();
    const commands = [["TIME"], ["PUBLISH", WAKE_CHANNEL + this.#listener!.id, ""]];
    const [time, received] = await repliesTo(this.#commands, commands).catch(() => []);
    this.#probing = false;
    if (!this.#subscribed) return;
    if (received === undefined) {
      this.#listener!.onUnsubscribed(this.#nodeIndex); // until commands are possible again
      if (this.#commands.open) this.#probeLater(BUSY_DELAY_MS);
    } else if (received instanceof ReplyError) {
      if (received.commandRefused) this.onRefused(received);
      else this.#probeLater(BUSY_DELAY_MS);
    } else if (typeof received === "number" && received > 0) {
      this.#unheard = 0;
      this.#renewed = false;
      this.#listening = true;
      const timeMs = timeReplyMs(time);
      const { receivedAtMs: receivedMs } = this.#commands;
      const reading = timeMs === undefined ? undefined : { timeMs, sentMs, receivedMs };
      this.#listener!.onSubscribed(this.#nodeIndex, reading);
    } else {
      if (this.#listening) this.#listener!.onUnsubscribed(this.#nodeIndex);
      this.#listening = false;
      if (++this.#unheard >= UNHEARD_MAX) this.#onNeverHeard();
      else this.#probeLater(UNHEARD_DELAY_MS);
    }
  }
}
