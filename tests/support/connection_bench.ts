/** One connection to Redis on faked time and streams. */
import { parseAddress } from "../../src/redis/address.ts";
import type { Command } from "../../src/redis/encoder.ts";
import type { ReplyReceiver } from "../../src/redis/wire.ts";
import { Connection, type ConnectionOptions } from "../../src/redis/connection.ts";
import type { ConnectionError } from "../../src/redis/errors.ts";
import type { RawReply } from "../../src/redis/reply.ts";
import { runMicrotasks } from "./fake_clock.ts";
import { CallingTransport } from "./fake_transport.ts";
import { StreamBench, testOn } from "./stream_bench.ts";

/** A command, and what it is called in the outcomes. */
interface NamedCommand extends Command {
  readonly name: unknown;
}

/** A connection on faked time and streams, and the outcomes of its commands. */
export class ConnectionBench extends StreamBench implements ReplyReceiver<NamedCommand> {
  /** The calls of its owner: `connected`, or the message of an error. */
  readonly events: string[] = [];
  /**
   * Each outcome, by its command's name: a reply; or a message and whether the command was sent.
   */
  readonly replies: unknown[][] = [];
  readonly errors: ConnectionError[] = [];
  #connection: Connection | undefined = undefined;

  /** The connection, created with the defaults unless {@linkcode use} was called. */
  get connection(): Connection {
    return this.#connection ?? this.use();
  }

  /** Creates the connection; called at most once, and first. */
  use(options: Partial<ConnectionOptions> = {}, address = "redis://h"): Connection {
    this.#connection = new Connection(parseAddress(address), {
      ...this.options,
      stallTimeoutMs: 2_000,
      onOpen: () => this.events.push("connected"),
      onLost: (error) => this.events.push(error.message),
      ...options,
    }, this.wheel);
    return this.#connection;
  }

  /** Queues a command, `PING` by default, and has it written. */
  async submit(name: unknown, ...words: string[]): Promise<void> {
    this.queue(name, ...words);
    await runMicrotasks();
  }

  /** Queues a command. */
  queue(name: unknown, ...words: string[]): void {
    this.connection.submit({ args: words.length > 0 ? words : ["PING"], name }, this);
  }

  /** Opens the connection, and forgets how. */
  async open(): Promise<this> {
    await this.submit("first");
    await this.answer("+PONG\r\n");
    this.replies.length = this.events.length = 0;
    return this;
  }

  onReply(reply: RawReply, { name }: NamedCommand): void {
    this.replies.push([name, reply]);
  }

  onFailure(error: ConnectionError, { name }: NamedCommand): void {
    this.replies.push([name, error.message, error.outcome]);
    this.errors.push(error);
  }

  protected override closeSubject(): Promise<void> {
    return this.connection.close();
  }
}

/** Makes a bench whose streams call back, in place of promises. */
function callingBench(): ConnectionBench {
  const bench = new ConnectionBench();
  bench.network.make = () => new CallingTransport();
  return bench;
}

/** Defines a test on both kinds of streams. */
function testOnBoth(
  prepare: (bench: ConnectionBench) => ConnectionBench | Promise<ConnectionBench>,
): (title: string, act: (bench: ConnectionBench) => void | Promise<void>) => void {
  const [reserved, calling] = [
    testOn(() => prepare(new ConnectionBench())),
    testOn(() => prepare(callingBench())),
  ];
  return (title, act) => {
    reserved(title, act);
    calling(`${title}, on a stream that calls back`, act);
  };
}

/**
 * Defines tests of a connection that is created by its first command; `test.open`, of one that is
 * open.
 */
export const test = Object.assign(testOnBoth((bench) => bench), {
  open: testOnBoth((bench) => bench.open()),
});
