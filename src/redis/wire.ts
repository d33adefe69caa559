/**
 * One open stream to one server: writes what is queued, and decodes what arrives. Whether and when to reconnect is
 * decided by the *connection*.
 *
 * @module
 */
import type { Transport } from "../transport/transport.ts";
import type { CommandQueue } from "./command_queue.ts";
import { type DecoderOptions, RespDecoder } from "./decoder.ts";
import type { RawReply } from "./reply.ts";

/** Bytes of one read. */
const READ_BUFFER_BYTES = 16_384;
/**
 * Elements of arrays that are decoded before the event loop gets a turn. Other values need no such limit, because each
 * of them is the reply to a command.
 */
const ELEMENTS_PER_TURN = 16_384;

/** The owner of a wire. */
export interface WireOwner {
  /** Called when bytes arrive, before they are decoded. */
  onBytes(): void;
  /** Called for each complete reply: a function of its own, which the decoder calls. */
  readonly onReply: (reply: RawReply) => void;
  /** Called once if the stream ends, breaks or carries something that is not RESP2; not after {@linkcode Wire.close}. */
  onLost(cause: unknown): void;
  /** Resolves once the event loop has had a turn for timers and other sockets. */
  nextTurn(): Promise<void>;
}

/** An open stream: one write a tick, and always one read under way. */
export class Wire {
  /** The commands to write. */
  queue: CommandQueue;
  readonly #transport: Transport;
  readonly #owner: WireOwner;
  readonly #decoder: RespDecoder;
  readonly #reading: Promise<void>;
  #writing: Promise<void> = Promise.resolve();
  /** Whether a write is queued for the end of this tick, or under way; it takes along what is queued meanwhile. */
  #flushing = false;
  #open = true;

  /**
   * @param transport The stream.
   * @param owner The owner of the wire.
   * @param queue The commands to write.
   * @param options The limits of a reply.
   */
  constructor(
    transport: Transport,
    owner: WireOwner,
    queue: CommandQueue,
    options?: DecoderOptions,
  ) {
    this.queue = queue;
    this.#transport = transport;
    this.#owner = owner;
    this.#decoder = new RespDecoder(owner.onReply, options);
    transport.unref?.();
    this.#reading = this.#read();
  }

  /** Writes what is queued, and what is queued until the end of this tick, in one piece. */
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
      while (this.#open && this.queue.length > this.queue.sent) {
        let bytes = this.queue.takeUnsent();
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
      // It is closed already, or broken: it is not used any more.
    }
  }
}
