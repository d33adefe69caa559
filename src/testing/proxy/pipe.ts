/**
 * One direction of one connection through a proxy.
 *
 * @module
 */
import { systemClock, type TimerHandle } from "../../time/clock.ts";
import { DELAY_MS_MAX } from "../delay.ts";

/** What one direction of all connections of a proxy obeys. */
export interface DirectionFaults {
  /** How long each piece of data stays in the proxy, in milliseconds. */
  delayMs: number;
  /** The bandwidth of each connection; `Infinity` if it is not limited. */
  bytesPerSecond: number;
  /** Whether nothing is forwarded. */
  hung: boolean;
}

/** Without faults. */
export const NO_FAULTS: DirectionFaults = {
  delayMs: 0,
  bytesPerSecond: Infinity,
  hung: false,
};

/** With a limited bandwidth, data is forwarded in pieces, one each so many milliseconds. */
const PIECE_MS = 20;

/** A piece of data, or `undefined` for the end of the stream, and when it is due. */
interface Item {
  readonly bytes: Uint8Array | undefined;
  readonly dueMs: number;
}

/** The other end of a pipe. */
export interface Sink {
  /** Forwards bytes. */
  send(bytes: Uint8Array): void;
  /** Called once, behind the last bytes. */
  end(): void;
}

/** Data on its way, in order. */
export class Pipe {
  readonly #faults: DirectionFaults;
  readonly #sink: Sink;
  #items: Item[] = [];
  #timer: TimerHandle | undefined;
  /**
   * When the last piece was forwarded, and its length: the bandwidth decides when the next one may
   * follow.
   */
  #lastMs = 0;
  #lastBytes = 0;
  #closed = false;

  /**
   * @param faults What it obeys, also if that changes.
   * @param sink The other end.
   */
  constructor(faults: DirectionFaults, sink: Sink) {
    this.#faults = faults;
    this.#sink = sink;
  }

  /** How many bytes wait in it. */
  get bytes(): number {
    return this.#items.reduce((sum, { bytes }) => sum + (bytes?.length ?? 0), 0);
  }

  /** Takes data, or the end of the stream. */
  push(bytes: Uint8Array | undefined): void {
    if (this.#closed) return;
    this.#items.push({ bytes, dueMs: systemClock.monotonicMs() + this.#faults.delayMs });
    this.flush();
  }

  /** Forwards what may be forwarded now. */
  flush(): void {
    systemClock.clearTimer(this.#timer);
    while (this.#items.length > 0 && !this.#faults.hung) {
      const freeAtMs = this.#lastMs + this.#lastBytes / this.#faults.bytesPerSecond * 1_000;
      const dueMs = Math.max(this.#items[0].dueMs, freeAtMs);
      const waitMs = dueMs - systemClock.monotonicMs();
      if (waitMs > 0) {
        this.#timer = systemClock.setTimer(
          () => this.flush(),
          Math.min(Math.ceil(waitMs), DELAY_MS_MAX),
        );
        return;
      }
      this.#forward(this.#items.shift()!);
    }
  }

  /** Drops what waits, and takes nothing any more. */
  close(): void {
    this.#closed = true;
    this.#items = [];
    systemClock.clearTimer(this.#timer);
  }

  /** Ends every delay: what waits is forwarded by the faults of this moment. */
  hurry(): void {
    this.#items = this.#items.map(({ bytes }) => ({ bytes, dueMs: 0 }));
    this.#lastBytes = 0;
    this.flush();
  }

  #forward({ bytes, dueMs }: Item): void {
    if (!bytes) return this.#sink.end();
    const pieceBytes = Math.ceil(this.#faults.bytesPerSecond * PIECE_MS / 1_000);
    const length = Math.min(bytes.length, pieceBytes);
    if (length < bytes.length) this.#items.unshift({ bytes: bytes.subarray(length), dueMs });
    this.#lastMs = systemClock.monotonicMs();
    this.#lastBytes = length;
    this.#sink.send(bytes.subarray(0, length));
  }
}
