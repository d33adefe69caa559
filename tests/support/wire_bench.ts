/**
 * One wire on a faked stream.
 *
 * @module
 */
import type { DecoderOptions } from "../../src/redis/decoder.ts";
import type { RawReply } from "../../src/redis/reply.ts";
import { Wire, type WireOwner } from "../../src/redis/wire.ts";
import { FakeTransport } from "./fake_transport.ts";

const encoder = new TextEncoder();

/** A wire on a faked stream, and its owner. */
export class WireBench implements WireOwner {
  readonly transport: FakeTransport;
  readonly wire: Wire;
  /** What happened, in order: `bytes`, a reply, or `lost` with the cause behind it. */
  readonly events: unknown[] = [];
  /** How often the wire asked for what is unsent. */
  taken = 0;
  /** Called for each reply. */
  onReplyHook: () => void = () => {};
  /** What ends the turns that the wire waits for. */
  readonly turns: (() => void)[] = [];
  readonly #unsent: string[] = [];

  constructor(transport = new FakeTransport(), options?: DecoderOptions) {
    this.transport = transport;
    this.wire = new Wire(transport, this, options);
  }

  /** Queues text and has it written. */
  send(...texts: string[]): void {
    for (const text of texts) {
      this.#unsent.push(text);
      this.wire.flush();
    }
  }

  takeUnsent(): Uint8Array | undefined {
    this.taken++;
    const text = this.#unsent.splice(0).join("");
    return text === "" ? undefined : encoder.encode(text);
  }

  onBytes(): void {
    this.events.push("bytes");
  }

  onReply(reply: RawReply): void {
    this.events.push(reply);
    this.onReplyHook();
  }

  onLost(cause: unknown): void {
    this.events.push("lost", cause);
  }

  nextTurn(): Promise<void> {
    this.events.push("turn");
    return new Promise((resolve) => this.turns.push(resolve));
  }
}
