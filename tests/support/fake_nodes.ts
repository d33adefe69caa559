/**
 * Nodes in memory, in a test's hands: they answer, hang, fail, lose replies, forget.
 *
 * @module
 */
import type { RedlockEvent } from "../../src/events.ts";
import type { KeyState, LockNode, LockRequest } from "../../src/quorum/lock_node.ts";
import type { RedlockOptions } from "../../src/options.ts";
import { type Redlock, redlockOn } from "../../src/redlock.ts";
import { TimerWheel } from "../../src/time/timer_wheel.ts";
import { FakeClock } from "./fake_clock.ts";

/** What a node is asked. */
export type Operation = "acquire" | "extend" | "release" | "inspect";

/**
 * What a node does: answer; keep everything until it goes on; do it without answering; answer with an error; or
 * throw, as no node should.
 */
export type Mode = "answer" | "hang" | "lose-reply" | "fail" | "throw";

/** One thing that a node was asked. */
export interface Call {
  readonly operation: Operation;
  readonly keys: readonly string[];
  readonly value: string;
  readonly ttlMs: number;
  readonly atMs: number;
}

type Answer = "grant" | "deny" | "missing";

/** One store of locks. */
export class FakeNode implements LockNode {
  readonly name: string;
  readyAtMs: number | undefined = undefined;
  /** What it does, unless {@linkcode modes} says otherwise. */
  mode: Mode = "answer";
  /** What it does with one kind of question. */
  readonly modes: Partial<Record<Operation, Mode>> = {};
  /** How long a question travels, in milliseconds. */
  requestMs = 0;
  /** How long an answer travels, in milliseconds. */
  replyMs = 0;
  /** What it was asked, in order. */
  readonly calls: Call[] = [];
  /** How often it was closed. */
  closed = 0;
  readonly #clock: FakeClock;
  readonly #keys = new Map<string, { value: string; untilMs: number; type: string | undefined }>();
  readonly #hung: (() => void)[] = [];

  constructor(name: string, clock: FakeClock) {
    this.name = name;
    this.#clock = clock;
  }

  /** The keys that live now, with what is left to them. */
  get keys(): Record<string, KeyState> {
    const alive = [...this.#keys.keys()].map((key) => [key, this.#state(key)] as const);
    return Object.fromEntries(alive.filter(([, state]) => state !== undefined)) as Record<
      string,
      KeyState
    >;
  }

  /** Who holds `key`, if anybody does. */
  holder(key: string): string | undefined {
    return this.#state(key)?.value;
  }

  /** Has somebody else hold `key`, or have something of another `type` there. */
  set(key: string, value: string, ttlMs = Infinity, type?: string): void {
    this.#keys.set(key, { value, untilMs: this.#clock.monotonicMs() + ttlMs, type });
  }

  /** Loses all keys. */
  forget(): void {
    this.#keys.clear();
  }

  /** Does and answers now what it was asked while it hung. */
  resume(): void {
    this.mode = "answer";
    for (const operation of Object.keys(this.modes)) delete this.modes[operation as Operation];
    for (const act of this.#hung.splice(0)) act();
  }

  /** The calls of one kind. */
  asked(operation: Operation): Call[] {
    return this.calls.filter((call) => call.operation === operation);
  }

  acquire(request: LockRequest, nodeIndex: number): void {
    request.maybeSet |= 1 << nodeIndex;
    this.#take("acquire", request, nodeIndex, ({ keys, value, ttlMs }) => {
      if (keys.some((key) => this.#state(key))) {
        request.maybeSet &= ~(1 << nodeIndex);
        return "deny";
      }
      for (const key of keys) this.set(key, value, ttlMs);
      return "grant";
    });
  }

  extend(request: LockRequest, nodeIndex: number): void {
    this.#take("extend", request, nodeIndex, ({ keys, value, ttlMs }) => {
      const states = keys.map((key) => this.#state(key));
      if (states.some((state) => state && state.value !== value)) return "deny";
      keys.forEach((key, index) => {
        if ((states[index]?.remainingMs ?? Infinity) < ttlMs) this.set(key, value, ttlMs);
      });
      return states.every((state) => state) ? "grant" : "missing";
    });
  }

  release(request: LockRequest, nodeIndex: number): void {
    this.#take("release", request, nodeIndex, ({ keys, value }) => {
      const ours = keys.filter((key) => this.holder(key) === value);
      for (const key of ours) this.#keys.delete(key);
      return ours.length === keys.length ? "grant" : "deny";
    });
  }

  inspect(key: string): Promise<KeyState | undefined> {
    this.#log("inspect", [key], "", 0);
    const mode = this.modes.inspect ?? this.mode;
    if (mode === "throw") throw new Error(`${this.name} threw`);
    if (mode === "fail") return Promise.reject(new Error(`${this.name} is down`));
    return new Promise((resolve) => {
      if (mode === "hang") this.#hung.push(() => resolve(this.#state(key)));
      else if (mode === "answer") {
        this.#later(this.requestMs + this.replyMs, () => resolve(this.#state(key)));
      }
    });
  }

  close(): Promise<void> {
    this.closed++;
    return Promise.resolve();
  }

  #take(
    operation: Operation,
    request: LockRequest,
    nodeIndex: number,
    act: (request: LockRequest) => Answer,
  ): void {
    this.#log(operation, request.keys, request.value, request.ttlMs);
    if (this.closed > 0) return request.fail(nodeIndex, new Error(`${this.name} is closed`));
    const mode = this.modes[operation] ?? this.mode;
    if (mode === "throw") throw new Error(`${this.name} threw`);
    const done = () => {
      if (mode === "fail") return request.fail(nodeIndex, new Error(`${this.name} is down`));
      const answer = act(request);
      if (mode === "lose-reply") return;
      this.#later(this.replyMs, () => request[answer]!(nodeIndex));
    };
    // What it is asked takes effect in order, so nothing overtakes what it keeps.
    if (mode === "hang" || this.#hung.length > 0) this.#hung.push(done);
    else this.#later(this.requestMs, done);
  }

  #log(operation: Operation, keys: readonly string[], value: string, ttlMs: number): void {
    this.calls.push({ operation, keys, value, ttlMs, atMs: this.#clock.monotonicMs() });
  }

  #later(ms: number, act: () => void): void {
    if (ms > 0) this.#clock.setTimer(act, ms);
    else queueMicrotask(act);
  }

  #state(key: string): KeyState | undefined {
    const entry = this.#keys.get(key);
    const remainingMs = (entry?.untilMs ?? 0) - this.#clock.monotonicMs();
    if (!entry || remainingMs <= 0) return undefined;
    const { value, type } = entry;
    return type === undefined ? { value, remainingMs } : { value, remainingMs, type };
  }
}

/** A lock client over nodes in memory, on faked time. */
export class FakeCluster {
  readonly clock = new FakeClock();
  readonly wheel: TimerWheel;
  readonly nodes: FakeNode[];
  readonly redlock: Redlock;
  /** What the client told. */
  readonly events: RedlockEvent[] = [];
  /** The values that it drew. */
  readonly values: string[] = [];
  /** What it draws for jitter. */
  fraction = 0.5;

  constructor(nodeCount = 3, options: RedlockOptions = {}) {
    this.wheel = this.#makeWheel();
    this.nodes = Array.from({ length: nodeCount }, (_, index) => {
      return new FakeNode(`node${index}`, this.clock);
    });
    const onEvent = (event: RedlockEvent) => void this.events.push(event);
    this.redlock = redlockOn(this.wheel, this.nodes, { onEvent, ...options });
  }

  /** Who holds `key` on each node. */
  holders(key: string): (string | undefined)[] {
    return this.nodes.map((node) => node.holder(key));
  }

  /** Another client of the same nodes. */
  contender(options: RedlockOptions = {}): Redlock {
    return redlockOn(this.#makeWheel(), this.nodes, options);
  }

  /** Has the nodes with these numbers do something else. */
  set(mode: Mode, ...numbers: number[]): void {
    for (const number of numbers) this.nodes[number].mode = mode;
  }

  /** The types of the events so far. */
  get eventTypes(): string[] {
    return this.events.map(({ type }) => type);
  }

  #makeWheel(): TimerWheel {
    const value = () => {
      const drawn = (this.values.length + 1).toString(16).padStart(40, "0");
      this.values.push(drawn);
      return drawn;
    };
    return new TimerWheel(this.clock, { value, fraction: () => this.fraction });
  }
}

/** Counts the listeners that `signal` has from here on. */
export function countListeners(signal: AbortSignal): () => number {
  let count = 0;
  const { addEventListener, removeEventListener } = signal;
  Object.assign(signal, {
    addEventListener(...args: Parameters<typeof addEventListener>) {
      count++;
      addEventListener.apply(signal, args);
    },
    removeEventListener(...args: Parameters<typeof removeEventListener>) {
      count--;
      removeEventListener.apply(signal, args);
    },
  });
  return () => count;
}
