/**
 * One open stream to one server, and the commands on it, first in, first out: those that wait for
 * their replies, then those that are not written yet. Writes what is queued, decodes what arrives,
 * and passes each reply to the first command that waits. Finds out that the server is gone: it
 * leaves commands without replies, or an idle stream leads nowhere any more, which a `PING` shows.
 * Whether and when to reconnect is decided by the *connection*.
 *
 * @module
 */
import type { TimerHandle } from "../time/clock.ts";
import type { TimerEntry, TimerWheel } from "../time/timer_wheel.ts";
import type { Transport } from "../transport/transport.ts";
import { type CallingStream, checkCount, PromisedStream } from "./calling_stream.ts";
import { type DecoderOptions, RespDecoder } from "./decoder.ts";
import {
  bytesOf,
  type Command,
  encodeApart,
  type EncodedCommand,
  joinCommands,
} from "./encoder.ts";
import type { ConnectionError } from "./errors.ts";
import type { RawReply } from "./reply.ts";

/**
 * Elements of arrays that are decoded before the next tick of the event loop. Other values need no
 * such limit, because each of them is the reply to a command.
 */
const ELEMENTS_PER_TICK = 16_384;

/**
 * So many queued commands are written before the tick ends: the servers begin while the other calls
 * are still made.
 */
const QUEUED_MAX = 256;
/** Looks within the shorter of the two limits of a reply. */
const LOOKS = 4;
/**
 * Idle time of a stream, in milliseconds, before a PING: NATs and load balancers forget streams
 * that are idle for minutes, and neither end learns of it.
 */
const IDLE_MS = 30_000;

/** Limits of the time that a server may take, in milliseconds; `Infinity` turns one off. */
export interface ReplyLimits {
  /** Longest silence while replies are due. */
  readonly stallTimeoutMs: number;
  /** Longest wait of a command for its whole reply, also while bytes arrive. */
  readonly replyTimeoutMs: number;
}

/**
 * Receives the outcome of a command, with the command itself and the `tag` that was submitted with
 * it, so one receiver can serve many commands without a closure for each.
 */
export interface ReplyReceiver<Sent extends Command = Command> {
  /**
   * Called with each reply; an error reply is a value here. If the command is several, `index` of
   * its replies have come before.
   */
  onReply(reply: RawReply, command: Sent, tag: number, index?: number): void;
  /** Called if there will be no further reply. */
  onFailure(error: ConnectionError, command: Sent, tag: number, index?: number): void;
}

/** The receiver of a reply that nobody waits for. */
export const NOBODY: ReplyReceiver = { onReply() {}, onFailure() {} };

/** A place in the ring; it has a command and a receiver unless it is free. */
interface Slot {
  command: Command | undefined;
  receiver: ReplyReceiver | undefined;
  tag: number;
  /** How many replies the command has got. */
  replies: number;
}

/** Slots that a queue begins with, a power of two. */
const SLOTS_FIRST = 16;

/**
 * The commands of one connection. One ring of reused slots, which only grows, holds them, so a
 * command in flight allocates nothing here.
 */
export class CommandQueue {
  // Fields and not getters, because they are read for each command.
  /** The number of all replies that are to come, also to commands that are not written. */
  length = 0;
  /** How many of them are to commands that are written. */
  sent = 0;
  /** The number of replies that have come so far. */
  settled = 0;
  #slots: Slot[] = emptySlots(SLOTS_FIRST);
  /** How many slots have commands, and how many of them are written. */
  #used = 0;
  #written = 0;
  /** The place of the first command: written ones come first. */
  #head = 0;

  /** Appends a command that is encoded. */
  push<Sent extends Command>(command: Sent, receiver: ReplyReceiver<Sent>, tag: number): void {
    if (this.#used === this.#slots.length) this.#makeRoom();
    const slot = this.#slot(this.#used++);
    slot.command = command;
    slot.receiver = receiver as ReplyReceiver;
    slot.tag = tag;
    this.length += command.count ?? 1;
  }

  /** Puts one command in front of all others, of which none may be written yet. */
  pushFirst(command: Command, receiver: ReplyReceiver): void {
    if (this.#used === this.#slots.length) this.#makeRoom();
    this.#head = this.#place(-1);
    this.#used++;
    Object.assign(this.#slot(0), { command, receiver, tag: 0 });
    this.length++;
  }

  /** Returns all unwritten commands as one piece, and counts them as written. There must be one. */
  takeUnsent(): Uint8Array {
    this.sent = this.length;
    if (this.#used - this.#written === 1) {
      return bytesOf(this.#slot(this.#written++).command!.bytes!);
    }
    // not grown by `push`, which takes more memory
    const commands = new Array<EncodedCommand>(this.#used - this.#written);
    for (let index = 0; index < commands.length; index++) {
      commands[index] = this.#slot(this.#written++).command!.bytes!;
    }
    return joinCommands(commands);
  }

  /** Passes `reply` to the first written command; there must be one. */
  settleFirst(reply: RawReply): void {
    const slot = this.#slots[this.#head];
    const { receiver, command, tag } = slot;
    const index = slot.replies++;
    // mutation: reply-goes-to-the-wrong-command
    if (slot.replies === (command!.count ?? 1)) this.#dropFirst(slot);
    this.settled++;
    this.sent--;
    this.length--;
    receiver!.onReply(reply, command!, tag, index);
  }

  /**
   * Fails every command: the written ones with `unknown`, the others with `notSent`. Nobody may
   * use the queue from then on: what a receiver submits goes into the next one.
   */
  failAll(unknown: ConnectionError, notSent: ConnectionError): void {
    this.#all().forEach(({ receiver, command, tag, replies }, index) => {
      receiver!.onFailure(index < this.#written ? unknown : notSent, command!, tag, replies);
    });
  }

  #slot(index: number): Slot {
    return this.#slots[this.#place(index)];
  }

  #place(index: number): number {
    return (this.#head + index) & (this.#slots.length - 1);
  }

  #dropFirst(slot: Slot): void {
    slot.command = undefined;
    slot.receiver = undefined;
    slot.replies = 0;
    this.#head = (this.#head + 1) & (this.#slots.length - 1);
    this.#used--;
    this.#written--;
  }

  /** The slots of all commands, in their order. */
  #all(): Slot[] {
    return Array.from({ length: this.#used }, (_, index) => this.#slot(index));
  }

  #makeRoom(): void {
    this.#slots = [...this.#all(), ...emptySlots(this.#used)];
    this.#head = 0;
  }
}

function emptySlots(count: number): Slot[] {
  return Array.from({ length: count }, () => ({
    command: undefined,
    receiver: undefined,
    tag: 0,
    replies: 0,
  }));
}

/** The runtime's own function: one that a test has faked would never write again. */
const { queueMicrotask } = globalThis;
/** What is due at the end of this tick, in one microtask: what queues commands, and the writes. */
const lastCalls: (() => void)[] = [];
const writes: (() => void)[] = [];
let ending = false;

/**
 * Calls a function at the end of this tick: what it queues goes out with the rest of the tick.
 *
 * @param lastFirst Whether the server that asked last is written to first, and not last. If one of
 * them were the last for all that locks need, its replies would come apart from the others: with
 * ten locks in flight, that takes a client up to a tenth more CPU.
 */
export function beforeWrites(callback: () => void, lastFirst = false): void {
  if (lastFirst) lastCalls.unshift(callback);
  else lastCalls.push(callback);
  endTick();
}

function endTick(): void {
  if (!ending) queueMicrotask(writeAll);
  ending = true;
}

function writeAll(): void {
  try {
    // in any order, because each is for another server
    for (let call = lastCalls.pop(); call; call = lastCalls.pop()) call();
  } finally {
    ending = false;
    if (lastCalls.length > 0) endTick(); // one has thrown, and the others wait
    for (let write = writes.pop(); write; write = writes.pop()) write();
  }
}

/** The owner of a wire. */
export interface WireOwner {
  /** Set to the arrival of the last bytes, by the monotonic clock, before they are decoded. */
  receivedAtMs: number;
  /** Called for each complete reply: a function of its own, which the decoder calls. */
  readonly onReply: (reply: RawReply) => void;
  /**
   * Called if the stream ends, breaks or carries something that is not RESP2; not after
   * {@linkcode Wire.close}. Closes the wire.
   */
  onStreamEnd(cause: unknown): void;
  /** Called with what took too long: `was silent for 2000 ms`. Closes the wire. */
  lose(what: string): void;
}

/**
 * An open stream: mostly one write a tick, and always one read under way. While replies are due it
 * looks a few times within its limits, and while it is idle it waits for the earliest end of an
 * idle time. So a command costs no timer.
 */
export class Wire {
  /** The commands to write. */
  queue: CommandQueue;
  readonly #transport: Transport;
  readonly #owner: WireOwner;
  readonly #wheel: TimerWheel;
  readonly #decoder: RespDecoder;
  readonly #stream: CallingStream;
  /** Whether a piece is being written. */
  #writing = false;
  /**
   * Whether a write is queued for the end of this tick, or under way; it takes along what is queued
   * meanwhile.
   */
  #flushing = false;
  #open = true;
  readonly #limits: ReplyLimits;
  /** How long it is from one look to the next; `Infinity` until it watches. */
  #lookMs = Infinity;
  #look: TimerEntry | undefined;
  /** Not an entry of the wheel, which would wake up an idle client several times a second. */
  #idle: TimerHandle = undefined;
  /** How many replies there are in all once those have come that were due at an earlier look. */
  #due = 0;
  /** How many looks ago that look was. */
  #dueLooks = 0;

  /**
   * @param transport The stream.
   * @param owner The owner of the wire.
   * @param wheel Where it waits for the next tick.
   * @param queue The commands to write.
   * @param limits The limits of a reply.
   */
  constructor(
    transport: Transport,
    owner: WireOwner,
    wheel: TimerWheel,
    queue: CommandQueue,
    limits: ReplyLimits & DecoderOptions,
  ) {
    this.queue = queue;
    this.#transport = transport;
    this.#owner = owner;
    this.#wheel = wheel;
    this.#decoder = new RespDecoder(owner.onReply, limits);
    this.#limits = limits;
    this.#stream = transport.receive && transport.send
      ? transport as CallingStream
      : new PromisedStream(transport);
    transport.unref?.();
  }

  /** Begins to watch the server: the login, which has a limit of its own, is done. */
  watch(): void {
    const { stallTimeoutMs, replyTimeoutMs } = this.#limits;
    this.#lookMs = Math.min(stallTimeoutMs, replyTimeoutMs) / LOOKS;
    if (this.queue.length > 0) this.flush(); // which looks from now on
    // A worker's stream has no `unref`: it ends with its request, and is not idle for long.
    if (this.#transport.unref) this.#waitIdle(IDLE_MS);
  }

  /**
   * Writes what is queued, and what is queued until the end of this tick, in one piece unless that
   * is long.
   */
  flush(): void {
    const { queue } = this;
    if (!this.#look?.scheduled && this.#lookMs < Infinity) this.#lookLater();
    if (!this.#flushing) {
      this.#flushing = true;
      writes.push(this.#beginWrite);
      endTick();
    }
    if (queue.length - queue.sent >= QUEUED_MAX) this.#beginWrite();
  }

  /** Closes the stream; resolves once its last read and write have settled. */
  async close(): Promise<void> {
    if (this.#open) this.#closeTransport();
    if (this.#stream instanceof PromisedStream) await this.#stream.stop();
  }

  /** Writes what is queued, unless a piece is being written: then that takes it along. */
  readonly #beginWrite = (): void => {
    if (!this.#writing) this.#write();
  };

  /** Writes what was queued since the last piece, if there is anything. */
  #write(): void {
    if (!this.#open) return;
    this.#writing = this.#flushing = this.queue.length > this.queue.sent;
    if (!this.#writing) return;
    try {
      this.#stream.send(this.queue.takeUnsent(), this.#onSent);
    } catch (error) {
      this.#lose(error);
    }
  }

  readonly #onSent = (error?: unknown): void => {
    if (error) this.#lose(error);
    else this.#write();
  };

  /** Reads on; the stream may be lost before this returns. */
  readonly read = (): void => {
    if (!this.#open) return;
    try {
      this.#stream.receive(this.#onChunk, this.#onEnd);
    } catch (error) {
      this.#lose(error);
    }
  };

  readonly #onChunk = (bytes: Uint8Array, count: number): boolean => {
    if (!this.#open) return false;
    const decoder = this.#decoder;
    try {
      checkCount("read", count, bytes);
      this.#owner.receivedAtMs = this.#wheel.clock.monotonicMs();
      decoder.push(bytes, count);
    } catch (error) {
      this.#lose(error);
      return false;
    }
    if (decoder.elementsDecoded < ELEMENTS_PER_TICK) return true;
    decoder.elementsDecoded = 0;
    this.#wheel.after(0, this.read);
    return false;
  };

  readonly #onEnd = (error: unknown = new Error("the server closed the connection")): void => {
    this.#lose(error);
  };

  readonly #lose = (cause: unknown): void => {
    if (this.#open) this.#owner.onStreamEnd(cause);
  };

  #lookLater(): void {
    this.#look = this.#wheel.deadline(this.#lookMs, () => {
      const late = this.#late();
      if (late !== undefined) this.#owner.lose(late);
      else if (this.queue.length > 0) this.#lookLater();
    });
  }

  /**
   * Returns what took too long, or `undefined`. A wait that began between two looks ends at the
   * look behind its end. Looks are counted, because the clock goes on while the process stands
   * still.
   */
  #late(): string | undefined {
    const { queue } = this;
    const { stallTimeoutMs, replyTimeoutMs } = this.#limits;
    if (queue.settled >= this.#due) {
      this.#due = queue.settled + queue.length;
      this.#dueLooks = 0;
      return undefined;
    }
    const dueMs = ++this.#dueLooks * this.#lookMs;
    const silentMs = this.#wheel.clock.monotonicMs() - this.#owner.receivedAtMs;
    // mutation: silent-connection-kept
    if (Math.min(dueMs, silentMs) >= stallTimeoutMs) return `was silent for ${stallTimeoutMs} ms`;
    if (dueMs < replyTimeoutMs) return undefined;
    return `left a command without a whole reply for ${replyTimeoutMs} ms`;
  }

  /** Sends a PING after an idle time, unless replies are due: it shows that the server is there. */
  #waitIdle(delayMs: number): void {
    const { clock } = this.#wheel;
    this.#idle = clock.setTimer(() => {
      if (!this.#open) return; // closed since the timer fired
      const leftMs = this.#owner.receivedAtMs + IDLE_MS - clock.monotonicMs();
      this.#waitIdle(leftMs > 0 ? Math.ceil(leftMs) : IDLE_MS);
      if (leftMs > 0 || this.queue.length > 0) return;
      this.queue.push({ args: ["PING"], bytes: encodeApart(["PING"]) }, NOBODY, 0);
      this.flush();
    }, delayMs);
  }

  #closeTransport(): void {
    this.#open = false;
    this.#wheel.cancel(this.#look);
    if (this.#idle !== undefined) this.#wheel.clock.clearTimer(this.#idle);
    this.#decoder.stop();
    closeTransport(this.#transport);
  }
}

/** Closes a stream that is not used any more: how its own `close` ends does not matter. */
export function closeTransport(transport: Transport): void {
  (async () => await transport.close())().catch(() => {});
}
