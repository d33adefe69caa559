/**
 * Callers that each take one of several slots on a few nodes, as a model: every order in which
 * requests and releases may reach the nodes.
 *
 * Two rules are compared. By the library's, an attempt is for one slot, and a node grants it if it
 * has granted that slot to nobody. By the other, a node counts: it grants as long as fewer hold a
 * slot than there are.
 *
 * @module
 */
import type { Model, Step } from "./explorer.ts";
import { givenUp, grantedCount, isQuiet, type Request } from "./requests.ts";

/** What is explored. */
export interface PoolRules {
  readonly nodes: number;
  readonly callers: number;
  readonly slots: number;
  /** How many attempts each caller makes at most. */
  readonly attempts: number;
  /** What a node's grant is for: one slot, or a place among all. */
  readonly grants: "a slot" | "a place";
}

/**
 * One caller. It begins another attempt only when nothing of the last one is on its way: an attempt
 * that begins earlier is as one of another caller.
 */
interface Caller {
  readonly phase: "idle" | "asks" | "holds" | "ends";
  /** The slot of its last attempt. */
  readonly slot: number;
  readonly attemptsLeft: number;
  /** Node by node. */
  readonly requests: readonly Request[];
}

/** All callers; what a node holds is what it has granted and was not released. */
export type PoolState = readonly Caller[];

/** See the module. */
export class PoolModel implements Model<PoolState, string> {
  readonly #rules: PoolRules;
  readonly #quorum: number;

  constructor(rules: PoolRules) {
    this.#rules = rules;
    this.#quorum = Math.floor(rules.nodes / 2) + 1;
  }

  *initial(): Iterable<PoolState> {
    const { nodes, callers, attempts } = this.#rules;
    const requests = Array<Request>(nodes).fill("none");
    yield Array.from(
      { length: callers },
      (): Caller => ({ phase: "idle", slot: -1, attemptsLeft: attempts, requests }),
    );
  }

  *steps(state: PoolState): Iterable<Step<PoolState, string>> {
    for (const [index, caller] of state.entries()) {
      yield* this.#callerSteps(state, index, caller);
      for (const [node, request] of caller.requests.entries()) {
        const next = this.#arrives(state, caller, node, request);
        if (!next) continue;
        const requests = caller.requests.with(node, next);
        const text = `caller ${index + 1}, node ${node + 1}: ${request} → ${next}`;
        yield this.#step(state, index, { ...caller, requests }, text);
      }
    }
  }

  key(state: PoolState): string {
    return state.map(({ phase, slot, attemptsLeft, requests }) =>
      `${phase}${slot}${attemptsLeft}${requests.map((request) => request[0]).join("")}`
    ).sort().join("|"); // callers are all alike
  }

  describeState(): string {
    const { nodes, callers, slots, grants } = this.#rules;
    return `${nodes} nodes, ${callers} callers of ${slots} slots; a node grants ${grants}`;
  }

  describeStep({ action }: Step<PoolState, string>): string {
    return action;
  }

  /**
   * What a caller does: begins an attempt, has its lock, or gives the attempt or the lock up at any
   * time.
   */
  *#callerSteps(
    state: PoolState,
    index: number,
    caller: Caller,
  ): Iterable<Step<PoolState, string>> {
    const { phase, slot, attemptsLeft, requests } = caller;
    const name = `caller ${index + 1}`;
    if (phase === "idle" || phase === "ends") {
      if (attemptsLeft === 0 || !isQuiet(requests)) return;
      for (let asked = 0; asked < this.#rules.slots; asked++) {
        const all = requests.map((): Request => "asked");
        const next: Caller = {
          phase: "asks",
          slot: asked,
          attemptsLeft: attemptsLeft - 1,
          requests: all,
        };
        yield this.#step(state, index, next, `${name} asks for slot ${asked + 1}`);
      }
      return;
    }
    if (phase === "asks" && grantedCount(requests) >= this.#quorum) {
      const next: Caller = { ...caller, phase: "holds" };
      yield this.#step(state, index, next, `${name} has slot ${slot + 1}`);
    }
    const text = `${name} ${phase === "holds" ? "releases" : "gives up"}`;
    yield this.#step(state, index, { ...caller, phase: "ends", requests: givenUp(requests) }, text);
  }

  /** What becomes of a request when it reaches its node; `undefined` if nothing is on its way. */
  #arrives(
    state: PoolState,
    caller: Caller,
    node: number,
    request: Request,
  ): Request | undefined {
    if (request === "asked") return this.#isFree(state, caller.slot, node) ? "granted" : "denied";
    // The request and the release behind it come in their order; what is granted in between is gone
    // again.
    return request === "undone before it came" || request === "released" ? "none" : undefined;
  }

  /**
   * Whether a node grants a slot, or a place. A key that is to be released stands until the release
   * comes.
   */
  #isFree(state: PoolState, slot: number, node: number): boolean {
    const { grants, slots } = this.#rules;
    const holders = state.filter(({ requests }) =>
      requests[node] === "granted" || requests[node] === "released"
    );
    if (grants === "a place") return holders.length < slots;
    return !holders.some((holder) => holder.slot === slot);
  }

  #step(
    state: PoolState,
    index: number,
    caller: Caller,
    action: string,
  ): Step<PoolState, string> {
    const next = state.with(index, caller);
    return { action, state: next, violation: this.#violation(next) };
  }

  #violation(state: PoolState): string | undefined {
    const { slots, grants } = this.#rules;
    const holders = state.filter(({ phase }) => phase === "holds");
    if (holders.length > slots) return `${holders.length} callers hold ${slots} slots`;
    const held = new Set(holders.map(({ slot }) => slot));
    if (grants === "a slot" && held.size < holders.length) return "two callers hold one slot";
    return undefined;
  }
}
