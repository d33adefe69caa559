/**
 * Visits every state that a model can get into, the near ones first, and so finds the shortest way
 * to a violation.
 *
 * States with one key are taken for one, and only the first of them is visited.
 *
 * @module
 */

/** One thing that may happen next. */
export interface Step<State, Action> {
  /** What happens. */
  readonly action: Action;
  /** What it leads to. */
  readonly state: State;
  /** What is wrong with that, if anything. */
  readonly violation?: string;
}

/** What is explored. */
export interface Model<State, Action> {
  /** The states that it may begin in. */
  initial(): Iterable<State>;
  /** All that may happen next. */
  steps(state: State): Iterable<Step<State, Action>>;
  /** The same for states from which the same violations are reached in as many steps. */
  key(state: State): string;
  /** The state that a trace begins with, in words. */
  describeState(state: State): string;
  /** One line of a trace. */
  describeStep(step: Step<State, Action>): string;
}

/** What came of exploring. */
export interface Exploration {
  /** How many states were visited. */
  readonly states: number;
  /** How many steps were taken between them. */
  readonly steps: number;
  /** How many steps the farthest of them is away. */
  readonly depth: number;
  /** Whether there is no other state. */
  readonly complete: boolean;
  /**
   * The first line says where it begins, the others are the shortest way to a violation; empty if
   * there was none.
   */
  readonly trace: readonly string[];
}

/**
 * Explores a model up to its first violation, to its end, or until so many states were visited.
 *
 * @param model What is explored.
 * @param statesMax How many states are enough.
 */
export function explore<State, Action>(
  model: Model<State, Action>,
  statesMax = Infinity,
): Exploration {
  const known = new Set<string>();
  const keys: string[] = [];
  const origins: number[] = [];
  let next: State[] = [];
  let [steps, depth] = [0, 0];
  const visit = (state: State, origin: number) => {
    const key = model.key(state);
    if (known.has(key)) return;
    known.add(key);
    keys.push(key);
    origins.push(origin);
    next.push(state);
  };
  const outcome = (complete: boolean, trace: readonly string[] = []) => {
    return { states: keys.length, steps, depth, complete, trace };
  };

  for (const state of model.initial()) visit(state, -1);
  for (let index = 0; next.length > 0; depth++) {
    const states = next;
    next = [];
    for (const state of states) {
      if (keys.length >= statesMax) return outcome(false);
      for (const step of model.steps(state)) {
        steps++;
        if (step.violation !== undefined) {
          return outcome(false, trace(model, way(keys, origins, index)));
        }
        visit(step.state, index);
      }
      index++;
    }
    if (next.length === 0) break;
  }
  return outcome(true);
}

/** The keys on the way to a state, from the beginning. */
function way(keys: readonly string[], origins: readonly number[], last: number): string[] {
  const found: string[] = [];
  for (let index = last; index >= 0; index = origins[index]) found.push(keys[index]);
  return found.reverse();
}

/** Goes a way once more, as no states but the last ones are kept, and says what happens on it. */
function trace<State, Action>(model: Model<State, Action>, [first, ...rest]: string[]): string[] {
  let state: State = [...model.initial()].find((candidate) => model.key(candidate) === first)!;
  const lines = [model.describeState(state)];
  for (const key of rest) {
    const step = [...model.steps(state)].find((candidate) => model.key(candidate.state) === key)!;
    lines.push(model.describeStep(step));
    state = step.state;
  }
  const last = [...model.steps(state)].find(({ violation }) => violation !== undefined)!;
  return [...lines, model.describeStep(last), last.violation!];
}
