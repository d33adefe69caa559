/**
 * One node on faked time and streams, asked as a quorum asks it; and its ear alone.
 *
 * @module
 */
import type {
  QueueNotice,
  QueuePosition,
  QueuePriority,
  QueueTicket,
  ReleaseListener,
  TimeReading,
} from "../../src/quorum/queue_ticket.ts";
import { parseAddress } from "../../src/redis/address.ts";
import type { ReplyReceiver } from "../../src/redis/command_queue.ts";
import { Connection, type ConnectionOptions } from "../../src/redis/connection.ts";
import { encodeCommand } from "../../src/redis/encoder.ts";
import { ReleaseSubscription } from "../../src/redis_node/release_subscription.ts";
import { RedisNode } from "../../src/redis_node/redis_node.ts";
import { redisServer } from "../../src/redis_node/redis_server.ts";
import { RELEASE, RELEASE_QUEUED } from "../../src/redis_node/scripts/release.ts";
import { TimerWheel } from "../../src/time/timer_wheel.ts";
import { FakeRequest } from "./fake_request.ts";
import { advanceUntil, FakeClock, runMicrotasks } from "./fake_clock.ts";
import { FakeNetwork, type FakeTransport, wire } from "./fake_transport.ts";

/** The name of the node at `redis://h`. */
export const NAME = "redis://h:6379";

/** What its errors say where the server hung up. */
export const LOST = `Connection to ${NAME} was lost: the server closed the connection`;

/** The reply of a server that does not know a script. */
export const NOSCRIPT = "-NOSCRIPT No matching script. Please use EVAL.\r\n";

/** How long a release waits for a busy server. */
export const BUSY_DELAY_MS = 500;

/** Longer than the first delay before connecting again. */
export const RECONNECT_MS = 100;

/** What a node is asked to count votes on. */
export type Operation = "acquire" | "extend" | "raiseCounters" | "release";

/** A node on faked time and streams. */
export class Bench {
  readonly clock = new FakeClock();
  readonly network = new FakeNetwork();
  readonly wheel: TimerWheel;
  readonly node: RedisNode;
  /** What the observer heard. */
  readonly events: string[] = [];

  constructor(options: Partial<ConnectionOptions> = {}, address = "redis://h") {
    this.wheel = new TimerWheel(this.clock, { value: () => "value", fraction: () => 0.5 });
    this.node = new RedisNode(
      redisServer(
        parseAddress(address),
        {
          connect: this.network.connect,
          connectTimeoutMs: 1_000,
          stallTimeoutMs: Infinity,
          tls: {},
          clientName: undefined,
          ...options,
        },
        this.wheel,
      ),
      {
        onConnected: (node) => this.events.push(`${node} connected`),
        onDisconnected: (node, error) => this.events.push(`${node}: ${error.message}`),
        onQuarantined: (node, { reason }) => this.events.push(`${node} ${reason}`),
      },
    );
  }

  /** Asks the node in one seat. */
  ask(operation: Operation, request = new FakeRequest(), nodeIndex = 0): FakeRequest {
    this.node[operation](request, nodeIndex);
    return request;
  }

  /** The same, for a release of what may stand. */
  release(request = new FakeRequest(), nodeIndex = 0): FakeRequest {
    request.maybeSet |= 1 << nodeIndex;
    return this.ask("release", request, nodeIndex);
  }

  /** Makes the first connection, on which no script was sent yet. */
  async connect(): Promise<FakeTransport> {
    this.ask("acquire");
    await runMicrotasks();
    await this.answer("+OK\r\n");
    this.events.length = 0;
    return this.network.last;
  }

  /** Makes the first connection, and sends every script once, so that each is called by its digest from then on. */
  async open(): Promise<FakeTransport> {
    const transport = await this.connect();
    for (
      const request of [
        new FakeRequest(["k", "l"]),
        new FencedBallot(),
        new FencedBallot(["k", "l"]),
      ]
    ) {
      this.ask("acquire", request);
    }
    this.ask("extend");
    this.ask("raiseCounters", new FencedBallot());
    this.ask("release");
    this.ask("release", new FakeRequest(["k", "l"]));
    this.node.leaveQueue(["k"], ENTRY);
    await runMicrotasks();
    await transport.answer(":0\r\n".repeat(8));
    transport.writes.length = 0;
    return transport;
  }

  /** Has a reply come, and forgets what was written before it. */
  answer(reply: string): Promise<void> {
    return this.network.last.answer(reply);
  }

  /** Has the server hang up. */
  async hangUp(): Promise<void> {
    this.network.last.end();
    await runMicrotasks();
  }

  /**
   * Waits for the next connection and returns what was written on it.
   *
   * @throws {Error} If none is made.
   */
  async reconnect(): Promise<string> {
    const count = this.network.transports.length;
    this.network.mode = "accept";
    for (let waitedMs = 0; this.network.transports.length === count; waitedMs += RECONNECT_MS) {
      if (waitedMs >= 5_000) throw new Error("Cannot connect again within 5000 ms");
      await this.clock.advance(RECONNECT_MS);
    }
    await runMicrotasks();
    return this.network.last.written;
  }

  /**
   * Closes the node.
   *
   * @throws {Error} If a timer is left.
   */
  async close(): Promise<void> {
    await advanceUntil(this.clock, this.node.close());
    this.wheel.close();
    if (this.clock.timers > 0) throw new Error(`${this.clock.timers} timers are left`);
  }
}

/** A release on the wire, as the first on its connection. */
export function leftover(value = "v", ...keys: string[]): string {
  const named = keys.length > 0 ? keys : ["k"];
  const { source } = named.length > 1 ? RELEASE_QUEUED : RELEASE;
  return wire("EVAL", source, String(named.length), ...named, value);
}

/** The same as a later one. */
export function laterRelease(value = "v", ...keys: string[]): string {
  const named = keys.length > 0 ? keys : ["k"];
  const { sha1 } = named.length > 1 ? RELEASE_QUEUED : RELEASE;
  return wire("EVALSHA", sha1, String(named.length), ...named, value);
}

/** The seat of {@linkcode EarBench}. */
export const SEAT = 7;

/** The reply to a client's subscription whose id is `id`. */
export const SUBSCRIBED = "*3\r\n$9\r\nsubscribe\r\n$12\r\nhasp:wake:id\r\n:1\r\n";

/** What a probe writes. */
export const PROBE = wire("TIME") + wire("PUBLISH", "hasp:wake:id", "");

/** The reply to its first command. */
const TIME_REPLY = "*2\r\n$10\r\n1700000000\r\n$6\r\n250000\r\n";

/** The replies to a probe that was heard. */
export const HEARD = `${TIME_REPLY}:1\r\n`;

/** A message to that client. */
export function wakeMessage(text: string): string {
  const { length } = new TextEncoder().encode(text);
  return `*3\r\n$7\r\nmessage\r\n$12\r\nhasp:wake:id\r\n$${length}\r\n${text}\r\n`;
}

/** One ear on faked time and streams, beside a connection for commands. */
export class EarBench implements ReleaseListener, ReplyReceiver {
  readonly id = "id";
  readonly clock = new FakeClock();
  readonly wheel = new TimerWheel(this.clock, { value: () => "value", fraction: () => 0.5 });
  /** Where the ear connects. */
  readonly network = new FakeNetwork();
  /** Where the commands go. */
  readonly commandNetwork = new FakeNetwork();
  readonly commands: Connection;
  readonly ear: ReleaseSubscription;
  /** What the listener was told. */
  readonly events: unknown[][] = [];
  /** What it was told of the node's clock. */
  readonly readings: (TimeReading | undefined)[] = [];

  constructor() {
    const options = {
      connectTimeoutMs: 1_000,
      stallTimeoutMs: Infinity,
      tls: {},
      clientName: undefined,
    };
    const address = parseAddress("redis://h");
    this.commands = new Connection(address, {
      ...options,
      connect: this.commandNetwork.connect,
      onConnected: () => this.ear.onCommandsPossible(),
    }, this.wheel);
    const earOptions = { ...options, connect: this.network.connect };
    this.ear = new ReleaseSubscription(
      redisServer(address, earOptions, this.wheel),
      this.commands,
    );
  }

  /** Has the connection for commands made, as the first denied attempt does. */
  async ready(): Promise<this> {
    this.commands.submit(encodeCommand(["PING"]), this, undefined, 0);
    await runMicrotasks();
    await this.commandNetwork.last.answer("+PONG\r\n");
    this.commandNetwork.last.writes.length = 0;
    return this;
  }

  /** Opens the ear, up to the reply to SUBSCRIBE. */
  async subscribe(): Promise<this> {
    this.ear.open(this, SEAT);
    await runMicrotasks();
    await this.hear(SUBSCRIBED);
    return this;
  }

  /** Opens the ear, up to its listening. */
  async listen(): Promise<this> {
    await this.subscribe();
    await this.answer(":1\r\n");
    this.events.length = 0;
    return this;
  }

  /** Has the replies to a probe come, of which the last is `reply`, and forgets what was written before it. */
  answer(reply: string): Promise<void> {
    return this.commandNetwork.last.answer(TIME_REPLY + reply);
  }

  /** Has something come that is for the ear. */
  async hear(bytes: string): Promise<void> {
    this.network.last.feed(bytes);
    await runMicrotasks();
  }

  /** Has the server hang up where the ear is connected. */
  async cut(): Promise<void> {
    this.network.last.end();
    await runMicrotasks();
  }

  /** What was written on the connection for commands since the last reply. */
  get written(): string {
    return this.commandNetwork.last.written;
  }

  async advance(ms: number): Promise<void> {
    await this.clock.advance(ms);
    await runMicrotasks();
  }

  /**
   * Closes everything.
   *
   * @throws {Error} If a timer is left.
   */
  async close(): Promise<void> {
    await advanceUntil(this.clock, Promise.all([this.ear.close(), this.commands.close()]));
    if (this.wheel.size > 0) throw new Error(`${this.wheel.size} timers are left`);
    this.wheel.close();
  }

  onReply(): void {}

  onFailure(): void {}

  onSubscribed(nodeIndex: number, reading?: TimeReading): void {
    this.events.push(["listening", nodeIndex]);
    this.readings.push(reading);
  }

  onUnsubscribed(nodeIndex: number): void {
    this.events.push(["deaf", nodeIndex]);
  }

  onUnsupported(nodeIndex: number, error: Error): void {
    this.events.push(["refused", nodeIndex, error.message]);
  }

  onReleased(nodeIndex: number, ticketId: string, notice: QueueNotice): void {
    this.events.push([notice, nodeIndex, ticketId]);
  }
}

/** The ticket of a caller that would wait. */
export const ENTRY = "id:1";

/** Its score. */
export const SCORE = 1_700_000_000_000_000;

/** A ballot of somebody who would wait, and where nodes have put it in line. */
export class TicketBallot extends FakeRequest {
  readonly ticket: QueueTicket;
  /** Each time that a node put it in line: the seat, the place and when. */
  readonly queued: (readonly [seat: number, place: QueuePosition, atMs: number | undefined])[] = [];

  constructor(keys: string | readonly string[] = "k", priority: QueuePriority = "in-order") {
    super(keys);
    this.ticket = { ticketId: ENTRY, priority, score: SCORE, onEnqueued() {} };
  }

  enqueued(nodeIndex: number, place: QueuePosition, atMs?: number): void {
    this.queued.push([nodeIndex, place, atMs]);
  }
}

/** A ballot with a hint or a token, and what nodes counted. */
export class FencedBallot extends FakeRequest {
  readonly counterFloor: number = 1_700_000_000_000_000;
  counterFloorNext: number | undefined = undefined;
  /** The count with each grant. */
  readonly counts: (number | undefined)[] = [];

  override grant(nodeIndex: number, atMs?: number, count?: number): void {
    super.grant(nodeIndex, atMs);
    this.counts.push(count);
  }
}

/** A node that is to wake who waits. */
export class WaitingBench extends Bench {
  /** What the listener was told. */
  readonly told: unknown[][] = [];
  /** The stream of the connection for commands. */
  commands!: FakeTransport;

  /** Connects, and begins to listen; up to the message to itself. */
  async begin(): Promise<this> {
    this.commands = await this.open();
    this.node.subscribe({
      id: "id",
      onSubscribed: (nodeIndex) => this.told.push(["listening", nodeIndex]),
      onUnsubscribed: (nodeIndex) => this.told.push(["deaf", nodeIndex]),
      onUnsupported: (nodeIndex, error) => this.told.push(["refused", nodeIndex, error.message]),
      onReleased: (nodeIndex, ticketId, notice) => this.told.push([notice, nodeIndex, ticketId]),
    }, 3);
    await runMicrotasks();
    await this.answer(SUBSCRIBED);
    return this;
  }

  /** Begins to listen, and has the scripts for the queue sent once. */
  async listening(): Promise<this> {
    await this.begin();
    await this.reply(HEARD);
    await this.join();
    await this.reply(":1\r\n");
    this.commands.writes.length = 0;
    this.told.length = 0;
    return this;
  }

  /** Has a reply to a command come, and forgets what was written before it. */
  reply(reply: string): Promise<void> {
    return this.commands.answer(reply);
  }

  /** Asks for a lock with a ticket. */
  async join(request = new TicketBallot(), nodeIndex = 0): Promise<TicketBallot> {
    this.node.acquire(request, nodeIndex);
    await runMicrotasks();
    return request;
  }
}
