/**
 * Nodes in memory with queues of waiters, in a test's hands. What they do with keys and queues is what the server in
 * memory does, which is held to real servers.
 *
 * @module
 */
import type { RedlockEvent } from "../../src/events.ts";
import type { KeyState, LockNode, LockRequest } from "../../src/quorum/lock_node.ts";
import type * as queue from "../../src/quorum/queue_ticket.ts";
import type { RedlockOptions } from "../../src/options.ts";
import { type Redlock, redlockOn } from "../../src/redlock.ts";
import { queueOf, WAKE_CHANNEL } from "../../src/redis_node/scripts/queue.ts";
import type { ConnectionState, ServerState } from "../../src/testing/commands/command.ts";
import {
  acquireOrWait,
  leave,
  release,
  releaseQueued,
} from "../../src/testing/scripts/queue_functions.ts";
import { Channels } from "../../src/testing/server/channels.ts";
import { Keyspace } from "../../src/testing/server/keyspace.ts";
import { TimerWheel } from "../../src/time/timer_wheel.ts";
import type { FakeClock } from "./fake_clock.ts";
import { FakeCluster, FakeNode, type Operation } from "./fake_nodes.ts";

/** Delays with which a waiter asks, unless something happens, after a minute at the earliest. */
export const UNHURRIED: RedlockOptions = { retryDelayMs: 200, retryDelayMaxMs: 1_000_000 };

/** One client that the node can notify. */
interface Subscription {
  readonly listener: queue.ReleaseListener;
  readonly nodeIndex: number;
  readonly connection: ConnectionState;
}

/** One store of locks with a queue for each. */
export class WaitingNode extends FakeNode {
  /** How long a subscription takes, in milliseconds; `Infinity`: it is never confirmed. */
  subscribeMs = 0;
  /** How long a notification travels, in milliseconds. */
  notifyMs = 0;
  /** The error with which it refuses subscriptions. */
  refusal: Error | undefined = undefined;
  /** How far its clock is ahead, in milliseconds. */
  aheadMs = 0;
  /** The priority of each acquisition, in order; "none" for one without a ticket. */
  readonly priorities: (queue.QueuePriority | "none")[] = [];
  /** What it published, in order: a ticket that was first, or one that was second and a plus sign. */
  readonly messages: string[] = [];
  /** The tickets that left, in order. */
  readonly leaves: string[] = [];
  /** How often it was asked to subscribe, and to unsubscribe. */
  subscribes = 0;
  unsubscribes = 0;
  readonly #clock: FakeClock;
  readonly #keyspace: Keyspace;
  readonly #server: ServerState & { channels: Channels };
  readonly #held: (() => void)[] = [];
  #own: Subscription | undefined = undefined;

  constructor(name: string, clock: FakeClock) {
    super(name, clock);
    this.#clock = clock;
    const wallMs = () => clock.wallMs() + this.aheadMs;
    const time = { ...nowhere, monotonicMs: () => clock.monotonicMs(), wallMs };
    this.#keyspace = new Keyspace(time);
    this.#server = {
      clock: time,
      password: undefined,
      databases: [this.#keyspace],
      scripts: new Set(),
      channels: new RecordedChannels(this.messages),
    };
  }

  /** The tickets in the queue for `key`, in their order. */
  queue(key = "a"): string[] {
    return this.#keyspace.sortedSet(queueOf(key))?.range(0, -1) ?? [];
  }

  /** The score of a ticket in the queue for `key`. */
  score(ticketId: string, key = "a"): number | undefined {
    return this.#keyspace.sortedSet(queueOf(key))?.score(ticketId);
  }

  /** Puts tickets of other clients, which are subscribed, at the end of a queue. */
  enqueue(key: string, ...tickets: string[]): void {
    const queue = this.#keyspace.sortedSet(queueOf(key), true);
    for (const ticket of tickets) {
      const last = queue.range(-1, -1).map((other) => queue.score(other)!);
      queue.add(ticket, Math.max(0, ...last) + 1);
      this.#server.channels.subscribe(connectionOf(() => {}), channelOf(clientOf(ticket)));
    }
  }

  /** Gives a ticket in a queue another score. */
  raise(key: string, ticket: string, score: number): void {
    this.#keyspace.sortedSet(queueOf(key), true).add(ticket, score);
  }

  /** Takes tickets out of a queue, and notifies nobody. */
  drop(key: string, ...tickets: string[]): void {
    for (const ticket of tickets) this.#keyspace.sortedSet(queueOf(key))?.remove(ticket);
    this.#keyspace.dropIfEmpty(queueOf(key));
  }

  /** Has the holder of `key` release it. */
  free(key: string): void {
    const value = this.holder(key);
    if (value !== undefined) release(this.#context, [key], [value]);
  }

  /** Notifies a ticket of this client, whether or not anything is free. */
  notify(ticketId: string, notice: queue.QueueNotice = "first"): void {
    this.#own!.listener.onReleased(this.#own!.nodeIndex, ticketId, notice);
  }

  /** Ends the subscription, for the time being. */
  cut(): void {
    const { listener, nodeIndex, connection } = this.#own!;
    this.#server.channels.leave(connection);
    listener.onUnsubscribed(nodeIndex);
  }

  /** Confirms the subscription, for the first time or again. */
  confirm(): void {
    const { listener, nodeIndex, connection } = this.#own!;
    this.#server.channels.subscribe(connection, channelOf(listener.id));
    const nowMs = this.#clock.monotonicMs();
    const timeMs = this.#server.clock.wallMs();
    listener.onSubscribed(nodeIndex, { timeMs, sentMs: nowMs, receivedMs: nowMs });
  }

  /** Refuses the subscription for good. */
  refuse(error: Error): void {
    const { listener, nodeIndex, connection } = this.#own!;
    this.#server.channels.leave(connection);
    listener.onUnsupported(nodeIndex, error);
  }

  override get keys(): Record<string, KeyState> {
    throw new Error("Cannot list keys of a node with queues");
  }

  override holder(key: string): string | undefined {
    return this.#keyspace.get(key);
  }

  override set(key: string, value: string, ttlMs = Infinity): void {
    if (ttlMs <= 0) return void this.#keyspace.delete(key);
    const expiresAtMs = this.#keyspace.nowMs() + BigInt(ttlMs === Infinity ? 0 : Math.round(ttlMs));
    this.#keyspace.set(key, value, ttlMs === Infinity ? undefined : expiresAtMs);
  }

  override forget(): void {
    this.#keyspace.clear();
  }

  override resume(): void {
    super.resume();
    for (const act of this.#held.splice(0)) act();
  }

  override acquire(request: LockRequest, nodeIndex: number): void {
    const { ticket, keys, value, ttlMs } = request;
    this.priorities.push(ticket?.priority ?? "none");
    request.maybeSet |= 1 << nodeIndex;
    const joins = ticket && this.#isSubscribed(clientOf(ticket.ticketId));
    this.#take("acquire", request, nodeIndex, () => {
      const priority = joins && ticket.priority === "in-order" ? "0" : "1";
      const [ticketId, score] = joins ? [ticket.ticketId, String(ticket.score)] : ["", ""];
      const args = [value, String(Math.round(ttlMs)), ticketId, priority, score];
      const reply = numbers(acquireOrWait(this.#context, keys, args));
      if (reply.length === 1 && reply[0] === 1) return () => request.grant(nodeIndex);
      if (reply.length === 1) {
        request.maybeSet &= ~(1 << nodeIndex);
        return () => request.deny(nodeIndex);
      }
      const [pttl, ahead, length, ticketScore, timeUs] = reply;
      const remainingMs = pttl === -1 ? Infinity : Math.max(pttl + 1, 0);
      const times = { score: ticketScore, timeMs: timeUs / 1_000 };
      return () => request.enqueued!(nodeIndex, { remainingMs, ahead, length, ...times });
    });
  }

  override release(request: LockRequest, nodeIndex: number): void {
    const { ticket, keys, value, keepsTicket } = request;
    const args = [value, ...ticket ? [ticket.ticketId] : []];
    if (ticket && keepsTicket) args.push(String(ticket.score));
    this.#take("release", request, nodeIndex, () => {
      const [reply] = numbers(releaseQueued(this.#context, keys, args));
      return () => {
        if (reply === 3) request.hasWaiters = true;
        if (reply === 0) request.deny(nodeIndex);
        else request.grant(nodeIndex);
      };
    });
  }

  override extend(request: LockRequest, nodeIndex: number): void {
    const { keys, value, ttlMs } = request;
    this.#take("extend", request, nodeIndex, () => {
      const holds = keys.every((key) => this.holder(key) === value);
      for (const key of holds ? keys : []) this.set(key, value, ttlMs);
      return () => holds ? request.grant(nodeIndex) : request.deny(nodeIndex);
    });
  }

  override inspect(key: string): Promise<KeyState | undefined> {
    const value = this.holder(key);
    const remainingMs = Number(this.#keyspace.remainingMs(key));
    const state = { value: value!, remainingMs: remainingMs === -1 ? Infinity : remainingMs };
    return Promise.resolve(value === undefined ? undefined : state);
  }

  subscribe(listener: queue.ReleaseListener, nodeIndex: number): void {
    this.subscribes++;
    this.#own = this.#subscription(listener, nodeIndex);
    if (this.refusal) return this.refuse(this.refusal);
    if (this.subscribeMs !== Infinity) this.#later(this.subscribeMs, () => this.confirm());
  }

  unsubscribe(): void {
    this.unsubscribes++;
    if (this.#own) this.#server.channels.leave(this.#own.connection);
  }

  leaveQueue(keys: readonly string[], ticketId: string): void {
    this.leaves.push(ticketId);
    leave(this.#context, keys, [ticketId]);
  }

  /** The same server, as another client comes to it. */
  peer(): LockNode {
    let own: Subscription | undefined;
    return {
      name: this.name,
      acquire: (request, nodeIndex) => this.acquire(request, nodeIndex),
      extend: (request, nodeIndex) => this.extend(request, nodeIndex),
      release: (request, nodeIndex) => this.release(request, nodeIndex),
      inspect: (key) => this.inspect(key),
      subscribe: (listener, nodeIndex) => {
        own = this.#subscription(listener, nodeIndex);
        this.#server.channels.subscribe(own.connection, channelOf(listener.id));
        listener.onSubscribed(nodeIndex);
      },
      unsubscribe: () => own && this.#server.channels.leave(own.connection),
      leaveQueue: (keys, ticketId) => this.leaveQueue(keys, ticketId),
    };
  }

  get #context() {
    return { server: this.#server, connection: connectionOf(() => {}), keys: this.#keyspace };
  }

  #isSubscribed(client: string): boolean {
    return this.#server.channels.publish(channelOf(client), "") > 0;
  }

  #subscription(listener: queue.ReleaseListener, nodeIndex: number): Subscription {
    const connection = connectionOf((encoded) => {
      const message = encoded.split("\r\n").at(-2)!;
      if (message === "") return;
      const notice = message.endsWith("+") ? "next" : message.endsWith("-") ? "taken" : "first";
      const ticketId = message.replace(/[+-]$/u, "");
      this.#later(this.notifyMs, () => listener.onReleased(nodeIndex, ticketId, notice));
    });
    return { listener, nodeIndex, connection };
  }

  #take(operation: Operation, request: LockRequest, nodeIndex: number, act: () => () => void) {
    const { keys, value, ttlMs } = request;
    this.calls.push({ operation, keys, value, ttlMs, atMs: this.#clock.monotonicMs() });
    if (this.closed > 0) return request.fail(nodeIndex, new Error(`${this.name} is closed`));
    const mode = this.modes[operation] ?? this.mode;
    const done = () => {
      if (mode === "fail") return request.fail(nodeIndex, new Error(`${this.name} is down`));
      const reply = act();
      if (mode !== "lose-reply") this.#later(this.replyMs, reply);
    };
    if (mode === "hang" || this.#held.length > 0) this.#held.push(done);
    else this.#later(this.requestMs, done);
  }

  #later(ms: number, act: () => void): void {
    if (ms > 0) this.#clock.setTimer(act, ms);
    else queueMicrotask(act);
  }
}

/** Writes down what is published. */
class RecordedChannels extends Channels {
  readonly #messages: string[];

  constructor(messages: string[]) {
    super();
    this.#messages = messages;
  }

  override publish(channel: string, message: string): number {
    if (message !== "") this.#messages.push(message);
    return super.publish(channel, message);
  }
}

/** Of a clock that only tells the time. */
const nowhere = {
  setTimer: () => undefined,
  clearTimer: () => {},
  keepAlive: () => {},
};

function connectionOf(deliver: (message: string) => void): ConnectionState {
  return { id: 0, database: 0, authenticated: true, name: "", deliver };
}

function clientOf(ticket: string): string {
  return ticket.slice(0, ticket.indexOf(":"));
}

function channelOf(client: string): string {
  return WAKE_CHANNEL + client;
}

/** The integers of a reply. */
function numbers(reply: string): number[] {
  return [...reply.matchAll(/^:(-?\d+)\r\n/gmu)].map(([, number]) => Number(number));
}

/** A lock client over nodes in memory with queues, on faked time. */
export class WaitingCluster extends FakeCluster {
  override readonly nodes: WaitingNode[];
  override readonly redlock: Redlock;
  #clients = 0;

  constructor(nodeCount = 3, options: RedlockOptions = {}) {
    super(nodeCount, options);
    this.nodes = Array.from({ length: nodeCount }, (_, index) => {
      return new WaitingNode(`node${index}`, this.clock);
    });
    const onEvent = (event: RedlockEvent) => void this.events.push(event);
    this.redlock = redlockOn(this.wheel, this.nodes, { onEvent, ...options });
  }

  /** Has somebody else hold `key` on every node. */
  occupy(key = "a", ttlMs = Infinity): void {
    for (const node of this.nodes) node.set(key, "other", ttlMs);
  }

  /** Has the holder of `key` release it. */
  free(key = "a"): void {
    for (const node of this.nodes) node.free(key);
  }

  /** Another client of the same servers. */
  override contender(options: RedlockOptions = {}): Redlock {
    const prefix = `c${++this.#clients}`;
    let drawn = 0;
    const value = () => prefix + (++drawn).toString(16).padStart(40 - prefix.length, "-");
    const wheel = new TimerWheel(this.clock, { value, fraction: () => this.fraction });
    return redlockOn(wheel, this.nodes.map((node) => node.peer()), options);
  }

  /** The priorities of the acquisitions on the first node. */
  get priorities(): string[] {
    return [...this.nodes[0].priorities];
  }

  /** The tickets in the queue on each node. */
  get queues(): string[][] {
    return this.nodes.map((node) => node.queue());
  }
}
