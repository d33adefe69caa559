/**
 * Readers and writers on a few nodes, as a model: every order in which requests and releases may
 * reach the nodes. A release whose answer is lost is sent again.
 *
 * Three rules are compared. By the library's, a node keeps who reads: it grants a writer if it has
 * granted nobody, and a reader if it has granted no writer. By the second, it counts readers, so
 * that each release lowers the count. By the third, the release of a reader frees the node.
 *
 * @module
 */
import type { Model, Step } from "./explorer.ts";
import { givenUp, grantedCount, isQuiet, type Request } from "./requests.ts";

/** What is explored. */
export interface ReaderRules {
  readonly nodes: number;
  readonly readers: number;
  readonly writers: number;
  /** How many attempts each caller makes at most. */
  readonly attempts: number;
  /** What a node keeps of readers. */
  readonly keeps: "who reads" | "how many read" | "that somebody reads";
}

/** One caller. It begins another attempt only when nothing of the last one is on its way. */
interface Caller {
  readonly reads: boolean;
  readonly phase: "idle" | "asks" | "holds" | "ends";
  readonly attemptsLeft: number;
  /** Node by node. */
  readonly requests: readonly Request[];
}

/** All callers, and what each node keeps: who writes, and how it knows of readers. */
export interface ReaderState {
  readonly callers: readonly Caller[];
  /** The index of the caller that writes on each node, or -1. */
  readonly writers: readonly number[];
  /** The readers of each node: one bit each if it keeps who reads, else a count. */
  readonly readers: readonly number[];
}

/** See the module. */
export class ReaderModel implements Model<ReaderState, string> {
  readonly #rules: ReaderRules;
  readonly #quorum: number;

  constructor(rules: ReaderRules) {
    this.#rules = rules;
    this.#quorum = Math.floor(rules.nodes / 2) + 1;
  }

  *initial(): Iterable<ReaderState> {
    const { nodes, readers, writers, attempts } = this.#rules;
    const requests = Array<Request>(nodes).fill("none");
    yield {
      callers: Array.from({ length: readers + writers }, (_, index): Caller => {
        return { reads: index < readers, phase: "idle", attemptsLeft: attempts, requests };
      }),
      writers: Array(nodes).fill(-1),
      readers: Array(nodes).fill(0),
    };
  }

  *steps(state: ReaderState): Iterable<Step<ReaderState, string>> {
    for (const [index, caller] of state.callers.entries()) {
      yield* this.#callerSteps(state, index, caller);
      for (const [node, request] of caller.requests.entries()) {
        const next = this.#arrives(state, index, node, request);
        if (!next) continue;
        const text = `${nameOf(caller, index)}, node ${node + 1}: ${request}`;
        yield this.#step(next, text);
        if (request !== "released") continue;
        // Its answer is lost, so it is sent again.
        yield this.#step(this.#release(state, index, node), `${text}, and the answer is lost`);
      }
    }
  }

  key({ callers, writers, readers }: ReaderState): string {
    const phases = callers.map(({ phase, attemptsLeft }) => `${phase[0]}${attemptsLeft}`);
    const nodes = writers.map((writer, node) =>
      `${callers.map(({ requests }) => requests[node][0]).join("")}${writer} ${readers[node]}`
    );
    return `${phases.join("|")} ${nodes.sort().join("|")}`; // nodes are all alike
  }

  describeState(): string {
    const { nodes, readers, writers, keeps } = this.#rules;
    return `${nodes} nodes, ${readers} readers, ${writers} writers; a node keeps ${keeps}`;
  }

  describeStep({ action }: Step<ReaderState, string>): string {
    return action;
  }

  /**
   * What a caller does: begins an attempt, has its lock, or gives the attempt or the lock up at any
   * time.
   */
  *#callerSteps(
    state: ReaderState,
    index: number,
    caller: Caller,
  ): Iterable<Step<ReaderState, string>> {
    const { phase, attemptsLeft, requests } = caller;
    const name = nameOf(caller, index);
    if (phase === "idle" || phase === "ends") {
      if (attemptsLeft === 0 || !isQuiet(requests)) return;
      const asks: Caller = {
        ...caller,
        phase: "asks",
        attemptsLeft: attemptsLeft - 1,
        requests: requests.map(() => "asked"),
      };
      return yield this.#step(withCaller(state, index, asks), `${name} asks`);
    }
    if (phase === "asks" && grantedCount(requests) >= this.#quorum) {
      yield this.#step(withCaller(state, index, { ...caller, phase: "holds" }), `${name} holds`);
    }
    const ends: Caller = { ...caller, phase: "ends", requests: givenUp(requests) };
    const text = `${name} ${phase === "holds" ? "releases" : "gives up"}`;
    yield this.#step(withCaller(state, index, ends), text);
  }

  /** What becomes of a request when it reaches its node; `undefined` if nothing is on its way. */
  #arrives(
    state: ReaderState,
    index: number,
    node: number,
    request: Request,
  ): ReaderState | undefined {
    const settled = (from: ReaderState, outcome: Request) => {
      const caller = from.callers[index];
      const requests = caller.requests.with(node, outcome);
      return withCaller(from, index, { ...caller, requests });
    };
    if (request === "asked") {
      const granted = this.#grant(state, index, node);
      return settled(granted ?? state, granted ? "granted" : "denied");
    }
    if (request === "released") return settled(this.#release(state, index, node), "none");
    if (request !== "undone before it came") return undefined;
    // The request and the release behind it come in their order.
    const granted = this.#grant(state, index, node);
    return settled(this.#release(granted ?? state, index, node), "none");
  }

  /** The state after a grant; `undefined` if the node denies. */
  #grant(state: ReaderState, index: number, node: number): ReaderState | undefined {
    const { reads } = state.callers[index];
    if (state.writers[node] !== -1) return undefined;
    const found = state.readers[node];
    if (!reads) {
      return found === 0 ? { ...state, writers: state.writers.with(node, index) } : undefined;
    }
    const readers = this.#rules.keeps === "who reads" ? found | 1 << index : found + 1;
    return { ...state, readers: state.readers.with(node, readers) };
  }

  /** The state after a release, which comes also where nothing was granted. */
  #release(state: ReaderState, index: number, node: number): ReaderState {
    if (state.writers[node] === index) return { ...state, writers: state.writers.with(node, -1) };
    if (!state.callers[index].reads) return state;
    const found = state.readers[node];
    const { keeps } = this.#rules;
    const left = keeps === "who reads"
      ? found & ~(1 << index)
      : keeps === "how many read"
      ? Math.max(found - 1, 0)
      : 0;
    return { ...state, readers: state.readers.with(node, left) };
  }

  #step(state: ReaderState, action: string): Step<ReaderState, string> {
    return { action, state, violation: violationOf(state) };
  }
}

function withCaller(state: ReaderState, index: number, caller: Caller): ReaderState {
  return { ...state, callers: state.callers.with(index, caller) };
}

function nameOf({ reads }: Caller, index: number): string {
  return `${reads ? "reader" : "writer"} ${index + 1}`;
}

function violationOf({ callers }: ReaderState): string | undefined {
  const holders = callers.filter(({ phase }) => phase === "holds");
  const writers = holders.filter(({ reads }) => !reads).length;
  if (writers > 1) return "two writers hold the lock";
  if (writers === 1 && holders.length > 1) return "a reader and a writer hold the lock";
  return undefined;
}
