/**
 * Nodes in memory that count fencing tokens, in a test's hands.
 *
 * @module
 */
import type { RedlockEvent } from "../../src/events.ts";
import { counterStart } from "../../src/fencing/token.ts";
import type { KeyState, LockNode, LockRequest } from "../../src/quorum/lock_node.ts";
import type { RedlockOptions } from "../../src/options.ts";
import { type Redlock, redlockOn } from "../../src/redlock.ts";
import { TimerWheel } from "../../src/time/timer_wheel.ts";
import { advanceUntil, FakeClock } from "./fake_clock.ts";

/** What a node is asked. */
type Operation = "acquire" | "extend" | "raiseCounters" | "release";

/** What a node does: answer; do it without answering; or answer with an error. */
type Mode = "answer" | "lose-reply" | "fail";

/** One thing that a node was asked. */
export interface FencedCall {
  readonly operation: Operation;
  readonly keys: readonly string[];
  readonly value: string;
  readonly counterFloor: number | undefined;
  readonly atMs: number;
}

/** One store of locks and counters. */
export class FencingNode implements LockNode {
  readonly name: string;
  /** What it does with one kind of question, unless it answers. */
  readonly modes: Partial<Record<Operation, Mode>> = {};
  /** Called before one kind of question takes effect. */
  readonly before: Partial<Record<Operation, () => void>> = {};
  /** How long an answer travels, in milliseconds. */
  replyMs = 0;
  /** Whether what it counts may be what it had counted before. */
  old = false;
  /** By how much its clock is ahead, in milliseconds. */
  aheadMs = 0;
  /** Who holds each key. */
  readonly holders = new Map<string, string>();
  /** The counter of each key. */
  readonly counters = new Map<string, number>();
  /** What it was asked, in order. */
  readonly calls: FencedCall[] = [];
  readonly #clock: FakeClock;

  constructor(name: string, clock: FakeClock) {
    this.name = name;
    this.#clock = clock;
  }

  /** What it was asked, in order, without the rest. */
  get steps(): Operation[] {
    return this.calls.map(({ operation }) => operation);
  }

  /** The calls of one kind. */
  asked(operation: Operation): FencedCall[] {
    return this.calls.filter((call) => call.operation === operation);
  }

  acquire(request: LockRequest, nodeIndex: number): void {
    request.maybeSet |= 1 << nodeIndex;
    this.#take("acquire", request, nodeIndex, ({ keys, value, counterFloor }) => {
      if (keys.some((key) => this.holders.has(key))) return undefined;
      for (const key of keys) this.holders.set(key, value);
      return counterFloor === undefined ? 0 : this.#count(keys, counterFloor);
    });
  }

  extend(request: LockRequest, nodeIndex: number): void {
    this.#take("extend", request, nodeIndex, ({ keys, value, counterFloor }) => {
      const missing = keys.some((key) => !this.holders.has(key));
      if (keys.some((key) => (this.holders.get(key) ?? value) !== value)) return undefined;
      if (missing) return "missing";
      if (counterFloor !== undefined) this.#lift(keys, counterFloor);
      return 0;
    });
  }

  raiseCounters(request: LockRequest, nodeIndex: number): void {
    this.#take("raiseCounters", request, nodeIndex, ({ keys, value, counterFloor }) => {
      if (keys.some((key) => this.holders.get(key) !== value)) return undefined;
      return this.#lift(keys, counterFloor!);
    });
  }

  release(request: LockRequest, nodeIndex: number): void {
    this.#take("release", request, nodeIndex, ({ keys, value }) => {
      const ours = keys.filter((key) => this.holders.get(key) === value);
      for (const key of ours) this.holders.delete(key);
      return ours.length === keys.length ? 0 : undefined;
    });
  }

  inspect(): Promise<KeyState | undefined> {
    return Promise.resolve(undefined);
  }

  #count(keys: readonly string[], hint: number): number {
    const counts = keys.map((key) => {
      const last = this.counters.get(key);
      return last === undefined ? this.#start(hint) : last + 1;
    });
    return this.#lift(keys, Math.max(...counts));
  }

  /** What a missing counter starts from. */
  #start(hint: number): number {
    return counterStart((this.#clock.wallMs() + this.aheadMs) * 1_000, hint);
  }

  #lift(keys: readonly string[], token: number): number {
    const counts = keys.map((key) => this.counters.get(key) ?? this.#start(token));
    const highest = Math.max(token, ...counts);
    for (const key of keys) this.counters.set(key, highest);
    return highest;
  }

  /** Does what it is asked at once; a number grants, and tells the count where it is one. */
  #take(
    operation: Operation,
    request: LockRequest,
    nodeIndex: number,
    act: (request: LockRequest) => number | "missing" | undefined,
  ): void {
    const { keys, value, counterFloor } = request;
    this.calls.push({ operation, keys, value, counterFloor, atMs: this.#clock.monotonicMs() });
    const mode = this.modes[operation] ?? "answer";
    const answer = () => {
      if (mode === "fail") return request.fail(nodeIndex, new Error(`${this.name} is down`));
      this.before[operation]?.();
      const count = act(request);
      if (mode === "lose-reply") return;
      const reply = () => {
        if (count === undefined) return request.deny(nodeIndex);
        if (count === "missing") return request.missing!(nodeIndex);
        if (this.old && operation === "acquire") {
          request.counterFloorNext = counterFloor;
          request.grant(nodeIndex);
        } else request.grant(nodeIndex, undefined, count || undefined);
      };
      if (this.replyMs > 0) this.#clock.setTimer(reply, this.replyMs);
      else reply();
    };
    queueMicrotask(answer);
  }
}

/** A lock client over such nodes, on faked time. */
export class FencingCluster {
  readonly clock = new FakeClock();
  readonly nodes: FencingNode[];
  readonly redlock: Redlock;
  /** What the client told. */
  readonly events: RedlockEvent[] = [];
  #values = 0;

  constructor(nodeCount = 3, options: RedlockOptions = {}) {
    this.nodes = Array.from({ length: nodeCount }, (_, index) => {
      return new FencingNode(`node${index}`, this.clock);
    });
    const onEvent = (event: RedlockEvent) => void this.events.push(event);
    const fenced = { fencing: true, ttlMs: 1_000, waitMs: 0, notify: false };
    this.redlock = this.client({ ...fenced, onEvent, ...options });
  }

  /** Another client of the same nodes. */
  client(options: RedlockOptions = {}): Redlock {
    const value = () => `${++this.#values}`.padStart(40, "0");
    return redlockOn(
      new TimerWheel(this.clock, { value, fraction: () => 0.5 }),
      this.nodes,
      options,
    );
  }

  /** Sets the counter of `key` on the nodes, in order; `undefined` leaves it missing. */
  count(key: string, ...counts: (number | undefined)[]): void {
    counts.forEach((count, index) => {
      if (count !== undefined) this.nodes[index].counters.set(key, count);
    });
  }

  /** The counter of `key` on each node. */
  counters(key: string): (number | undefined)[] {
    return this.nodes.map(({ counters }) => counters.get(key));
  }

  /** Who holds `key` on each node. */
  holders(key: string): (string | undefined)[] {
    return this.nodes.map(({ holders }) => holders.get(key));
  }

  /** What each node was asked, in order. */
  get steps(): string[] {
    return this.nodes.map(({ steps }) => steps.join(" "));
  }

  /** Moves time until `promise` has settled. */
  settle<T>(promise: Promise<T>): Promise<T> {
    return advanceUntil(this.clock, promise, 60_000, 1);
  }
}
