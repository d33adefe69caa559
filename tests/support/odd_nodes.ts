/**
 * Nodes of one's own that keep to no contract: they answer never, twice, from inside the call, or throw.
 *
 * @module
 */
import type { KeyState, LockNode, LockRequest } from "../../src/quorum/lock_node.ts";
import type { NodeDiagnosis } from "../../src/quorum/node_diagnosis.ts";
import type { ReleaseListener } from "../../src/quorum/queue_ticket.ts";
import type { FakeClock } from "./fake_clock.ts";

/** What a node answers to a request. */
export type OddAnswer = "grant" | "deny" | "fail" | "quarantine" | "enqueue";

/** How it answers one question. */
export interface OddBehaviour {
  /** When: from inside the call, later, never; or not at all, as it throws or rejects. */
  readonly when: "inside" | "later" | "never" | "throw" | "reject";
  readonly answer: OddAnswer;
  readonly delayMs: number;
  /** How often. */
  readonly times: number;
}

/** How one node behaves. */
export interface OddPlan {
  readonly acquire: OddBehaviour;
  readonly extend: OddBehaviour;
  readonly release: OddBehaviour;
  readonly inspect: OddBehaviour;
  readonly diagnose: OddBehaviour | undefined;
  readonly close: OddBehaviour | undefined;
  readonly subscribe: OddBehaviour | undefined;
  /** Since when it can be asked, from the beginning on; `null` throws. */
  readonly readyMs: number | null | undefined;
}

/** A node that does as it was planned. */
export class OddNode implements LockNode {
  readonly name: string;
  declare diagnose?: (timeoutMs: number) => Promise<NodeDiagnosis>;
  declare close?: () => Promise<void>;
  declare subscribe?: (listener: ReleaseListener, nodeIndex: number) => void;
  declare unsubscribe?: () => void;
  declare leaveQueue?: () => void;
  readonly #clock: FakeClock;
  readonly #plan: OddPlan;
  readonly #startMs: number;

  constructor(name: string, clock: FakeClock, plan: OddPlan) {
    this.name = name;
    this.#clock = clock;
    this.#plan = plan;
    this.#startMs = clock.monotonicMs();
    const { diagnose, close, subscribe } = plan;
    if (diagnose) this.diagnose = () => this.#promise(diagnose, { roundTripMs: 1 });
    if (close) this.close = () => this.#promise(close, undefined);
    if (!subscribe) return;
    this.subscribe = (listener, nodeIndex) => {
      this.#behave(subscribe, () => listener.onSubscribed(nodeIndex));
    };
    this.unsubscribe = () => this.#behave(subscribe, () => {});
    this.leaveQueue = () => this.#behave(subscribe, () => {});
  }

  get readyAtMs(): number | undefined {
    const { readyMs } = this.#plan;
    if (readyMs === null) throw new Error(`${this.name} threw`);
    if (readyMs === undefined) return undefined;
    const readyAtMs = this.#startMs + readyMs;
    return readyAtMs <= this.#clock.monotonicMs() ? readyAtMs : Infinity;
  }

  acquire(request: LockRequest, nodeIndex: number): void {
    request.maybeSet |= 1 << nodeIndex;
    this.#answer(this.#plan.acquire, request, nodeIndex);
  }

  extend(request: LockRequest, nodeIndex: number): void {
    this.#answer(this.#plan.extend, request, nodeIndex);
  }

  release(request: LockRequest, nodeIndex: number): void {
    this.#answer(this.#plan.release, request, nodeIndex);
  }

  inspect(): Promise<KeyState | undefined> {
    const { inspect } = this.#plan;
    const state = { value: inspect.answer, remainingMs: 1_000 };
    return this.#promise(inspect, inspect.answer === "grant" ? undefined : state);
  }

  #answer(behaviour: OddBehaviour, request: LockRequest, nodeIndex: number): void {
    this.#behave(behaviour, () => {
      switch (behaviour.answer) {
        case "grant":
          return request.grant(nodeIndex);
        case "deny":
          return request.deny(nodeIndex);
        case "fail":
          return request.fail(nodeIndex, new Error(`${this.name} failed`));
        case "quarantine":
          return request.quarantine?.(nodeIndex);
        case "enqueue":
          return request.enqueued?.(nodeIndex, { remainingMs: 50, ahead: 1, length: 2 });
      }
    });
  }

  #behave({ when, delayMs, times }: OddBehaviour, act: () => void): void {
    if (when === "throw" || when === "reject") throw new Error(`${this.name} threw`);
    for (let time = 0; time < times; time++) {
      if (when === "inside") act();
      if (when === "later") this.#clock.setTimer(act, delayMs * (time + 1));
    }
  }

  #promise<T>(behaviour: OddBehaviour, value: T): Promise<T> {
    if (behaviour.when === "reject") return Promise.reject(new Error(`${this.name} rejected`));
    if (behaviour.when === "inside") return Promise.resolve(value);
    return new Promise((resolve) => this.#behave(behaviour, () => resolve(value)));
  }
}
