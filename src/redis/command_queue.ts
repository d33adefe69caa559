/**
 * The commands of one connection, first in, first out: those that wait for their replies, then
 * those that are not written yet.
 *
 * One ring of reused slots holds both, so a command in flight allocates nothing here.
 *
 * @module
 */
import { bytesOf, type EncodedCommand, joinCommands } from "./encoder.ts";
import type { ConnectionError } from "./errors.ts";
import type { RawReply } from "./reply.ts";

/**
 * Receives the outcome of a command. `context` and `tag` are the values that were submitted with
 * the command, so one receiver can serve many commands without a closure for each.
 */
export interface ReplyReceiver<Context = unknown> {
  /** Called with the reply; an error reply is a value here. */
  onReply(reply: RawReply, context: Context, tag: number): void;
  /** Called if there will be no reply. */
  onFailure(error: ConnectionError, context: Context, tag: number): void;
}

/**
 * A place in the ring. Its receiver is `undefined` if it is free, or if its command was withdrawn;
 * its command, once that is written.
 */
export interface Slot {
  command: EncodedCommand | undefined;
  receiver: ReplyReceiver | undefined;
  context: unknown;
  tag: number;
}

/** Slots that a queue begins with, a power of two. */
const SLOTS_FIRST = 16;

/** A queue that grows and never shrinks. */
export class CommandQueue {
  // Fields and not getters, because they are read for each command.
  /** The number of all commands, written or not. */
  length = 0;
  /** The number of commands that are written, and wait for their replies. */
  sent = 0;
  /** The number of commands that have got their replies so far. */
  settled = 0;
  #slots: Slot[] = emptySlots(SLOTS_FIRST);
  #head = 0;
  /** Slots in use: of written commands, then of others, including withdrawn ones. */
  #used = 0;
  #withdrawn = 0;

  /** Appends a command; returns its slot, by which it can be withdrawn. */
  push<Context>(
    command: EncodedCommand,
    receiver: ReplyReceiver<Context>,
    context: Context,
    tag: number,
  ): Slot {
    if (this.#used === this.#slots.length) this.#makeRoom();
    const slot = this.#slot(this.#used++);
    this.length++;
    slot.command = command;
    slot.receiver = receiver;
    slot.context = context;
    slot.tag = tag;
    return slot;
  }

  /** Puts a command in front of all others, of which none may be written yet. */
  pushFirst(command: EncodedCommand, receiver: ReplyReceiver, context: unknown, tag: number): void {
    if (this.#used === this.#slots.length) this.#makeRoom();
    this.#head = this.#place(-1);
    this.#used++;
    this.length++;
    Object.assign(this.#slot(0), { command, receiver, context, tag });
  }

  /** Returns all unwritten commands as one piece, and counts them as written. There must be one. */
  takeUnsent(): Uint8Array {
    this.#removeWithdrawn();
    if (this.length - this.sent === 1) return bytesOf(takeCommand(this.#slot(this.sent++)));
    // not grown by `push`, which takes more memory
    const commands = new Array<EncodedCommand>(this.#used - this.sent);
    for (let index = 0; index < commands.length; index++) {
      commands[index] = takeCommand(this.#slot(this.sent++));
    }
    return joinCommands(commands);
  }

  /** Passes `reply` to the first written command; returns whether there was one. */
  settleFirst(reply: RawReply): boolean {
    if (this.sent === 0) return false;
    const slot = this.#slots[this.#head];
    const { receiver, context, tag } = slot;
    // mutation: reply-goes-to-the-wrong-command
    this.#dropFirst(slot);
    this.settled++;
    this.sent--;
    receiver!.onReply(reply, context, tag);
    return true;
  }

  /** Fails every command: the written ones with `unknown`, the others with `notSent`. */
  failAll(unknown: ConnectionError, notSent: ConnectionError): void {
    this.#removeWithdrawn();
    // A receiver may append a command; only those that are here now fail.
    let sent = this.sent;
    this.sent = 0;
    for (let left = this.#used; left > 0; left--) {
      const slot = this.#slots[this.#head];
      const { receiver, context, tag } = slot;
      this.#dropFirst(slot);
      receiver!.onFailure(sent-- > 0 ? unknown : notSent, context, tag);
    }
  }

  /**
   * Removes the command that was given this slot with this `context`, if it is not written yet;
   * returns whether it did. Takes constant time, however many others wait.
   */
  withdraw(slot: Slot, context: unknown): boolean {
    if (slot.context !== context || slot.command === undefined) return false;
    clearSlot(slot);
    this.#withdrawn++;
    this.length--;
    return true;
  }

  #slot(index: number): Slot {
    return this.#slots[this.#place(index)];
  }

  #place(index: number): number {
    return (this.#head + index) & (this.#slots.length - 1);
  }

  #dropFirst(slot: Slot): void {
    clearSlot(slot);
    this.#head = (this.#head + 1) & (this.#slots.length - 1);
    this.#used--;
    this.length--;
  }

  /**
   * Removes the slots of withdrawn commands if they are the majority, else adds slots; amortized
   * constant time.
   */
  #makeRoom(): void {
    if (2 * this.#withdrawn > this.#used) return this.#removeWithdrawn();
    const ordered = this.#slots.map((_, index) => this.#slot(index));
    this.#slots = ordered.concat(emptySlots(ordered.length));
    this.#head = 0;
  }

  /** Removes the slots of withdrawn commands from the ring. */
  #removeWithdrawn(): void {
    if (this.#withdrawn === 0) return;
    let kept = this.sent;
    for (let index = this.sent; index < this.#used; index++) {
      const slot = this.#slot(index);
      if (slot.receiver === undefined) continue;
      this.#slots[this.#place(index)] = this.#slot(kept);
      this.#slots[this.#place(kept++)] = slot;
    }
    this.#used = kept;
    this.#withdrawn = 0;
  }
}

function emptySlots(count: number): Slot[] {
  return Array.from({ length: count }, () => ({
    command: undefined,
    receiver: undefined,
    context: undefined,
    tag: 0,
  }));
}

function takeCommand(slot: Slot): EncodedCommand {
  const command = slot.command!;
  slot.command = undefined;
  return command;
}

function clearSlot(slot: Slot): void {
  slot.command = undefined;
  slot.receiver = undefined;
  slot.context = undefined;
}
