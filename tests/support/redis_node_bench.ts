/** One node on Redis on faked time and streams, asked as a round asks it. */
import type { QueueMessage, ReleaseListener, TimeReading } from "../../src/quorum/queue_ticket.ts";
import { parseAddress } from "../../src/redis/address.ts";
import type { ConnectionOptions } from "../../src/redis/connection.ts";
import { RedisNode } from "../../src/redis_node/redis_node.ts";
import { redisServer } from "../../src/redis_node/redis_server.ts";
import { RELEASE } from "../../src/redis_node/scripts/release.ts";
import { runMicrotasks } from "./fake_clock.ts";
import { FakeRequest, ticketOf } from "./fake_request.ts";
import { FakeNetwork, wire } from "./fake_transport.ts";
import { RECONNECT_MS, StreamBench, testOn } from "./stream_bench.ts";

/** The reply of a server that does not know a script. */
export const NOSCRIPT = "-NOSCRIPT No matching script. Please use EVAL.\r\n";

/** How long a release waits that the server refused for the moment, in milliseconds. */
export const REFUSED_DELAY_MS = 50;

/** What a node is asked to count votes on. */
export type Operation = "acquire" | "adopt" | "extend" | "raiseCounters" | "release";

/** Whose releases the node reports. */
export const LISTENER_INDEX = 3;

/** The reply to the subscription of the client whose id is `id`. */
export const SUBSCRIBED = "*3\r\n$9\r\nsubscribe\r\n$12\r\nhasp:wake:id\r\n:1\r\n";

/** A probe of a subscription, as it is written. */
export const PROBE = wire("TIME") + wire("PUBLISH", "hasp:wake:id", "");

/** The reply to its first command; the number of receivers follows. */
export const TIME_REPLY = "*2\r\n$10\r\n1700000000\r\n$6\r\n250000\r\n";

/** A message to the client. */
export function wakeMessage(text: string): string {
  const { length } = new TextEncoder().encode(text);
  return `*3\r\n$7\r\nmessage\r\n$12\r\nhasp:wake:id\r\n$${length}\r\n${text}\r\n`;
}

/** A node on faked time and streams. */
export class NodeBench extends StreamBench implements ReleaseListener {
  readonly id = "id";
  /** Where subscriptions are opened. */
  readonly subscriptions = new FakeNetwork();
  /** The calls of the node's observer. */
  readonly events: string[] = [];
  /** The calls of the listener for releases. */
  readonly notices: unknown[][] = [];
  /** The readings of the node's clock that the listener received. */
  readonly readings: (TimeReading | undefined)[] = [];
  #node: RedisNode | undefined = undefined;

  /** The node, created with the defaults unless {@linkcode use} was called. */
  get node(): RedisNode {
    return this.#node ?? this.use();
  }

  /** Creates the node; called at most once, and first. */
  use(options: Partial<ConnectionOptions> = {}, address = "redis://h"): RedisNode {
    const { wheel } = this;
    const server = (connect: ConnectionOptions["connect"]) =>
      redisServer(parseAddress(address), { ...this.options, connect, ...options }, wheel);
    const { subscribe } = server(this.subscriptions.connect);
    this.#node = new RedisNode({ ...server(this.network.connect), subscribe }, (event) => {
      if (event.type === "node-connected") this.events.push(`${event.node} connected`);
      if (event.type === "node-disconnected") {
        this.events.push(`${event.node}: ${event.error.message}`);
      }
      if (event.type === "node-quarantined") {
        this.events.push(`${event.node} ${event.reason} ${event.remainingMs}`);
      }
    });
    return this.#node;
  }

  /** Asks the node. */
  ask(operation: Operation, request = new FakeRequest(), nodeIndex = 0): FakeRequest {
    this.node.ask(operation, request, nodeIndex);
    return request;
  }

  /** Asks the node, and has the command written. */
  async send(
    operation: Operation,
    request?: FakeRequest,
    nodeIndex?: number,
  ): Promise<FakeRequest> {
    const asked = this.ask(operation, request, nodeIndex);
    await runMicrotasks();
    return asked;
  }

  /** Asks for the release of keys that may be set. */
  release(request = new FakeRequest(), nodeIndex = 0): FakeRequest {
    request.set = true;
    return this.ask("release", request, nodeIndex);
  }

  /** Makes the first connection, on which no script has been sent yet. */
  async connected(): Promise<this> {
    await this.send("acquire");
    await this.answer("+OK\r\n");
    this.events.length = 0;
    return this;
  }

  /**
   * Makes the first connection, and sends every script once, so that each is called by its digest
   * from then on.
   */
  async opened(): Promise<this> {
    if (this.network.transports.length === 0) await this.connected();
    const counterHint = 1;
    const ticket = ticketOf();
    for (const keys of [["k"], ["k", "l"]]) {
      for (const parts of [{}, { counterHint }, { ticket }, { counterHint, ticket }]) {
        this.ask("acquire", new FakeRequest(keys, parts));
      }
      this.ask("extend", new FakeRequest(keys));
      this.ask("release", new FakeRequest(keys));
    }
    this.ask("adopt", new FakeRequest("k", { replaces: "w" }));
    this.ask("release", new FakeRequest("k", { replaces: "w" }));
    this.ask("raiseCounters", new FakeRequest("k", { counterFloor: 1 }));
    this.ask("release", new FakeRequest("k", { ticket, keepsTicket: true }));
    await runMicrotasks();
    await this.answer(":0\r\n".repeat(16));
    this.transport.writes.length = 0;
    return this;
  }

  /** Makes the first connection, and asks for notifications; up to the probe. */
  async subscribed(): Promise<this> {
    await this.connected();
    this.transport.writes.length = 0;
    this.node.subscribe!(this, LISTENER_INDEX);
    await runMicrotasks();
    await this.receive(SUBSCRIBED);
    return this;
  }

  /** The same, and receives the probe: the node has queues. */
  async listening(): Promise<this> {
    await this.subscribed();
    await this.answerProbe();
    this.notices.length = 0;
    return this;
  }

  /** The same, and sends every script once. */
  async queueing(): Promise<this> {
    await this.listening();
    return this.opened();
  }

  /** Answers a probe, and forgets what was written before. */
  answerProbe(reply = ":1\r\n"): Promise<void> {
    return this.answer(TIME_REPLY + reply);
  }

  /** Delivers bytes on the subscription. */
  async receive(bytes: string): Promise<void> {
    this.subscriptions.last.feed(bytes);
    await runMicrotasks();
  }

  /** Waits until the node connects for its subscription again. */
  reconnectSubscription(): Promise<void> {
    return this.advance(RECONNECT_MS);
  }

  /** Lets the server end the subscription. */
  async cutSubscription(): Promise<void> {
    this.subscriptions.last.end();
    await runMicrotasks();
  }

  onSubscribed(nodeIndex: number, reading?: TimeReading): void {
    this.notices.push(["subscribed", nodeIndex]);
    this.readings.push(reading);
  }

  onUnsubscribed(nodeIndex: number): void {
    this.notices.push(["unsubscribed", nodeIndex]);
  }

  onRefused(nodeIndex: number, error: Error): void {
    this.notices.push(["unsupported", nodeIndex, error.message]);
  }

  onQueueMessage(nodeIndex: number, { ticketId, notice, waitMs, place }: QueueMessage): void {
    const more = [waitMs, place].filter((part) => part !== undefined);
    this.notices.push([notice, nodeIndex, ticketId, ...more]);
  }

  protected override closeSubject(): Promise<void> {
    return this.node.close();
  }
}

/** Defines a test of a node that was not asked anything; the others name what was done before. */
export const test = Object.assign(testOn(() => new NodeBench()), {
  connected: testOn(() => new NodeBench().connected()),
  opened: testOn(() => new NodeBench().opened()),
  subscribed: testOn(() => new NodeBench().subscribed()),
  listening: testOn(() => new NodeBench().listening()),
  queueing: testOn(() => new NodeBench().queueing()),
});

/** A release on the wire, as the first on its connection. */
export function wholeRelease(value = "v", ...keys: string[]): string {
  return groupRelease("EVAL", ...locksOf(keys, value));
}

/** Releases in one command, each of a key and its value, by the name of the command. */
export function groupRelease(call: "EVAL" | "EVALSHA", ...locks: [key: string, value: string][]) {
  const script = call === "EVAL" ? RELEASE.source : RELEASE.sha1;
  const words = [...locks.map(([key]) => key), ...locks.map(([, value]) => value)];
  return wire(call, script, String(locks.length), ...words);
}

/** As {@linkcode wholeRelease}, but a later one. */
export function laterRelease(value = "v", ...keys: string[]): string {
  return groupRelease("EVALSHA", ...locksOf(keys, value));
}

function locksOf(keys: readonly string[], value: string): [key: string, value: string][] {
  return (keys.length > 0 ? keys : ["k"]).map((key) => [key, value]);
}
