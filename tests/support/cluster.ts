/** A lock client on nodes in memory, on faked time. */
import type { RedlockEvent } from "../../src/events.ts";
import type { Lock } from "../../src/lock/lock.ts";
import type { RedlockOptions } from "../../src/options.ts";
import { type Redlock, redlockOn } from "../../src/redlock.ts";
import { TimerWheel } from "../../src/time/timer_wheel.ts";
import { advanceUntil, FakeClock } from "./fake_clock.ts";
import { KeyspaceNode, type Mode, type Operation } from "./keyspace_node.ts";
import { testOf } from "./test_of.ts";

/** The TTL of a cluster's locks, unless its options say otherwise. */
export const TTL_MS = 1_000;
/** That TTL less 1 % less 2 ms. */
export const VALIDITY_MS = 988;
/** How long before the end of that validity the holder is notified. */
export const MARGIN_MS = 25;
/** What a caller aborts with, or a callback throws. */
export const REASON = new Error("changed my mind");

/** The value of a lock of another client of this library. */
export const OTHER_VALUE = `${"f".repeat(40)}:t9wbk1:`;

/** Digits of a client's id, with which the values that it draws begin. */
const ID_LENGTH = 16;

/** A client, its nodes, and their time. */
export class Cluster {
  readonly clock = new FakeClock();
  readonly wheel: TimerWheel;
  readonly nodes: KeyspaceNode[];
  readonly redlock: Redlock;
  /** What the client reported. */
  readonly events: RedlockEvent[] = [];
  /** The values that it drew. */
  readonly values: string[] = [];
  /** What all clients draw for jitter. */
  fraction = 0.5;

  /**
   * @param nodeCount How many nodes there are.
   * @param options The options of the client.
   * @param prepare Prepares the nodes before the client has them.
   */
  constructor(
    nodeCount = 3,
    options: RedlockOptions = {},
    prepare: (nodes: KeyspaceNode[]) => void = () => {},
  ) {
    this.nodes = Array.from({ length: nodeCount }, (_, index) => {
      return new KeyspaceNode(`node${index}`, this.clock);
    });
    prepare(this.nodes);
    this.wheel = this.newWheel();
    const onEvent = (event: RedlockEvent) => void this.events.push(event);
    this.redlock = redlockOn(this.wheel, this.nodes, { ttlMs: TTL_MS, onEvent, ...options });
  }

  /** The timer wheel of another client. */
  newWheel(): TimerWheel {
    const value = (suffix = "") => {
      const drawn = (this.values.length + 1).toString(16).padStart(ID_LENGTH, "0");
      this.values.push(drawn.padEnd(40, "0") + suffix);
      return this.values.at(-1)!;
    };
    return new TimerWheel(this.clock, { value, fraction: () => this.fraction });
  }

  /** Another client of the same servers. */
  peer(options: RedlockOptions = {}): Redlock {
    const nodes = this.nodes.map((node) => node.peer());
    return redlockOn(this.newWheel(), nodes, { ttlMs: TTL_MS, onEvent: () => {}, ...options });
  }

  // Nodes

  /** Has the nodes with these numbers do something else, or all nodes. */
  set(mode: Mode, ...numbers: number[]): void {
    for (const node of this.#some(numbers)) node.mode = mode;
  }

  /** Has somebody else hold `key` on every node. */
  occupy(key = "a", ttlMs = Infinity, value = OTHER_VALUE): void {
    for (const node of this.nodes) node.set(key, value, ttlMs);
  }

  /** Has the holder of `key` release it. */
  free(key = "a"): void {
    for (const node of this.nodes) node.free(key);
  }

  /** Has the nodes with these numbers lose all that they know, or all nodes. */
  forget(...numbers: number[]): void {
    for (const node of this.#some(numbers)) node.forget();
  }

  /** Has all nodes do what they kept, and go on. */
  resume(): void {
    for (const node of this.nodes) node.resume();
  }

  /** Who holds `key` on each node. */
  holders(key = "a"): (string | undefined)[] {
    return this.nodes.map((node) => node.holder(key));
  }

  /** How often each node was asked something of that kind. */
  asked(operation: Operation = "acquire"): number[] {
    return this.nodes.map((node) => node.asked(operation).length);
  }

  /** What each node was asked, in order. */
  get steps(): string[] {
    return this.nodes.map(({ steps }) => steps);
  }

  /** The priorities of the acquisitions on the first node. */
  get priorities(): string[] {
    return this.nodes[0].priorities;
  }

  /** How many tickets are in the queue for "a" on each node. */
  get queueLengths(): number[] {
    return this.nodes.map((node) => node.queue().length);
  }

  // Calls

  /** The types of the events so far. */
  get eventTypes(): string[] {
    return this.events.map(({ type }) => type);
  }

  /** How many timers keep the process alive, and how many entries the client's timer wheel has. */
  get timers(): [alive: number, entries: number] {
    return [this.clock.timersAlive, this.wheel.size];
  }

  /** The present, by the monotonic clock in milliseconds. */
  get nowMs(): number {
    return this.clock.monotonicMs();
  }

  advance(ms: number): Promise<void> {
    return this.clock.advance(ms);
  }

  /** Moves time until `promise` has settled, and settles as it does. */
  settle<T>(promise: Promise<T>, limitMs?: number): Promise<T> {
    return advanceUntil(this.clock, promise, limitMs, 1);
  }

  /**
   * What `promise` rejects with, on the cluster's time.
   *
   * @throws {Error} If it resolves.
   */
  rejection(promise: Promise<unknown>, limitMs?: number): Promise<Error> {
    const rejected = promise.then(
      () => {
        throw new Error("The call resolved, and was to reject");
      },
      (error: Error) => error,
    );
    return this.settle(rejected, limitMs);
  }

  /** Acquires a lock. */
  lock(options: RedlockOptions = {}, resource: string | readonly string[] = "a"): Promise<Lock> {
    return this.settle(this.redlock.acquire(resource, options));
  }

  /** Makes one attempt to acquire a lock. */
  try(
    options: RedlockOptions = {},
    resource: string | readonly string[] = "a",
  ): Promise<Lock | undefined> {
    return this.settle(this.redlock.tryAcquire(resource, options));
  }

  /** What acquiring a lock rejects with. */
  refusal(
    options: RedlockOptions = {},
    resource: string | readonly string[] = "a",
  ): Promise<Error> {
    return this.rejection(this.redlock.acquire(resource, options));
  }

  /** Closes the client. */
  close(): Promise<void> {
    return this.settle(this.redlock.close());
  }

  #some(numbers: number[]): KeyspaceNode[] {
    return numbers.length > 0 ? numbers.map((number) => this.nodes[number]) : this.nodes;
  }
}

/** A cluster, and a lock of its client on "a". */
export async function locked(
  nodeCount = 3,
  options: RedlockOptions = {},
  prepare?: (nodes: KeyspaceNode[]) => void,
): Promise<{ cluster: Cluster; lock: Lock }> {
  const cluster = new Cluster(nodeCount, options, prepare);
  return { cluster, lock: await cluster.lock() };
}

/** A cluster, a lock that another client has handed over, and its token. */
export async function handedOver(
  nodeCount = 3,
  resource: string | readonly string[] = "a",
  options: RedlockOptions = {},
): Promise<{ cluster: Cluster; given: Lock; token: string }> {
  const cluster = new Cluster(nodeCount, options);
  const given = await cluster.settle(cluster.peer().acquire(resource));
  return { cluster, given, token: given.handOver() };
}

/** Defines a test of a cluster of its own; the others name what it has beside it. */
export const test = Object.assign(testOf(() => new Cluster()), {
  locked: testOf(() => locked()),
  handedOver: testOf(() => handedOver()),
});
