/**
 * What the compiler makes of expressions and statements: closures.
 *
 * A *frame* has the variables of one call, each in its slot; in slot 0 is the frame of the call in
 * which the function was created. A loop has one frame for all its iterations, where Lua has new
 * variables for each: so no function can be created in a loop.
 *
 * @module
 */
import { toNumber } from "./numbers.ts";
import { BINARY, index, type OperatorSite, refuse, setIndex } from "./operators.ts";
import {
  enter,
  first,
  isTrue,
  Library,
  type LuaFunction,
  LuaTable,
  machine,
  raise,
  type Result,
  type Site,
  step,
  typeName,
  UnsupportedError,
  type Value,
} from "./values.ts";

/** The frame of the enclosing function, and the variables. */
type Frame = [Frame | undefined, ...Value[]];
export type Evaluate = (frame: Frame) => Value;
/**
 * Executes a statement: `undefined` if the next one follows, {@linkcode BREAK}, or what the
 * function returns.
 */
export type Execute = (frame: Frame) => undefined | typeof BREAK | Result;
/** Evaluates the table and the key of what is set, and returns what sets it. */
export type Target = (frame: Frame) => (value: Value) => void;
/** The slot of a variable of this function, `undefined` for everything else. */
type Slot = number | undefined;

/** An expression that has been read. */
export interface Expression {
  readonly evaluate: Evaluate;
  /** All values, if there may be none or several. */
  readonly evaluateAll?: (frame: Frame) => Result;
  /** What an error calls it. */
  readonly name?: string | undefined;
  /**
   * Where it is, if it is a variable of this function: an operator reads that when it operates, so
   * it finds what its other operand has set.
   */
  readonly slot?: Slot | undefined;
  /** The value, in a list, if that never changes. */
  readonly constant?: readonly [Value];
  /**
   * What sets it, if that is possible, in a statement that sets the variables `before` first. As an
   * operator, it reads its table and its key late if they are variables, but not these.
   */
  readonly target?: (before: readonly Slot[]) => Target;
}

/** How a `break` ends a statement. */
export const BREAK: unique symbol = Symbol("break");
/** What a function returns that returns nil: `undefined` means that nothing was returned yet. */
const NIL: Value[] = [undefined];

// Statements

/** Executes statements one after the other. */
export function sequence(statements: readonly Execute[]): Execute {
  if (statements.length === 1) return statements[0];
  return (frame) => {
    for (let at = 0; at < statements.length; at++) {
      const outcome = statements[at](frame);
      if (outcome !== undefined) return outcome;
    }
    return undefined;
  };
}

/** `local a, b = …`. */
export function locals(slots: readonly number[], values: readonly Expression[]): Execute {
  if (slots.length === 1 && values.length === 1) {
    const [[slot], [{ evaluate }]] = [slots, values];
    return (frame) => void (frame[slot] = evaluate(frame));
  }
  const all = listOf(values);
  return (frame) => {
    const list = all(frame);
    for (let at = 0; at < slots.length; at++) frame[slots[at]] = list[at];
  };
}

/** `a, b[c] = …`: tables and keys are evaluated before the values. */
export function assignment(targets: readonly Target[], values: readonly Expression[]): Execute {
  if (targets.length === 1 && values.length === 1) {
    const [[target], [{ evaluate }]] = [targets, values];
    return (frame) => {
      const set = target(frame);
      set(evaluate(frame));
    };
  }
  const all = listOf(values);
  return (frame) => {
    const setters = targets.map((target) => target(frame));
    const list = all(frame);
    // Lua assigns the last one first.
    for (let at = setters.length - 1; at >= 0; at--) setters[at](list[at]);
  };
}

/** `if … elseif … else … end`. */
export function choice(
  tests: readonly Evaluate[],
  blocks: readonly Execute[],
  otherwise: Execute | undefined,
): Execute {
  return (frame) => {
    for (let at = 0; at < tests.length; at++) {
      if (isTrue(tests[at](frame))) return blocks[at](frame);
    }
    return otherwise?.(frame);
  };
}

/** Begins a loop; returns what prepares the next round, and whether there is one. */
type Begin = (frame: Frame) => () => boolean;

/** A loop of one of the kinds below. */
export function loop(begin: Begin, body: Execute, site: Site): Execute {
  return (frame) => {
    const next = begin(frame);
    for (;;) {
      step(site);
      if (!next()) return undefined;
      const outcome = body(frame);
      if (outcome === BREAK) return undefined;
      if (outcome !== undefined) return outcome;
    }
  };
}

/** `while … do … end`. */
export function whileTrue(test: Evaluate): Begin {
  return (frame) => () => isTrue(test(frame));
}

/** `repeat … until …`. */
export function untilTrue(test: Evaluate): Begin {
  return (frame) => {
    let rounds = 0;
    return () => rounds++ === 0 || !isTrue(test(frame));
  };
}

/** `for … = from, to, by do … end`. */
export function forNumbers(slot: number, limits: readonly Evaluate[], site: Site): Begin {
  return (frame) => {
    const [from, to, by = 1] = limits.map((limit) => limit(frame)).map((value, at) =>
      toNumber(value) ??
        raise(`'for' ${["initial value", "limit", "step"][at]} must be a number`, site)
    );
    let number = from;
    return () => {
      frame[slot] = number;
      const goesOn = by > 0 ? number <= to : to <= number;
      number += by;
      return goesOn;
    };
  };
}

/** `for key, item in ipairs(…) do … end`, or `pairs` of a list. */
export function forItems(
  how: string,
  evaluate: Evaluate,
  [keySlot, itemSlot]: readonly number[],
  site: Site,
): Begin {
  return (frame) => {
    const table = evaluate(frame);
    if (!(table instanceof LuaTable)) {
      return raise(`bad argument #1 to '${how}' (table expected, got ${typeName(table)})`, site);
    }
    const { length } = table.list;
    let key = 0;
    return () => {
      if (how === "pairs" && !(table.isList && table.list.length === length)) {
        throw new UnsupportedError("'pairs' of a table that is no list, or changes its length");
      }
      const item = table.get(++key);
      frame[keySlot] = key;
      if (itemSlot !== undefined) frame[itemSlot] = item;
      return item !== undefined;
    };
  };
}

/** `return …`, with at least one value. */
export function returned(values: readonly Expression[]): Execute {
  if (values.length > 1) return listOf(values);
  const evaluate = values[0].evaluateAll ?? values[0].evaluate;
  return (frame) => {
    const result = evaluate(frame);
    return result === undefined ? NIL : result;
  };
}

// Expressions

/** A value that never changes. */
export function constant(value: Value): Expression {
  return { evaluate: () => value, constant: [value] };
}

/** A variable of this function, or of the one so many levels further out. */
export function variable(depth: number, slot: number, name: string): Expression {
  if (depth === 0) {
    return {
      evaluate: (frame) => frame[slot] as Value,
      name: `local '${name}'`,
      slot,
      target: () => (frame) => (value) => void (frame[slot] = value),
    };
  }
  const frameOf = (frame: Frame) => {
    for (let level = 0; level < depth; level++) frame = frame[0]!;
    return frame;
  };
  return {
    evaluate: (frame) => frameOf(frame)[slot] as Value,
    name: `upvalue '${name}'`,
    target: () => (frame) => (value) => void (frameOf(frame)[slot] = value),
  };
}

/** `table[key]`. */
export function indexed(table: Expression, key: Expression, line: number): Expression {
  const [known, text] = [table.constant?.[0], key.constant?.[0]];
  const name = `field '${typeof text === "string" ? text : "?"}'`;
  const site = { line, name: table.name };
  if (known instanceof Library && key.constant) {
    return { ...constant(known.get(text, site)), name };
  }
  return {
    evaluate: inOrder(table, key, (container, at) => index(container, at, site)),
    name,
    target: (before) => {
      const [into, at] = [targetPart(table, before), targetPart(key, before)];
      return (frame) => {
        const [container, field] = [into(frame), at(frame)];
        return (value) => setIndex(container(), field(), value, site);
      };
    },
  };
}

function targetPart(
  { evaluate, slot }: Expression,
  before: readonly Slot[],
): (frame: Frame) => () => Value {
  if (slot !== undefined && !before.includes(slot)) return (frame) => () => evaluate(frame);
  return (frame) => {
    const value = evaluate(frame);
    return () => value;
  };
}

/** An operator with two operands. */
export function binary(
  operator: string,
  left: Expression,
  right: Expression,
  site: OperatorSite,
): Evaluate {
  if (operator === "and" || operator === "or") {
    const goesOn = operator === "and";
    return (frame) => {
      const value = left.evaluate(frame);
      return isTrue(value) === goesOn ? right.evaluate(frame) : value;
    };
  }
  const operate = BINARY[operator];
  // `..` copies its operands, as a call does.
  const copied = operator === ".." ? { evaluate: left.evaluate } : left;
  return inOrder(copied, right, (a, b) => operate(a, b, site));
}

/** Evaluates two operands, and reads the first behind the second if it is a local variable. */
function inOrder(
  { evaluate: left, slot }: Expression,
  { evaluate: right }: Expression,
  operate: (a: Value, b: Value) => Value,
): Evaluate {
  if (slot === undefined) return (frame) => operate(left(frame), right(frame));
  return (frame) => {
    const b = right(frame);
    return operate(left(frame), b);
  };
}

/** `callee(…)`. */
export function call(callee: Expression, args: readonly Expression[], line: number): Expression {
  const site: Site = { line, name: callee.name };
  const [list, { evaluate }] = [listOf(args), callee];
  return calling((frame) => {
    const called = evaluate(frame);
    const values = list(frame);
    machine.site = site;
    return typeof called === "function" ? called(values) : refuse("call", called, site);
  });
}

/** `object:method(…)`. */
export function methodCall(
  { evaluate, name }: Expression,
  method: string,
  args: readonly Expression[],
  line: number,
): Expression {
  const objectSite = { line, name };
  const site: Site = { line, name: `method '${method}'`, isMethod: true };
  const list = listOf(args);
  return calling((frame) => {
    const object = evaluate(frame);
    const called = index(object, method, objectSite);
    const values = [object, ...list(frame)];
    machine.site = site;
    return typeof called === "function" ? called(values) : refuse("call", called, site);
  });
}

function calling(evaluateAll: (frame: Frame) => Result): Expression {
  return { evaluate: (frame) => first(evaluateAll(frame)), evaluateAll };
}

/** A function, which is created when this is evaluated. */
export function functionOf(
  parameters: number,
  size: number,
  body: Execute,
): (outer: Frame | undefined) => LuaFunction {
  return (outer) => (args) => {
    enter();
    const frame = new Array(size) as Frame;
    frame[0] = outer;
    for (let at = 0; at < parameters; at++) frame[at + 1] = args[at];
    const result = body(frame);
    machine.depth--;
    return result === undefined ? [] : result as Result;
  };
}

/** `{ a, b }`. */
export function listTable(items: readonly Expression[]): Evaluate {
  const all = listOf(items);
  return (frame) => {
    const list = all(frame);
    if (!list.includes(undefined)) return new LuaTable(list);
    const table = new LuaTable();
    list.forEach((value, at) => value !== undefined && table.set(at + 1, value));
    return table;
  };
}

/** `{ a = b, [c] = d }`. */
export function fieldsTable(
  keys: readonly Evaluate[],
  values: readonly Expression[],
  site: Site,
): Evaluate {
  return (frame) => {
    const table = new LuaTable();
    for (let at = 0; at < keys.length; at++) {
      const [key, value] = [keys[at](frame), values[at].evaluate(frame)];
      machine.site = site;
      if (typeof key === "number") {
        throw new UnsupportedError("a number as a key in a table's braces");
      }
      table.set(key, value);
    }
    return table;
  };
}

/** The values of several expressions: all of the last one, the first of each other. */
function listOf(expressions: readonly Expression[]): (frame: Frame) => Value[] {
  const evaluateRest = expressions.at(-1)?.evaluateAll;
  const singles = expressions.slice(0, evaluateRest ? -1 : undefined)
    .map(({ evaluate }) => evaluate);
  const listOfSingles = (frame: Frame) => {
    const list = new Array<Value>(singles.length);
    for (let at = 0; at < singles.length; at++) list[at] = singles[at](frame);
    return list;
  };
  if (!evaluateRest) return listOfSingles;
  return (frame) => {
    const list = listOfSingles(frame);
    const rest = evaluateRest(frame);
    if (!Array.isArray(rest)) list.push(rest);
    else for (let at = 0; at < rest.length; at++) list.push(rest[at]);
    return list;
  };
}
