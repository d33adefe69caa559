/**
 * One connection to Redis on faked time and streams.
 *
 * @module
 */
import { parseAddress } from "../../src/redis/address.ts";
import type { ReplyReceiver } from "../../src/redis/command_queue.ts";
import { Connection, type ConnectionOptions } from "../../src/redis/connection.ts";
import { encodeCommand } from "../../src/redis/encoder.ts";
import type { ConnectionError } from "../../src/redis/errors.ts";
import type { RawReply } from "../../src/redis/reply.ts";
import { TimerWheel } from "../../src/time/timer_wheel.ts";
import { FakeClock, runMicrotasks } from "./fake_clock.ts";
import { FakeNetwork, type FakeTransport } from "./fake_transport.ts";

/** A connection on faked time and streams, and what its commands were told. */
export class Bench implements ReplyReceiver {
  readonly clock = new FakeClock();
  readonly network = new FakeNetwork();
  readonly events: unknown[] = [];
  readonly replies: unknown[][] = [];
  readonly errors: ConnectionError[] = [];
  readonly wheel: TimerWheel;
  readonly connection: Connection;
  fraction = 0.5;

  constructor(options: Partial<ConnectionOptions> = {}, address = "redis://h") {
    const random = { value: () => "value", fraction: () => this.fraction };
    this.wheel = new TimerWheel(this.clock, random);
    this.connection = new Connection(parseAddress(address), {
      connect: this.network.connect,
      connectTimeoutMs: 1_000,
      stallTimeoutMs: 2_000,
      tls: {},
      clientName: undefined,
      onConnected: () => this.events.push("connected"),
      onDisconnected: (error) => this.events.push(error.message),
      ...options,
    }, this.wheel);
  }

  submit(context: unknown, ...words: string[]): void {
    const command = words.length > 0 ? words : ["PING"];
    this.connection.submit(encodeCommand(command), this, context, 0);
  }

  /** Makes the first connection without a command. */
  async open(): Promise<FakeTransport> {
    this.submit("first");
    await runMicrotasks();
    const transport = this.network.last;
    transport.feed("+PONG\r\n");
    await runMicrotasks();
    this.replies.length = 0;
    this.events.length = 0;
    transport.writes.length = 0;
    return transport;
  }

  onReply(reply: RawReply, context: unknown): void {
    this.replies.push([context, reply]);
  }

  onFailure(error: ConnectionError, context: unknown): void {
    this.replies.push([context, error.message, error.outcome]);
    this.errors.push(error);
  }
}
