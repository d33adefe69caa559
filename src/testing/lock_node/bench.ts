/**
 * One node on the bench: asks it, and waits for what it answers.
 *
 * @module
 */
import { messageOf, toError } from "../../to_error.ts";
import type { Grant, KeyState, LockNode, LockRequest } from "../../quorum/lock_node.ts";
import { systemClock } from "../../time/clock.ts";
import { systemRandom } from "../../time/random.ts";
import { pauseMs, within } from "../../time/within.ts";

/** How long a node may take to answer, to recover, or to close, in milliseconds. */
const WITHIN_MS = 60_000;
/** The pause between two looks at a condition, in milliseconds. */
const POLL_MS = 10;
/** A TTL that outlives every case, in milliseconds. */
export const LONG_MS = 120_000;

/** A node to test, and what stands behind it. */
export interface NodeToTest {
  /** The node. It is closed at the end of a case. */
  readonly node: LockNode;
  /** Makes the store stop answering; it may execute later what it receives meanwhile. */
  hang?: (() => unknown) | undefined;
  /** Ends {@linkcode hang}. */
  resume?: (() => unknown) | undefined;
  /** Makes another node on the same store, such as another process would have. */
  peer?: (() => NodeToTest | Promise<NodeToTest>) | undefined;
  /** Closes what was opened for the node; called after the node is closed. */
  close?: (() => unknown) | undefined;
}

/** What one request asks for; the rest is made up. */
export type Wish = Partial<LockRequest>;

/** A lock that was acquired. */
export type HeldLock = Pick<LockRequest, "keys" | "value" | "mode">;

/** What a node answered. */
export interface TestAnswer {
  readonly outcome: "granted" | "denied" | "missing" | "failed";
  /** With a grant: the counter. */
  readonly count?: number;
  /** With a failure: the reason. */
  readonly error?: Error;
}

/** A request that was made. */
export interface TestRequest extends LockRequest {
  /** Never rejects. */
  readonly answer: Promise<TestAnswer>;
}

/** A method of a node that answers a request. */
type Method = "acquire" | "adopt" | "extend" | "release" | "raiseCounters";

/** See the module. */
export class Bench {
  /** The node. */
  readonly node: LockNode;
  readonly #tested: NodeToTest;
  #peer: Bench | undefined;
  #closed = false;
  #hung = false;

  constructor(tested: NodeToTest) {
    this.node = tested.node;
    this.#tested = tested;
  }

  /** A key that nobody has used. */
  key(): string {
    return `test:${systemRandom.value()}`;
  }

  /** Several of them. */
  keys(count: number): string[] {
    return Array.from({ length: count }, () => this.key());
  }

  /** A value that nobody has used. */
  value(): string {
    return systemRandom.value();
  }

  /** Asks the node, and returns the request, which has perhaps not been answered yet. */
  ask(method: Method, wish: Wish): TestRequest {
    const request = { keys: [this.key()], value: this.value(), ttlMs: LONG_MS, ...wish };
    check(this.node[method], `it has no ${method}()`);
    const grant = new Promise<Grant>((resolve) => resolve(this.node[method]!(request)));
    return { ...request, answer: grant.then(answerOf, failure) };
  }

  /** Asks the node, and returns its answer. */
  answer(method: Method, wish: Wish): Promise<TestAnswer> {
    return this.answerTo(this.ask(method, wish));
  }

  /** Returns the answer to a request. */
  answerTo(request: TestRequest): Promise<TestAnswer> {
    return soon(request.answer, "it did not answer a request");
  }

  /** Asks the node, and checks how it answers. */
  async expect(outcome: TestAnswer["outcome"], method: Method, wish: Wish): Promise<TestAnswer> {
    const answer = await this.answer(method, wish);
    checkOutcome(method, answer, outcome);
    return answer;
  }

  /** Returns what the node has under a key. */
  inspect(key: string): Promise<KeyState | undefined> {
    return soon(this.node.inspect(key), "inspect() did not settle");
  }

  /** Acquires a lock, on a new key if the wish names none. */
  async held(wish: Wish = {}): Promise<HeldLock> {
    const { keys = [this.key()], value = this.value(), mode } = wish;
    const lock = { keys, value, ...mode && { mode } };
    await this.expect("granted", "acquire", { ...wish, ...lock });
    return lock;
  }

  /** Waits for the answers to requests, and returns those that were granted. */
  async winners(requests: readonly TestRequest[]): Promise<TestRequest[]> {
    const answers = await Promise.all(requests.map((request) => this.answerTo(request)));
    return requests.filter((_, index) => answers[index].outcome === "granted");
  }

  /** Returns how long a key lives, in milliseconds; 0 if it is missing. */
  async lifeMs(key: string): Promise<number> {
    return (await this.inspect(key))?.remainingMs ?? 0;
  }

  /** Checks what keys hold; `undefined` if nothing. */
  async expectValue(keys: readonly string[], value: string | undefined): Promise<void> {
    for (const key of keys) {
      check(
        (await this.inspect(key))?.value === value,
        value === undefined ? "it has a key that it should not have" : "it does not have the key",
      );
    }
  }

  /** Repeats a check until it passes. */
  async eventually(what: string, isTrue: () => Promise<boolean>): Promise<void> {
    const untilMs = systemClock.monotonicMs() + WITHIN_MS;
    while (!await isTrue().catch(() => false)) {
      check(systemClock.monotonicMs() < untilMs, what);
      await pauseMs(POLL_MS);
    }
  }

  /** Waits until the node grants again. */
  recovered(): Promise<void> {
    return this.eventually("it does not recover", async () => {
      return (await this.answer("acquire", {})).outcome === "granted";
    });
  }

  /** Makes the store hang. */
  async hang(): Promise<void> {
    const { hang, resume } = this.#tested;
    check(hang && resume, "the factory returned no hang() and resume()");
    this.#hung = true;
    await hang.call(this.#tested);
  }

  /** Ends that. */
  async resume(): Promise<void> {
    this.#hung = false;
    await this.#tested.resume!();
  }

  /** Another node on the same store. */
  async peer(): Promise<Bench> {
    const { peer } = this.#tested;
    check(peer, "the factory returned no peer()");
    return this.#peer = new Bench(await peer.call(this.#tested));
  }

  /** Closes the node. */
  async closeNode(): Promise<void> {
    this.#closed = true;
    await soon(Promise.resolve(this.node.close?.()), "close() did not settle");
  }

  /** Ends a hang, and closes everything. */
  async end(): Promise<void> {
    try {
      if (this.#hung) await this.resume();
      await this.#peer?.end();
      if (!this.#closed) await this.closeNode();
    } finally {
      await this.#tested.close?.();
    }
  }
}

function answerOf(grant: Grant): TestAnswer {
  if (typeof grant !== "number") return { outcome: grant };
  return { outcome: "granted", count: grant };
}

function failure(thrown: unknown): TestAnswer {
  return { outcome: "failed", error: toError(thrown) };
}

/** Throws if a condition is not met. */
export function check(condition: unknown, what: string): asserts condition {
  if (!condition) throw new Error(`The node breaks its contract: ${what}`);
}

/** Throws if the node gave another answer. */
export function checkOutcome(
  what: string,
  { outcome, error }: TestAnswer,
  expected: TestAnswer["outcome"],
): void {
  const why = error ? `: ${messageOf(error)}` : "";
  check(outcome === expected, `its answer to ${what}() was '${outcome}', not '${expected}'${why}`);
}

/** Waits for a promise in bounded time. */
export async function soon<T>(promise: Promise<T>, what: string): Promise<T> {
  const settled = await within(WITHIN_MS, promise.then((value) => ({ value })));
  check(settled, `${what} within ${WITHIN_MS} ms`);
  return settled.value;
}
