/**
 * A stream to a server in the same process.
 *
 * @module
 */
import type { Transport } from "../../transport/transport.ts";
import type { MemorySession, MemorySessionOptions } from "./memory_session.ts";

/** The client's end of a stream to a session. */
export class MemoryTransport implements Transport {
  readonly #session: MemorySession;
  #unread: Uint8Array[] = [];
  #closed = false;
  #wake: (() => void) | undefined;

  /** @param open Opens the session. */
  constructor(open: (options: MemorySessionOptions) => MemorySession) {
    this.#session = open({
      onMessage: (bytes) => this.#onBytes(bytes),
      onEnd: () => this.#wakeReader(),
    });
  }

  async read(buffer: Uint8Array): Promise<number | null> {
    while (this.#unread.length === 0) {
      if (this.#closed || this.#session.ended) return null;
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
    const bytes = this.#unread[0];
    const count = Math.min(bytes.length, buffer.length);
    buffer.set(bytes.subarray(0, count));
    if (count < bytes.length) this.#unread[0] = bytes.subarray(count);
    else this.#unread.shift();
    return count;
  }

  write(bytes: Uint8Array): Promise<number> {
    if (this.#closed || this.#session.ended) {
      return Promise.reject(new Error("the stream is closed"));
    }
    this.#onBytes(this.#session.push(bytes));
    return Promise.resolve(bytes.length);
  }

  close(): void {
    this.#closed = true;
    this.#unread = [];
    this.#session.close();
    this.#wakeReader();
  }

  #onBytes(bytes: Uint8Array): void {
    if (bytes.length > 0) this.#unread.push(bytes);
    this.#wakeReader();
  }

  #wakeReader(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}
