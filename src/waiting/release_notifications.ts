/**
 * Hearing of releases: which nodes tell this client of them, and whom in it they concern.
 *
 * @module
 */
import { emit, type EventListener } from "../events.ts";
import type { WakeListener } from "../quorum/lock_node.ts";
import type { Voters } from "../quorum/round.ts";
import type { Timed } from "../time/timer_wheel.ts";

/** How long nodes go on telling though nobody waits, in milliseconds. */
const IDLE_MS = 30_000;
/** How long nodes are waited for at the beginning, in milliseconds. */
const LISTEN_MS_MAX = 1_000;
/** How long the last of them are waited for once a quorum tells, in milliseconds. */
const GRACE_MS = 50;
/** Resources that are remembered as contended; the oldest is forgotten for one more. */
const CONTENDED_MAX = 4_096;
/** Characters of a client's id. */
const ID_LENGTH = 20;

/** Whoever waits to be woken. */
export interface Sleeper {
  /** A key it waits for may be free on a node; says whether it still stands there under that entry, and wants it. */
  onWake(seat: number, entry: string): boolean;
  /** Another node tells from now on, or one no longer does. */
  onBellChange(): void;
}

/** One client's ear for all its nodes. Nothing is opened before somebody has to wait. */
export class Bell implements WakeListener {
  readonly id: string;
  readonly #voters: Voters;
  readonly #onEvent: EventListener | undefined;
  readonly #sleepers: Map<string, Sleeper> = new Map();
  readonly #contended: Set<string> = new Set();
  #numbers = 0;
  #open = false;
  #closed = false;
  /** One bit a seat: the nodes that tell, that cannot at the moment, and that never will. */
  #listening = 0;
  #deaf = 0;
  #refused = 0;
  /** Whether those that have not begun by now are waited for no longer. */
  #graceOver = false;
  #grace: Timed | undefined = undefined;
  #idle: Timed | undefined = undefined;

  /**
   * @param voters Whose nodes tell.
   * @param onEvent Told of nodes that refuse to.
   */
  constructor(voters: Voters, onEvent: EventListener | undefined) {
    this.#voters = voters;
    this.#onEvent = onEvent;
    this.id = voters.wheel.random.value().slice(0, ID_LENGTH);
    voters.nodes.forEach(({ listen }, seat) => {
      if (!listen) this.#refused |= 1 << seat;
    });
  }

  /** Whether the client was closed. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Whether so many nodes tell that no release goes unheard: whoever holds a lock holds it on one of them. */
  get heard(): boolean {
    return bitCount(this.#listening) >= this.#voters.quorum;
  }

  /** Whether it is worth waiting for more nodes than tell by now. */
  get settled(): boolean {
    const { length } = this.#voters.nodes;
    const known = this.#listening | this.#deaf | this.#refused;
    return bitCount(known) === length || this.#graceOver || this.#closed;
  }

  /** Gives a sleeper its number, and has the nodes tell. */
  enter(sleeper: Sleeper): string {
    const number = (++this.#numbers).toString(36);
    this.#sleepers.set(number, sleeper);
    if (this.#idle) this.#voters.wheel.cancel(this.#idle);
    this.#idle = undefined;
    if (!this.#open && !this.#closed) this.#begin();
    return number;
  }

  /** The sleeper with this number waits no longer. */
  leave(number: string): void {
    this.#sleepers.delete(number);
    if (this.#sleepers.size > 0 || !this.#open || this.#closed) return;
    this.#idle ??= this.#voters.wheel.after(IDLE_MS, () => this.#end());
  }

  /** Remembers that others want what this line is about. */
  noteContended(line: string): void {
    if (this.#contended.has(line)) return;
    this.#contended.add(line);
    if (this.#contended.size <= CONTENDED_MAX) return;
    for (const oldest of this.#contended) {
      this.#contended.delete(oldest);
      break;
    }
  }

  /** Whether others wanted it lately: then whoever asks for it lines up at once. */
  expectsContention(line: string): boolean {
    return this.#contended.has(line);
  }

  /** The client closes, and its nodes with it. */
  close(): void {
    this.#closed = true;
    this.#listening = 0;
  }

  onListening(seat: number): void {
    if (!this.#open || this.#closed) return;
    this.#listening |= 1 << seat;
    this.#deaf &= ~(1 << seat);
    if (bitCount(this.#listening) === this.#voters.quorum) this.#waitNoLongerThan(GRACE_MS);
    this.#announce();
  }

  onDeaf(seat: number): void {
    if (!this.#open) return;
    this.#listening &= ~(1 << seat);
    this.#deaf |= 1 << seat;
    this.#announce();
  }

  onRefused(seat: number, error: Error): void {
    const told = this.#refused & 1 << seat;
    this.#listening &= ~(1 << seat);
    this.#refused |= 1 << seat;
    const node = this.#voters.nodes[seat].name;
    if (!told && this.#onEvent) emit(this.#onEvent, { type: "notify-refused", node, error });
    this.#announce();
  }

  onWake(seat: number, entry: string, key: string): void {
    const [, number] = entry.split(":", 2);
    // Whoever has left since, or waits anew: those who stand behind its place must hear of it.
    const wanted = this.#sleepers.get(number)?.onWake(seat, entry);
    if (!wanted) this.#voters.nodes[seat].leave?.([key], entry);
  }

  #begin(): void {
    this.#open = true;
    this.#waitNoLongerThan(LISTEN_MS_MAX);
    this.#voters.nodes.forEach((node, seat) => {
      if (!(this.#refused & 1 << seat)) node.listen!(this, seat);
    });
  }

  #waitNoLongerThan(delayMs: number): void {
    const { wheel } = this.#voters;
    if (this.#graceOver) return;
    if (this.#grace) wheel.cancel(this.#grace);
    this.#grace = wheel.after(delayMs, () => {
      const { settled } = this;
      this.#graceOver = true;
      if (!settled) this.#announce();
    });
  }

  #end(): void {
    this.#open = this.#graceOver = false;
    this.#idle = undefined;
    this.#listening = this.#deaf = 0;
    if (this.#grace) this.#voters.wheel.cancel(this.#grace);
    this.#contended.clear();
    for (const node of this.#voters.nodes) node.unlisten?.();
  }

  #announce(): void {
    for (const sleeper of [...this.#sleepers.values()]) sleeper.onBellChange();
  }
}

/** How many bits of a set of seats are set. */
export function bitCount(bits: number): number {
  let count = 0;
  for (let rest = bits; rest !== 0; rest &= rest - 1) count++;
  return count;
}
