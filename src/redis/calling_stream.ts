/**
 * The streams of transports, as the wire uses them: they call back.
 *
 * @module
 */
import type { OnChunk, Transport } from "../transport/transport.ts";

/**
 * Bytes of the first read, and most bytes of one: a read that fills its buffer doubles it for the
 * next. So an idle connection needs little memory.
 */
const READ_BYTES_FIRST = 1_024, READ_BYTES_MAX = 16_384;

/** A stream that calls back: see {@linkcode Transport.receive} and {@linkcode Transport.send}. */
export type CallingStream = Required<Pick<Transport, "receive" | "send">>;

/** The stream of a transport that has `read` and `write` alone. */
export class PromisedStream implements CallingStream {
  readonly #transport: Transport;
  #buffer = new Uint8Array(READ_BYTES_FIRST);
  #reading: Promise<void> | undefined;
  #writing: Promise<void> | undefined;
  #stopped = false;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  receive(onChunk: OnChunk, onEnd: (error?: unknown) => void): void {
    this.#reading = this.#read(onChunk, onEnd).catch(onEnd);
  }

  send(bytes: Uint8Array, onSent: (error?: unknown) => void): void {
    const onFailure = (error: unknown) => onSent(error || new Error("a write failed"));
    // not `async`, which makes two more promises for each write
    this.#writing = this.#transport.write(bytes).then((written) => {
      try {
        checkCount("write", written, bytes);
        if (written === bytes.length || this.#stopped) onSent();
        else this.send(bytes.subarray(written), onSent);
      } catch (error) {
        onFailure(error);
      }
    }, onFailure);
  }

  /** Writes no more once it is closed; resolves when the last read and write have settled. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#reading;
    await this.#writing;
  }

  async #read(onChunk: OnChunk, onEnd: () => void): Promise<void> {
    for (;;) {
      const count = await this.#transport.read(this.#buffer);
      if (count === null) return onEnd();
      if (!onChunk(this.#buffer, count)) return;
      const { length } = this.#buffer;
      if (count === length && length < READ_BYTES_MAX) this.#buffer = new Uint8Array(2 * length);
    }
  }
}

/** @throws {TypeError} If a stream miscounts its bytes: nobody knows what was read or written. */
export function checkCount(method: string, count: number, { length }: Uint8Array): void {
  if (count > 0 && count <= length && Number.isInteger(count)) return;
  const given = typeof count === "number" ? count : typeof count;
  const rule = `must be an integer from 1 to ${length}: current value is ${given}`;
  throw new TypeError(`the byte count of the transport's '${method}' ${rule}`);
}
