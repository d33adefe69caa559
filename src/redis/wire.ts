/**
 * One open stream to one server: what is queued goes out, what comes in is parsed. No policy: whether and
 * when to connect again is the *connection*'s business.
 *
 * @module
 */
import type { Transport } from "../transport/transport.ts";
import { type DecoderOptions, RespDecoder } from "./decoder.ts";
import type { RawReply } from "./reply.ts";

/** Bytes read at once. */
const READ_BUFFER_BYTES = 16 * 1024;
/**
 * Elements of arrays that are decoded before other work of the process has its turn. Other values need no such limit:
 * each of them is the reply to a command of ours.
 */
const ELEMENTS_PER_TURN = 16_384;

/** Who is behind a wire. */
export interface WireOwner {
  /** Everything that is to be written now, or `undefined` where there is nothing. */
  takeUnsent(): Uint8Array | undefined;
  /** Bytes came, whatever they hold. */
  onBytes(): void;
  /** A whole reply came. */
  onReply(reply: RawReply): void;
  /** The stream ended, broke, or carried no RESP2. Called once, and not after {@linkcode Wire.close}. */
  onLost(cause: unknown): void;
  /** Resolves once other work of the process has had its turn: timers, other sockets. */
  nextTurn(): Promise<void>;
}

/** An open stream, written to once a tick and read from without a pause. */
export class Wire {
  readonly #transport: Transport;
  readonly #owner: WireOwner;
  readonly #decoder: RespDecoder;
  readonly #reading: Promise<void>;
  #writing: Promise<void> = Promise.resolve();
  /** A flush is queued for the end of this tick, or a write is under way and will look for more. */
  #flushing = false;
  #open = true;

  /**
   * @param transport The stream.
   * @param owner Who is behind it.
   * @param options What the server may send.
   */
  constructor(transport: Transport, owner: WireOwner, options?: DecoderOptions) {
    this.#transport = transport;
    this.#owner = owner;
    this.#decoder = new RespDecoder((reply) => owner.onReply(reply), options);
    transport.unref?.();
    this.#reading = this.#read();
  }

  /** Has what is queued written before this tick ends, with whatever else comes until then. */
  flush(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    queueMicrotask(this.#startWriting);
  }

  /** Closes the stream; resolves once its last read and write have settled. */
  async close(): Promise<void> {
    if (this.#open) this.#closeTransport();
    await this.#reading;
    await this.#writing;
  }

  readonly #startWriting = (): void => {
    this.#writing = this.#write();
  };

  async #write(): Promise<void> {
    try {
      while (this.#open) {
        let bytes = this.#owner.takeUnsent();
        if (!bytes) break;
        for (;;) {
          const written = await this.#transport.write(bytes);
          if (written === bytes.length) break;
          bytes = bytes.subarray(written);
        }
      }
    } catch (error) {
      this.#lose(error);
    }
    this.#flushing = false;
  }

  async #read(): Promise<void> {
    const decoder = this.#decoder;
    const buffer = new Uint8Array(READ_BUFFER_BYTES);
    let turnEnds = ELEMENTS_PER_TURN;
    try {
      while (this.#open) {
        const count = await this.#transport.read(buffer);
        if (!this.#open) break;
        if (count === null) throw new Error("the server closed the connection");
        this.#owner.onBytes();
        decoder.push(buffer, count);
        if (decoder.elementsDecoded < turnEnds) continue;
        turnEnds = decoder.elementsDecoded + ELEMENTS_PER_TURN;
        await this.#owner.nextTurn();
      }
    } catch (error) {
      this.#lose(error);
    }
  }

  #lose(cause: unknown): void {
    if (!this.#open) return;
    this.#closeTransport();
    this.#owner.onLost(cause);
  }

  #closeTransport(): void {
    this.#open = false;
    this.#decoder.stop();
    try {
      this.#transport.close();
    } catch {
      // It is closed already, or as good as that: nothing is read from it or written to it any more.
    }
  }
}
