/**
 * A state of the fencing model, and what makes it differ from others.
 *
 * @module
 */

/** Stands for no attempt. */
export const NOBODY = -1;

/** What went between one attempt and one node. */
export interface Link {
  /** Whether the node has answered the request for the lock. */
  readonly asked: boolean;
  /** The counter that it granted the lock with; 0 for none that counts. */
  readonly granted: number;
  /** What it answered to requests to raise its counter, in rising order. */
  readonly raised: readonly number[];
  /** Whether the key was set again after the lock was handed out, because the node had lost it. */
  readonly filled: boolean;
}

/** One node. */
export interface Node {
  /** The attempt whose value is under the key. */
  readonly holder: number;
  /** The counter. */
  readonly counter: number;
  /** One bit an attempt: whose key it forgot, for as long as the attempt is not over. */
  readonly forgot: number;
  /** One for each attempt. */
  readonly links: readonly Link[];
}

/** One attempt at the lock. */
export interface Attempt {
  /** `over`: given up, released or run out. */
  readonly phase: "asking" | "held" | "over";
  /**
   * Of an attempt that asks no more: up to what a request that is on its way may raise a counter.
   */
  readonly late: readonly number[];
  /**
   * Up to what it had a counter raised at the most. It knows of an answer as high, and takes no
   * lower token.
   */
  readonly raisedTo: number;
  /**
   * The highest token handed out before a node first granted it the lock, where that is of
   * interest.
   */
  readonly before: number;
  /** The token that it was handed out with, if nodes may be filled in with it; else 0. */
  readonly token: number;
}

/** All of it. */
export interface State {
  readonly nodes: readonly Node[];
  readonly attempts: readonly Attempt[];
  /** The highest token that was handed out; 0 for none. */
  readonly highest: number;
  /** How many times a node will still forget its data. */
  readonly forgets: number;
  /** How many times a counter will still leap ahead when it counts. */
  readonly leaps: number;
}

const PHASES = ["asking", "held", "over"];

/** All that a node has answered, in rising order. */
export function answersOf({ granted, raised }: Link): readonly number[] {
  return granted === 0 ? raised : [granted, ...raised];
}

/** The state with a node changed. */
export function withNode(state: State, place: number, change: Partial<Node>): State {
  return { ...state, nodes: state.nodes.with(place, { ...state.nodes[place], ...change }) };
}

/** The state with an attempt changed. */
export function withAttempt(state: State, place: number, change: Partial<Attempt>): State {
  const attempt = { ...state.attempts[place], ...change };
  return { ...state, attempts: state.attempts.with(place, attempt) };
}

/** A node's links with that of an attempt changed. */
export function withLink(
  { links }: Node,
  attempt: number,
  change: Partial<Link>,
): readonly Link[] {
  return links.with(attempt, { ...links[attempt], ...change });
}

/** How many requests for the lock are on their way to a node. */
export function unanswered({ nodes }: State): number {
  let count = 0;
  for (const { links } of nodes) {
    for (const { asked } of links) if (!asked) count++;
  }
  return count;
}

/** All orders of the numbers from 0 up to, but not including, a count. */
export function orders(count: number): readonly (readonly number[])[] {
  if (count === 0) return [[]];
  return orders(count - 1).flatMap((order) =>
    Array.from({ length: count }, (_, place) => order.toSpliced(place, 0, count - 1))
  );
}

/**
 * Writes a state down so that two which differ only in the names of nodes and attempts, or in
 * numbers whose differences can't matter, are written the same.
 *
 * Nodes are sorted, and of the attempts that order is taken which comes out first.
 *
 * @param state The state.
 * @param attempts All orders of its attempts.
 */
export function writeState(
  state: State,
  attempts: readonly (readonly number[])[],
): string {
  const number = renumbering(state);
  let first: string | undefined;
  for (const order of attempts) {
    let text = String.fromCharCode(number[state.highest], state.forgets, state.leaps);
    for (const attempt of order) text += writeAttempt(state.attempts[attempt], number);
    const nodes = state.nodes.map((node) => writeNode(node, order, number));
    text += nodes.sort().join("");
    if (first === undefined || text < first) first = text;
  }
  return first!;
}

function writeAttempt(
  { phase, late, raisedTo, before, token }: Attempt,
  number: readonly number[],
): string {
  let text = String.fromCharCode(
    PHASES.indexOf(phase),
    number[raisedTo],
    number[before],
    number[token],
    late.length,
  );
  for (const value of late) text += String.fromCharCode(number[value]);
  return text;
}

function writeNode(node: Node, order: readonly number[], number: readonly number[]): string {
  let forgot = 0;
  for (let place = 0; place < order.length; place++) {
    if (node.forgot & 1 << order[place]) forgot |= 1 << place;
  }
  let text = String.fromCharCode(order.indexOf(node.holder) + 1, number[node.counter], forgot);
  for (const attempt of order) {
    const { asked, granted, raised, filled } = node.links[attempt];
    const flags = (asked ? 1 : 0) + (filled ? 2 : 0);
    text += String.fromCharCode(flags, number[granted], raised.length);
    for (const value of raised) text += String.fromCharCode(number[value]);
  }
  return text;
}

/**
 * Gives counters and tokens lower numbers where that changes nothing. They are compared, copied and
 * increased by one for each grant, so no number ever bridges a gap that is wider than there are
 * grants to come: all such gaps are alike. If a node that forgets may resume within one, or a
 * counter may leap into one, there has to be room for that on either side.
 */
function renumbering(state: State): readonly number[] {
  const used: boolean[] = [true];
  used[state.highest] = true;
  for (const { late, raisedTo, before, token } of state.attempts) {
    used[raisedTo] = used[before] = used[token] = true;
    for (const value of late) used[value] = true;
  }
  for (const { counter, links } of state.nodes) {
    used[counter] = true;
    for (const { granted, raised } of links) {
      used[granted] = true;
      for (const value of raised) used[value] = true;
    }
  }
  const gapMax = (unanswered(state) + 1) * (state.forgets + state.leaps + 1);
  const numbers = [0];
  let last = 0;
  for (let value = 1; value < used.length; value++) {
    if (!used[value]) continue;
    numbers[value] = numbers[last] + Math.min(value - last, gapMax);
    last = value;
  }
  return numbers;
}
