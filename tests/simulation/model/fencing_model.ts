/**
 * The fencing protocol as a model: a few attempts at one lock on a few nodes, where whatever may
 * happen next happens in any order, and at any time.
 *
 * What is sent waits until it is delivered, for ever if need be, so nothing has to be lost. Answers
 * are not delivered at all: an attempt acts on any of those that were given, and the others are
 * late. Nodes answer a refusal by nothing, as an attempt would do nothing about it. To run out, to
 * give up and to release are one: the attempt is over, and its keys go away one by one.
 *
 * @module
 */
import { agreeOnToken } from "../../../src/fencing/token.ts";
import type { Model, Step } from "./explorer.ts";
import {
  answersOf,
  type Link,
  NOBODY,
  type Node,
  orders,
  type State,
  unanswered,
  withAttempt,
  withLink,
  withNode,
  writeState,
} from "./fencing_state.ts";

/** How a token comes about. */
export interface Rules {
  /**
   * Where a second round raises counters to the highest answer; `nowhere`: there is no such round.
   */
  readonly raises: "nowhere" | "anywhere" | "where held";
  /**
   * How a node answers to that: by what it was asked to raise its counter to, or by the counter as
   * it is then.
   */
  readonly answers: "as asked" | "the counter";
  /** Whether the answers to the first round count, or those to the second alone. */
  readonly firstRoundCounts: boolean;
}

/** What may happen, and what must not. */
export interface World {
  /** How many nodes there are. */
  readonly nodes: number;
  /** How many attempts are made. */
  readonly attempts: number;
  /** The counters that the nodes may begin with: see {@linkcode risingCounters}. */
  readonly counters: Iterable<readonly number[]>;
  /**
   * Which keys stay until their attempt is over: all of them; those on a quorum of nodes whose
   * answers count, or else nothing is handed out; none.
   */
  readonly keysStay: "all" | "where counted" | "none";
  /** How many times a node forgets its data. */
  readonly forgets: number;
  /**
   * How many times a counter that counts leaps ahead, as one does that is set to the clock because
   * it is a day old.
   */
  readonly leaps: number;
  /**
   * Whether a node that lost the key of a lock that was handed out may be filled in: the key is set
   * again, or also its counter raised to the token.
   */
  readonly fills: boolean;
  /** Whether a node that forgot a key is not counted until the key's attempt is over. */
  readonly guarded: boolean;
  /**
   * Whether a node that forgot resumes with a counter that is no lower than it was, or begins at 0.
   */
  readonly resumes: boolean;
  /**
   * What a token must exceed: any handed out before it, or before its first request was granted; or
   * what else holds.
   */
  readonly demanded: "order of hand-outs" | "order of beginnings" | "exclusion";
}

/** One thing that happens: to which attempt, on which node, and with which counter or token. */
export interface Action {
  readonly kind: "grant" | "refuse" | "raise" | "hand out" | "end" | "lose" | "forget" | "fill";
  readonly attempt: number;
  readonly place: number;
  readonly value: number;
}

type Steps = Iterable<Step<State, Action>>;

/**
 * Counters to begin with, from 0 on, each ahead of the one before by a gap up to the widest. It
 * does not matter which node has which, nor what is common to all.
 */
export function risingCounters(nodes: number, gapMax: number): readonly (readonly number[])[] {
  if (nodes === 1) return [[0]];
  return risingCounters(nodes - 1, gapMax).flatMap((lower) =>
    Array.from({ length: gapMax + 1 }, (_, gap) => [...lower, lower[lower.length - 1] + gap])
  );
}

/**
 * Stands for all counters to begin with: wider gaps are all alike, as the grants there may be can't
 * bridge them.
 */
export function anyCounters(nodes: number, attempts: number): readonly (readonly number[])[] {
  return risingCounters(nodes, nodes * attempts + 1);
}

/** See the module. */
export class FencingModel implements Model<State, Action> {
  readonly #rules: Rules;
  readonly #world: World;
  readonly #quorum: number;
  readonly #orders: readonly (readonly number[])[];

  constructor(rules: Rules, world: World) {
    this.#rules = rules;
    this.#world = world;
    this.#quorum = Math.floor(world.nodes / 2) + 1;
    this.#orders = orders(world.attempts);
  }

  *initial(): Iterable<State> {
    const { attempts, counters, forgets, leaps } = this.#world;
    const link: Link = { asked: false, granted: 0, raised: [], filled: false };
    const links = Array.from({ length: attempts }, () => link);
    for (const start of counters) {
      yield {
        nodes: start.map((counter) => ({ holder: NOBODY, counter, forgot: 0, links })),
        attempts: links.map(() => (
          { phase: "asking", late: [], raisedTo: 0, before: 0, token: 0 }
        )),
        highest: 0,
        forgets,
        leaps,
      };
    }
  }

  *steps(state: State): Steps {
    if (this.#isDecided(state)) return;
    for (let attempt = 0; attempt < state.attempts.length; attempt++) {
      const { phase } = state.attempts[attempt];
      if (phase === "asking") yield* this.#handOuts(state, attempt);
      if (phase !== "over") {
        yield makeStep("end", attempt, NOBODY, 0, this.#finish(state, attempt, "over"));
      }
      const targets = this.#targets(state, attempt);
      for (let place = 0; place < state.nodes.length; place++) {
        if (!state.nodes[place].links[attempt].asked) yield* this.#requests(state, attempt, place);
        else {
          yield* this.#raises(state, attempt, place, targets);
          yield* this.#fills(state, attempt, place);
        }
      }
    }
    for (let place = 0; place < state.nodes.length; place++) {
      yield* this.#losses(state, place);
      if (state.forgets > 0) yield* this.#forgets(state, place);
    }
  }

  key(state: State): string {
    return writeState(state, this.#orders);
  }

  describeState({ nodes }: State): string {
    return `the counters are ${nodes.map(({ counter }) => counter).join(", ")}`;
  }

  describeStep({ action: { kind, attempt, place, value }, state }: Step<State, Action>): string {
    const name = "ABCDE"[attempt];
    const node = `node ${place + 1}`;
    if (kind === "grant") return `${node} grants ${name} the lock, with counter ${value}`;
    if (kind === "refuse") return `${node} refuses ${name} the lock`;
    if (kind === "hand out") return `${name} is handed out with token ${value}`;
    if (kind === "end") return `${name} is over`;
    if (kind === "fill") return `${node} is filled in by ${name}, and its counter is ${value}`;
    if (kind === "lose") return `the key of ${name} is gone from ${node}`;
    if (kind === "forget") return `${node} forgets its data, and resumes with counter ${value}`;
    return `${name} raises ${node} to ${value}, where the counter is then ${
      state.nodes[place].counter
    }`;
  }

  /** Whether nothing can be handed out any more that could be wrong. */
  #isDecided({ nodes, attempts, highest }: State): boolean {
    const hopeful = attempts.filter(({ phase }, attempt) => {
      if (phase !== "asking") return false;
      const usable = nodes.filter((node) =>
        !node.links[attempt].asked || this.#stays(node, attempt)
      );
      return usable.length >= this.#quorum;
    });
    return hopeful.length < (highest === 0 ? 2 : 1);
  }

  /**
   * Whether an attempt may rely on what a node has answered. Of a key that was forgotten nobody
   * knows.
   */
  #stays({ holder, forgot }: Node, attempt: number): boolean {
    if (this.#world.keysStay !== "where counted") return true;
    return holder === attempt || (forgot & 1 << attempt) !== 0;
  }

  #isCounted({ forgot }: Node): boolean {
    return !this.#world.guarded || forgot === 0;
  }

  /** The request for the lock is delivered. */
  *#requests(state: State, attempt: number, place: number): Steps {
    const node = state.nodes[place];
    if (node.holder !== NOBODY) {
      // What follows it on the same connection is of interest only if it has an effect on another's
      // node.
      if (this.#rules.raises !== "anywhere") return;
      const links = withLink(node, attempt, { asked: true });
      return yield makeStep("refuse", attempt, place, 0, withNode(state, place, { links }));
    }
    const asking = state.attempts[attempt].phase === "asking";
    const first = state.nodes.every((other) => !other.links[attempt].asked);
    const before = this.#world.demanded === "order of beginnings" && asking && first
      ? state.highest
      : state.attempts[attempt].before;
    const last = state.leaps > 0 ? farthest(state) : node.counter + 1;
    for (let counter = node.counter + 1; counter <= last; counter++) {
      const granted = asking && this.#isCounted(node) ? counter : 0;
      const links = withLink(node, attempt, { asked: true, granted });
      const leaps = state.leaps - (counter > node.counter + 1 ? 1 : 0);
      const granting = withNode({ ...state, leaps }, place, { holder: attempt, counter, links });
      const next = withAttempt(granting, attempt, { before });
      yield makeStep("grant", attempt, place, counter, this.#withoutVain(next, attempt));
    }
  }

  /**
   * A node that lost the key is filled in, at once or when the lock has long been over; its answer
   * counts for nothing.
   */
  *#fills(state: State, attempt: number, place: number): Steps {
    const { token } = state.attempts[attempt];
    const { holder, counter, links } = state.nodes[place];
    if (token === 0 || holder !== NOBODY || links[attempt].filled) return;
    const filled = withLink(state.nodes[place], attempt, { filled: true });
    for (const value of new Set([counter, Math.max(counter, token)])) {
      const change = { holder: attempt, counter: value, links: filled };
      yield makeStep("fill", attempt, place, value, withNode(state, place, change));
    }
  }

  /** The counters up to which an attempt may want to raise others, or may have wanted to. */
  #targets({ nodes, attempts }: State, attempt: number): readonly number[] {
    const { phase, late } = attempts[attempt];
    if (phase !== "asking") return late;
    if (this.#rules.raises === "nowhere") return [];
    const answers = nodes.map(({ links }) => answersOf(links[attempt])).filter(({ length }) =>
      length > 0
    );
    if (answers.length < this.#quorum) return [];
    const least = answers.map(([first]) => first).sort(ascending)[this.#quorum - 1];
    return [...new Set(answers.flat())].filter((answer) => answer >= least).sort(ascending);
  }

  /** A request to raise the counter is delivered. */
  *#raises(state: State, attempt: number, place: number, targets: readonly number[]): Steps {
    const node = state.nodes[place];
    if (node.holder !== attempt && this.#rules.raises !== "anywhere") return;
    const { granted, raised } = node.links[attempt];
    const { phase, raisedTo } = state.attempts[attempt];
    for (const target of targets) {
      const counter = Math.max(node.counter, target);
      const answer = this.#rules.answers === "as asked" ? target : counter;
      const known = raised.includes(answer) || this.#rules.firstRoundCounts && answer === granted;
      const answers = phase === "asking" && this.#isCounted(node) && !known;
      if (counter === node.counter && !answers) continue;
      const links = answers
        ? withLink(node, attempt, { raised: [...raised, answer].sort(ascending) })
        : node.links;
      let next = withNode(state, place, { counter, links });
      if (phase === "asking") {
        next = withAttempt(next, attempt, { raisedTo: Math.max(target, raisedTo) });
      }
      yield makeStep("raise", attempt, place, target, this.#withoutVain(next, attempt));
    }
  }

  /**
   * The attempt has heard what it needs. It knows of no answer above the token, and of all below.
   */
  *#handOuts(state: State, attempt: number): Steps {
    const { raisedTo } = state.attempts[attempt];
    const given = state.nodes.map((node) =>
      this.#stays(node, attempt) ? this.#counted(node.links[attempt]) : []
    );
    for (const value of new Set(given.flat())) {
      if (value < raisedTo) continue;
      const heard = given.map((answers) => answers.findLast((answer) => answer <= value));
      const { token, agreed } = agreeOnToken(heard, this.#quorum);
      const granted = heard.filter((answer) => answer !== undefined).length >= this.#quorum;
      if (!(this.#rules.raises === "nowhere" ? granted : agreed)) continue;
      const next = this.#finish(state, attempt, "held", token);
      const step = makeStep("hand out", attempt, NOBODY, token, {
        ...next,
        highest: Math.max(token, state.highest),
      });
      yield { ...step, violation: this.#violation(state, attempt, token) };
    }
  }

  /** The answers that count towards a quorum, in rising order. */
  #counted(link: Link): readonly number[] {
    return this.#rules.firstRoundCounts ? answersOf(link) : link.raised;
  }

  #violation({ attempts, highest }: State, attempt: number, token: number): string | undefined {
    const { demanded } = this.#world;
    if (demanded === "exclusion") {
      const held = attempts.some(({ phase }) => phase === "held");
      return held ? "two attempts hold the lock" : undefined;
    }
    const bound = demanded === "order of hand-outs" ? highest : attempts[attempt].before;
    return token > bound ? undefined : `token ${token} does not exceed token ${bound}`;
  }

  /**
   * Answers are of no use to an attempt that is held or over. Its requests may still be delivered.
   */
  #finish(state: State, attempt: number, phase: "held" | "over", token = Infinity): State {
    const late = this.#targets(state, attempt).filter((target) => target <= token);
    const nodes = state.nodes.map((node) => ({
      ...node,
      forgot: phase === "over" ? node.forgot & ~(1 << attempt) : node.forgot,
      links: withLink(node, attempt, { granted: 0, raised: [] }),
    }));
    const filling = this.#world.fills && phase === "held" ? token : state.attempts[attempt].token;
    const attempts = state.attempts.with(attempt, {
      phase,
      late,
      raisedTo: 0,
      before: 0,
      token: filling,
    });
    return this.#withoutVain({ ...state, nodes, attempts }, attempt);
  }

  /** Leaves out late requests that can't raise a counter any more. */
  #withoutVain(state: State, attempt: number): State {
    const { late } = state.attempts[attempt];
    const useful = late.filter((target) =>
      state.nodes.some(({ holder, counter, links }) => {
        if (!links[attempt].asked) return state.forgets > 0 || counter + 1 < target;
        const reached = holder === attempt || this.#rules.raises === "anywhere";
        return reached && (state.forgets > 0 || counter < target);
      })
    );
    return useful.length === late.length ? state : withAttempt(state, attempt, { late: useful });
  }

  /** A key is gone: its time is over, or something went wrong on the node. The counter stays. */
  *#losses(state: State, place: number): Steps {
    const { holder } = state.nodes[place];
    if (holder === NOBODY) return;
    if (this.#world.keysStay === "all" && state.attempts[holder].phase !== "over") return;
    const next = this.#withoutVain(withNode(state, place, { holder: NOBODY }), holder);
    yield makeStep("lose", holder, place, 0, next);
  }

  /** A node comes back without key and counter. */
  *#forgets(state: State, place: number): Steps {
    const { holder, counter, forgot } = state.nodes[place];
    const missed = holder !== NOBODY && state.attempts[holder].phase !== "over";
    const change = { holder: NOBODY, forgot: missed ? forgot | 1 << holder : forgot };
    const [from, to] = this.#world.resumes ? [counter, farthest(state)] : [0, 0];
    for (let start = from; start <= to; start++) {
      const next = withNode(state, place, { ...change, counter: start });
      yield makeStep("forget", holder, place, start, { ...next, forgets: state.forgets - 1 });
    }
  }
}

function makeStep(
  kind: Action["kind"],
  attempt: number,
  place: number,
  value: number,
  state: State,
): Step<State, Action> {
  return { action: { kind, attempt, place, value }, state };
}

/**
 * The highest counter that a node may resume with or leap to: any that is further ahead would come
 * to the same.
 */
function farthest(state: State): number {
  const highest = Math.max(state.highest, ...state.nodes.map((node) => node.counter));
  return highest + unanswered(state) + 1;
}

function ascending(one: number, other: number): number {
  return one - other;
}
