/** Streams without a network: a test sees what is written and says what comes back, and when. */
import { runMicrotasks } from "./fake_clock.ts";
import type { Connect, ConnectTarget, OnChunk, Transport } from "../../src/transport/transport.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();
/** Bytes of one chunk that a stream which calls back has room for. */
const CHUNK_BYTES = 16_384;

/**
 * One stream. Reads wait until the test feeds bytes; writes are taken at once unless the test says
 * otherwise.
 */
export class FakeTransport implements Transport {
  /** Each write as text. */
  readonly writes: string[] = [];
  /** How many bytes one write takes at the most. */
  writeBytesMax = Infinity;
  /** While true a write does not settle. */
  writesHang = false;
  /** What a write fails with. */
  writeError: unknown = undefined;
  /** Whether the client closed it. */
  closed = false;
  /** Whether closing leaves pending reads and writes as they are, as a broken runtime might. */
  closeHangs = false;
  #unread: (Uint8Array | null | Error)[] = [];
  #wake: (() => void) | undefined = undefined;
  #hanging: ((error: Error) => void)[] = [];

  /** Everything that was written. */
  get written(): string {
    return this.writes.join("");
  }

  async read(buffer: Uint8Array): Promise<number | null> {
    while (this.#unread.length === 0) {
      if (this.closed && !this.closeHangs) throw new Error("the fake stream is closed");
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
    const next = this.#unread.shift()!;
    if (next === null) return null;
    if (next instanceof Error) throw next;
    const count = Math.min(next.length, buffer.length);
    buffer.set(next.subarray(0, count));
    if (count < next.length) this.#unread.unshift(next.subarray(count));
    return count;
  }

  write(bytes: Uint8Array): Promise<number> {
    if (this.writeError !== undefined) return Promise.reject(this.writeError);
    const taken = bytes.slice(0, this.writeBytesMax);
    this.writes.push(decoder.decode(taken));
    if (!this.writesHang) return Promise.resolve(taken.length);
    return new Promise((_, reject) => this.#hanging.push(reject));
  }

  /** Rejects, as the streams of some runtimes do: nobody waits for it. */
  close(): Promise<void> {
    const closed = Promise.reject(new Error("the fake stream is closed"));
    this.closed = true;
    if (this.closeHangs) return closed;
    for (const reject of this.#hanging.splice(0)) reject(new Error("the fake stream is closed"));
    this.#wake?.();
    return closed;
  }

  unref(): void {}

  /** Has `reply` come in, as one chunk. */
  feed(reply: string | Uint8Array): void {
    this.#put(typeof reply === "string" ? encoder.encode(reply) : reply);
  }

  /** Has `reply` come in and be dealt with, and forgets what was written before it. */
  async answer(reply: string): Promise<void> {
    this.writes.length = 0;
    this.feed(reply);
    await runMicrotasks();
  }

  /** Ends the stream from the server's side. */
  end(): void {
    this.#put(null);
  }

  /** Breaks the stream. */
  fail(error: Error): void {
    this.#put(error);
  }

  #put(event: Uint8Array | null | Error): void {
    this.#unread.push(event);
    this.#wake?.();
  }
}

/** The same, without promises for its reader and writer. */
export class CallingTransport extends FakeTransport {
  receive(onChunk: OnChunk, onEnd: (error?: unknown) => void): void {
    const buffer = new Uint8Array(CHUNK_BYTES);
    const next = () => {
      this.read(buffer).then((count) => {
        if (count === null) onEnd();
        else if (onChunk(buffer, count)) next();
      }, onEnd);
    };
    next();
  }

  send(bytes: Uint8Array, onSent: (error?: unknown) => void): void {
    this.write(bytes).then((count) => {
      if (count < bytes.length) this.send(bytes.subarray(count), onSent);
      else onSent();
    }, onSent);
  }
}

/** One call of {@linkcode FakeNetwork.connect} that waits for the test's decision. */
export interface PendingConnect {
  readonly target: ConnectTarget;
  readonly signal: AbortSignal;
  accept(transport?: FakeTransport): FakeTransport;
  refuse(error: unknown): void;
}

/** Opens {@linkcode FakeTransport}s. */
export class FakeNetwork {
  /** What happens to a call: taken at once, refused at once, or left to the test. */
  mode: "accept" | "refuse" | "wait" = "accept";
  /** What refused calls reject with. */
  refusal: unknown = new Error("connection refused");
  /** Makes the streams of accepted calls. */
  make: () => FakeTransport = () => new FakeTransport();
  /** Every call's target. */
  readonly targets: ConnectTarget[] = [];
  /** Every call's signal. */
  readonly signals: AbortSignal[] = [];
  /** Every stream that was opened. */
  readonly transports: FakeTransport[] = [];
  /** The calls that wait for the test. */
  readonly pending: PendingConnect[] = [];

  /** The stream that was opened last. */
  get last(): FakeTransport {
    const last = this.transports.at(-1);
    if (!last) throw new Error("Cannot return a stream as none was opened");
    return last;
  }

  /** Opens a stream, or does not. */
  readonly connect: Connect = (target, { signal }) => {
    this.targets.push(target);
    this.signals.push(signal);
    if (this.mode === "refuse") return Promise.reject(this.refusal);
    if (this.mode === "accept") return Promise.resolve(this.#open(this.make()));
    return new Promise((resolve, reject) => {
      this.pending.push({
        target,
        signal,
        accept: (transport = this.make()) => {
          resolve(this.#open(transport));
          return transport;
        },
        refuse: reject,
      });
    });
  };

  #open(transport: FakeTransport): FakeTransport {
    this.transports.push(transport);
    return transport;
  }
}

/** A command as its bytes. */
export function wire(...words: string[]): string {
  const bulks = words.map((word) => `$${encoder.encode(word).length}\r\n${word}\r\n`);
  return `*${words.length}\r\n${bulks.join("")}`;
}

/** A command without effect, as its bytes. */
export const PING = wire("PING");
