/**
 * The commands of one connection, first in, first out: those waiting to be written behind those waiting for
 * their reply.
 *
 * One ring of reused slots holds both, so that a command in flight allocates nothing here.
 *
 * @module
 */
import { joinCommands } from "./encoder.ts";
import type { RedisError } from "./errors.ts";
import type { RawReply } from "./reply.ts";

/**
 * Who is told what became of a command. `context` and `tag` are what was given with the command, so that
 * one receiver can serve many commands without a closure for each.
 */
export interface ReplyReceiver {
  /** The reply came; an error reply comes here too, as a value. */
  onReply(reply: RawReply, context: unknown, tag: number): void;
  /** There will be no reply. */
  onFailure(error: RedisError, context: unknown, tag: number): void;
}

interface Slot {
  command: Uint8Array | undefined;
  receiver: ReplyReceiver | undefined;
  context: unknown;
  tag: number;
}

/** Slots that a queue begins with, a power of two. */
const SLOTS_FIRST = 16;

/** A first-in, first-out queue that grows and never shrinks. */
export class CommandQueue {
  #slots: Slot[] = emptySlots(SLOTS_FIRST);
  #head = 0;
  #length = 0;
  #sent = 0;

  /** All commands, written or not. */
  get length(): number {
    return this.#length;
  }

  /** How many of them are not written yet. */
  get unsent(): number {
    return this.#length - this.#sent;
  }

  /** Puts a command at the end. */
  push(command: Uint8Array, receiver: ReplyReceiver, context: unknown, tag: number): void {
    if (this.#length === this.#slots.length) this.#grow();
    const slot = this.#slot(this.#length++);
    slot.command = command;
    slot.receiver = receiver;
    slot.context = context;
    slot.tag = tag;
  }

  /** Everything that is to be written, as one piece; counts as written from here on. There must be something. */
  takeUnsent(): Uint8Array {
    if (this.unsent === 1) return takeCommand(this.#slot(this.#sent++));
    const commands: Uint8Array[] = [];
    while (this.#sent < this.#length) commands.push(takeCommand(this.#slot(this.#sent++)));
    return joinCommands(commands);
  }

  /** Hands `reply` to the first command; says whether there was one that waited for it. */
  settleFirst(reply: RawReply): boolean {
    if (this.#sent === 0) return false;
    const slot = this.#slots[this.#head];
    const { receiver, context, tag } = slot;
    this.#dropFirst(slot);
    this.#sent--;
    receiver!.onReply(reply, context, tag);
    return true;
  }

  /** Fails every command: the written ones with `unknown`, the others with `notSent`. */
  failAll(unknown: RedisError, notSent: RedisError): void {
    // A receiver may queue a command while it is told; only those of this moment are failed.
    let sent = this.#sent;
    this.#sent = 0;
    for (let left = this.#length; left > 0; left--) {
      const slot = this.#slots[this.#head];
      const { receiver, context, tag } = slot;
      this.#dropFirst(slot);
      receiver!.onFailure(sent-- > 0 ? unknown : notSent, context, tag);
    }
  }

  /** Takes the command with this `context` out, if it is not written yet; says whether it was. */
  withdraw(context: unknown): boolean {
    for (let index = this.#sent; index < this.#length; index++) {
      if (this.#slot(index).context !== context) continue;
      for (; index < this.#length - 1; index++) {
        Object.assign(this.#slot(index), this.#slot(index + 1));
      }
      clearSlot(this.#slot(--this.#length));
      return true;
    }
    return false;
  }

  #slot(index: number): Slot {
    return this.#slots[(this.#head + index) & (this.#slots.length - 1)];
  }

  #dropFirst(slot: Slot): void {
    clearSlot(slot);
    this.#head = (this.#head + 1) & (this.#slots.length - 1);
    this.#length--;
  }

  #grow(): void {
    const ordered = this.#slots.map((_, index) => this.#slot(index));
    this.#slots = ordered.concat(emptySlots(ordered.length));
    this.#head = 0;
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

function takeCommand(slot: Slot): Uint8Array {
  const command = slot.command!;
  slot.command = undefined;
  return command;
}

function clearSlot(slot: Slot): void {
  slot.command = undefined;
  slot.receiver = undefined;
  slot.context = undefined;
}
