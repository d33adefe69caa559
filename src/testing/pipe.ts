/**
 * Data on its way to a server in memory, or through a proxy, and the faults that it meets.
 *
 * @module
 */
import { systemClock, type TimerHandle } from "../time/clock.ts";
import { check, NUMBER, rangeError } from "../validate.ts";

/** What a pipe obeys. */
export interface Faults {
  /** How long each piece of data stays in the pipe, in milliseconds. */
  delayMs: number;
  /** The bandwidth; `Infinity` if it is not limited. */
  bytesPerSecond: number;
  /** Whether nothing is forwarded. */
  hung: boolean;
}

/** Without faults. */
export const NO_FAULTS: Faults = { delayMs: 0, bytesPerSecond: Infinity, hung: false };

/** The longest delay in milliseconds: runtimes fire a timer with a longer one at once. */
const DELAY_MS_MAX = 2 ** 31 - 1;
/** With a limited bandwidth, data is forwarded in pieces, one each so many milliseconds. */
const PIECE_MS = 20;

/**
 * Checks a delay.
 *
 * @throws {TypeError} If it is not a number.
 * @throws {RangeError} If it is out of range.
 */
export function checkDelayMs(action: string, delayMs: number): void {
  check(action, "delayMs", delayMs, NUMBER);
  if (delayMs >= 0 && delayMs <= DELAY_MS_MAX) return;
  throw rangeError(action, "delayMs", `must be a number from 0 to ${DELAY_MS_MAX}`, delayMs);
}

/** Where the data of one connection goes. */
export interface Sink {
  /** Forwards bytes. */
  send(bytes: Uint8Array): void;
  /** Called once, behind the last bytes. */
  end(): void;
}

/** A piece of data, or `undefined` for the end of the stream, where it goes, and when it is due. */
interface Item {
  readonly bytes: Uint8Array | undefined;
  readonly sink: Sink;
  readonly dueMs: number;
}

/** Data of one connection or of several, in the order in which it arrives. */
export class Pipe {
  readonly #faults: Faults;
  #items: Item[] = [];
  #timer: TimerHandle | undefined;
  /**
   * When the last piece was forwarded, and its length: the bandwidth decides when the next one may
   * follow.
   */
  #lastMs = 0;
  #lastBytes = 0;
  #closed = false;

  /** @param faults What it obeys, also if that changes. */
  constructor(faults: Faults) {
    this.#faults = faults;
  }

  /** How many bytes wait in it. */
  get bytes(): number {
    return this.#items.reduce((sum, { bytes }) => sum + (bytes?.length ?? 0), 0);
  }

  /** Takes data, or the end of the stream. */
  push(bytes: Uint8Array | undefined, sink: Sink): void {
    if (this.#closed) return;
    const { delayMs } = this.#faults;
    const dueMs = delayMs > 0 ? systemClock.monotonicMs() + delayMs : 0;
    this.#items.push({ bytes, sink, dueMs });
    this.flush();
  }

  /** Forwards what may be forwarded now. */
  flush(): void {
    systemClock.clearTimer(this.#timer);
    while (this.#items.length > 0 && !this.#faults.hung) {
      const sendingMs = this.#lastBytes / this.#faults.bytesPerSecond * 1_000;
      // Without a fault it does not look at the time, which a test's fake timers may set back.
      const freeAtMs = sendingMs > 0 ? this.#lastMs + sendingMs : 0;
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

  /** Drops what waits for a sink. */
  drop(sink: Sink): void {
    this.#items = this.#items.filter((item) => item.sink !== sink);
  }

  /** Drops what waits, and takes nothing any more. */
  close(): void {
    this.#closed = true;
    this.#items = [];
    systemClock.clearTimer(this.#timer);
  }

  /** Ends every delay: what waits is forwarded by the faults of this moment. */
  hurry(): void {
    this.#items = this.#items.map((item) => ({ ...item, dueMs: 0 }));
    this.flush();
  }

  #forward({ bytes, sink, dueMs }: Item): void {
    if (!bytes) return sink.end();
    const pieceBytes = Math.ceil(this.#faults.bytesPerSecond * PIECE_MS / 1_000);
    const length = Math.min(bytes.length, pieceBytes);
    if (length < bytes.length) this.#items.unshift({ bytes: bytes.subarray(length), sink, dueMs });
    this.#lastMs = systemClock.monotonicMs();
    this.#lastBytes = length;
    sink.send(bytes.subarray(0, length));
  }
}
