/**
 * Compiles a syntax tree to closures, one a node, so that nothing is looked up by name when a
 * script runs, and no source is evaluated by the runtime, which not all runtimes allow.
 *
 * A *frame* has the variables of one call: first the boxes of the enclosing function's, then its
 * own. A variable that an inner function uses too stands in a box.
 *
 * @module
 */
import { call, pcall, REDIS } from "./redis_library.ts";
import { constructor, tableOf } from "./constructor.ts";
import {
  arithmetic,
  compare,
  concatenate,
  described,
  index,
  length,
  setIndex,
} from "./operators.ts";
import type {
  Block,
  Call,
  Constructor,
  Expression,
  FunctionCode,
  Index,
  Local,
  Loop,
  NumericLoop,
  Statement,
  Target,
  Variable,
} from "./tree.ts";
import { toNumber } from "./numbers.ts";
import {
  enter,
  first,
  Library,
  listOf,
  type LuaFunction,
  type LuaTable,
  machine,
  nextItem,
  NOTHING,
  raise,
  type Result,
  type Site,
  step,
  typeName,
  UnsupportedError,
  type Value,
} from "./values.ts";

/** What every script can use, by name. */
export type Globals = (name: string) => Value;

/** A variable that two functions use. */
interface Box {
  value: Value;
}

type Frame = (Value | Box | Value[])[];
type Evaluate = (frame: Frame) => Value;
/** All values of a call or of `...`. */
type EvaluateAll = (frame: Frame) => Result;
/**
 * Executes a statement: `undefined` if the next one follows, {@linkcode BREAK}, or what the
 * function returns.
 */
type Execute = (frame: Frame) => Outcome;
type Outcome = undefined | typeof BREAK | Result;

const REDIS_CALL = REDIS.get("call"), REDIS_PCALL = REDIS.get("pcall");
/** How a `break` ends a statement. */
const BREAK = Symbol("break");
/** What a function returns that returns nil: `undefined` means that nothing was returned yet. */
const NIL: Value[] = [undefined];

/**
 * Compiles a source.
 *
 * @param code The code of the script.
 * @param globals What every script can use.
 * @returns A function that runs the script.
 */
export function compile(code: FunctionCode, globals: Globals): LuaFunction {
  return new Compiler(globals).function(code)([]) as LuaFunction;
}

class Compiler {
  readonly #globals: Globals;

  constructor(globals: Globals) {
    this.#globals = globals;
  }

  function({ parameters, rest, captures, size, body }: FunctionCode): Evaluate {
    const run = this.#block(body);
    const outer = captures.map(({ slot }) => slot);
    const start = outer.length;
    const boxed = parameters.map((variable) => variable.boxed);
    return (enclosing) => {
      const boxes = new Array<Frame[number]>(start);
      for (let at = 0; at < start; at++) boxes[at] = enclosing[outer[at]];
      return (args) => {
        enter();
        const frame: Frame = new Array(size);
        for (let at = 0; at < start; at++) frame[at] = boxes[at];
        for (let at = 0; at < boxed.length; at++) {
          frame[start + at] = boxed[at] ? { value: args[at] } : args[at];
        }
        if (rest) frame[rest.slot] = args.slice(boxed.length);
        const result = run(frame);
        machine.depth--;
        return result === undefined ? NOTHING : result as Result;
      };
    };
  }

  // Statements

  #block(block: Block): Execute {
    const statements = block.map((statement) => this.#statement(statement));
    const [one, two] = statements;
    if (statements.length === 0) return () => undefined;
    if (statements.length === 1) return one;
    if (statements.length === 2) {
      return (frame) => {
        const outcome = one(frame);
        return outcome === undefined ? two(frame) : outcome;
      };
    }
    return (frame) => {
      for (let at = 0; at < statements.length; at++) {
        const outcome = statements[at](frame);
        if (outcome !== undefined) return outcome;
      }
      return undefined;
    };
  }

  #statement(statement: Statement): Execute {
    switch (statement.kind) {
      case "local":
        return this.#local(statement);
      case "assignment":
        return this.#assignment(statement.targets, statement.values);
      case "call": {
        const call = this.#call(statement.call);
        return (frame) => void call(frame);
      }
      case "do":
        return this.#block(statement.body);
      case "while":
        return this.#while(this.#expression(statement.test), this.#block(statement.body));
      case "repeat":
        return this.#repeat(this.#block(statement.body), this.#expression(statement.test));
      case "if":
        return this.#if(
          statement.tests.map((test) => this.#expression(test)),
          statement.bodies.map((body) => this.#block(body)),
        );
      case "numeric":
        return this.#numeric(statement);
      case "for":
        return this.#for(statement);
      case "function": {
        const { variable, code } = statement;
        const [declare, set] = [declaration(variable), assignment(variable)];
        const create = this.function(code);
        return (frame) => {
          declare(frame, undefined); // first, so that the function can call itself
          set(frame, create(frame));
        };
      }
      case "return":
        return this.#return(statement.values);
      case "break":
        return () => BREAK;
    }
  }

  #local({ variables, values }: Local): Execute {
    const declare = variables.map(declaration);
    if (variables.length === 1 && values.length === 1) {
      const [set] = declare;
      const value = this.#expression(values[0]);
      return (frame) => set(frame, value(frame));
    }
    const all = this.#list(values);
    return (frame) => {
      const list = all(frame);
      for (let at = 0; at < declare.length; at++) declare[at](frame, list[at]);
    };
  }

  #assignment(targets: readonly Target[], values: readonly Expression[]): Execute {
    const [target] = targets;
    if (targets.length === 1 && values.length === 1 && target.kind === "variable") {
      const set = assignment(target.variable);
      const value = this.#expression(values[0]);
      return (frame) => set(frame, value(frame));
    }
    // Tables and keys are evaluated before the values.
    const parts: Evaluate[] = [];
    const setters = targets.map((each) => this.#setter(each, parts));
    const all = this.#list(values);
    return (frame) => {
      const places: Value[] = [];
      for (let at = 0; at < parts.length; at++) places.push(parts[at](frame));
      const list = all(frame);
      // Lua assigns the last one first.
      for (let at = setters.length - 1; at >= 0; at--) setters[at](frame, list[at], places);
    };
  }

  /** Sets a target whose table and key stand among the places. */
  #setter(
    target: Target,
    parts: Evaluate[],
  ): (frame: Frame, value: Value, places: Value[]) => void {
    if (target.kind === "variable") return assignment(target.variable);
    const start = parts.length;
    parts.push(this.#expression(target.table), this.#expression(target.key));
    const site = { line: target.line, name: nameOf(target.table) };
    return (_frame, value, places) => setIndex(places[start], places[start + 1], value, site);
  }

  #while(test: Evaluate, body: Execute): Execute {
    return (frame) => {
      while (isTrue(test(frame))) {
        step();
        const outcome = body(frame);
        if (outcome === BREAK) break;
        if (outcome !== undefined) return outcome;
      }
      return undefined;
    };
  }

  #repeat(body: Execute, test: Evaluate): Execute {
    return (frame) => {
      do {
        step();
        const outcome = body(frame);
        if (outcome === BREAK) break;
        if (outcome !== undefined) return outcome;
      } while (!isTrue(test(frame)));
      return undefined;
    };
  }

  #if(tests: readonly Evaluate[], bodies: readonly Execute[]): Execute {
    if (tests.length === 1) {
      const [[test], [then, otherwise]] = [tests, bodies];
      if (!otherwise) return (frame) => isTrue(test(frame)) ? then(frame) : undefined;
      return (frame) => isTrue(test(frame)) ? then(frame) : otherwise(frame);
    }
    return (frame) => {
      const at = tests.findIndex((test) => isTrue(test(frame)));
      const body = bodies[at === -1 ? tests.length : at];
      return body?.(frame);
    };
  }

  #numeric({ variable, from, to, by, body, line }: NumericLoop): Execute {
    const declare = declaration(variable);
    const limits = [from, to, by ?? ({ kind: "constant", value: 1 } as const)]
      .map((limit) => this.#expression(limit));
    const run = this.#block(body);
    return (frame) => {
      const [start, end, gap] = limits.map((limit) => limit(frame)).map(toNumber);
      const site = { line };
      if (start === undefined) raise("'for' initial value must be a number", site);
      if (end === undefined) raise("'for' limit must be a number", site);
      if (gap === undefined) raise("'for' step must be a number", site);
      for (let number = start!; gap! > 0 ? number <= end! : end! <= number; number += gap!) {
        step();
        declare(frame, number);
        const outcome = run(frame);
        if (outcome === BREAK) break;
        if (outcome !== undefined) return outcome;
      }
      return undefined;
    };
  }

  #for({ variables, values, body, line }: Loop): Execute {
    const declare = variables.map(declaration);
    const all = this.#list(values);
    const run = this.#block(body);
    const site = { line };
    return (frame) => {
      const given = all(frame);
      const [iterate, state] = [given[0], given[1]];
      let control = given[2];
      if (iterate === nextItem) return eachItem(frame, state as LuaTable, declare, run);
      for (;;) {
        step();
        machine.site = site;
        if (typeof iterate !== "function") raise(`attempt to call a ${typeName(iterate)} value`);
        const list = listOf((iterate as LuaFunction)([state, control]));
        control = list[0];
        if (control === undefined) return undefined;
        for (let at = 0; at < declare.length; at++) declare[at](frame, list[at]);
        const outcome = run(frame);
        if (outcome === BREAK) return undefined;
        if (outcome !== undefined) return outcome;
      }
    };
  }

  #return(values: readonly Expression[]): Execute {
    if (values.length !== 1) return this.#list(values);
    const all = this.#all(values[0]);
    return (frame) => {
      const result = all(frame);
      return result === undefined ? NIL : result;
    };
  }

  // Expressions

  /** The values of several expressions: all of the last one, the first of each other. */
  #list(expressions: readonly Expression[]): (frame: Frame) => Value[] {
    const last = expressions.at(-1);
    if (!last) return () => NOTHING;
    if (last.kind !== "call" && last.kind !== "varargs") {
      const singles = expressions.map((expression) => this.#expression(expression));
      const [one, two, three] = singles;
      if (singles.length === 1) return (frame) => [one(frame)];
      if (singles.length === 2) return (frame) => [one(frame), two(frame)];
      if (singles.length === 3) return (frame) => [one(frame), two(frame), three(frame)];
      return (frame) => {
        const list = new Array<Value>(singles.length);
        for (let at = 0; at < singles.length; at++) list[at] = singles[at](frame);
        return list;
      };
    }
    const singles = expressions.slice(0, -1).map((expression) => this.#expression(expression));
    const all = this.#all(last);
    return (frame) => {
      const list: Value[] = [];
      for (let at = 0; at < singles.length; at++) list.push(singles[at](frame));
      const rest = all(frame);
      if (!Array.isArray(rest)) list.push(rest);
      else for (let at = 0; at < rest.length; at++) list.push(rest[at]);
      return list;
    };
  }

  #all(expression: Expression): EvaluateAll {
    if (expression.kind === "call") return this.#call(expression);
    if (expression.kind === "varargs") return (frame) => frame[expression.slot.slot] as Value[];
    return this.#expression(expression);
  }

  #expression(expression: Expression): Evaluate {
    switch (expression.kind) {
      case "constant": {
        const { value } = expression;
        return () => value;
      }
      case "variable": {
        const { slot, boxed } = expression.variable;
        if (boxed) return (frame) => (frame[slot] as Box).value;
        return (frame) => frame[slot] as Value;
      }
      case "global":
        return this.#global(expression.name, expression.line);
      case "varargs":
        return (frame) => (frame[expression.slot.slot] as Value[])[0];
      case "index": {
        const member = this.#member(expression);
        if (member !== undefined) return () => member;
        const [table, key] = [this.#expression(expression.table), this.#expression(expression.key)];
        const site = { line: expression.line, name: nameOf(expression.table) };
        return (frame) => index(table(frame), key(frame), site);
      }
      case "call": {
        const call = this.#call(expression);
        return (frame) => first(call(frame));
      }
      case "unary":
        return this.#unary(expression);
      case "binary":
        return this.#binary(expression);
      case "concatenation": {
        const operands = this.#list(expression.operands.map(single));
        const { line } = expression;
        const names = expression.operands.map(nameOf);
        return (frame) => concatenate(operands(frame), line, names);
      }
      case "parentheses":
        return this.#expression(expression.inner);
      case "function":
        return this.function(expression.code);
      case "table":
        return this.#table(expression);
    }
  }

  /** The member of a library, which never changes. */
  #member({ table, key, line }: Index): Value {
    if (table.kind !== "global" || key.kind !== "constant") return undefined;
    const library = this.#globals(table.name);
    if (!(library instanceof Library)) return undefined;
    machine.site = { line };
    return library.get(key.value);
  }

  #global(name: string, line: number): Evaluate {
    if (name === "KEYS" || name === "ARGV") return () => this.#globals(name);
    const value = this.#globals(name);
    if (value === undefined) throw new UnsupportedError(`the global variable '${name}'`, line);
    return () => value;
  }

  #unary({ operator, operand, line }: Extract<Expression, { kind: "unary" }>): Evaluate {
    const value = this.#expression(operand);
    if (operator === "not") return (frame) => !isTrue(value(frame));
    const site = { line, name: nameOf(operand) };
    if (operator === "#") return (frame) => length(value(frame), site);
    return (frame) => -arithmetic("*", value(frame), 1, line, [site.name]);
  }

  #binary({ operator, left, right, line }: Extract<Expression, { kind: "binary" }>): Evaluate {
    const [a, b] = [this.#expression(left), this.#expression(right)];
    switch (operator) {
      case "and":
        return (frame) => {
          const value = a(frame);
          return isTrue(value) ? b(frame) : value;
        };
      case "or":
        return (frame) => {
          const value = a(frame);
          return isTrue(value) ? value : b(frame);
        };
      case "==":
        if (right.kind === "constant") return equals(a, right.value, true);
        return (frame) => a(frame) === b(frame);
      case "~=":
        if (right.kind === "constant") return equals(a, right.value, false);
        return (frame) => a(frame) !== b(frame);
      case "<":
      case "<=":
        return (frame) => compare(operator, a(frame), b(frame), line);
      case ">":
      case ">=": {
        const turned = operator === ">" ? "<" : "<=";
        return (frame) => {
          const value = a(frame);
          return compare(turned, b(frame), value, line);
        };
      }
      default: {
        const names = [nameOf(left), nameOf(right)];
        return (frame) => arithmetic(operator, a(frame), b(frame), line, names);
      }
    }
  }

  #table({ items, fields, line }: Constructor): Evaluate {
    if (fields.length === 0) {
      const list = this.#list(items);
      return (frame) => tableOf(list(frame));
    }
    const endsWithItem = fields.at(-1)![2] < items.length; // only this may be several values
    const lists = items.map((item, at) =>
      this.#list([endsWithItem && at === items.length - 1 ? item : single(item)])
    );
    const parts = fields.map(([key, value, at]) => {
      return { key: this.#expression(key), value: this.#expression(value), at };
    });
    return constructor(lists, parts, line);
  }

  #call({ callee, method, args, line }: Call): EvaluateAll {
    const site: Site = { line, name: nameOf(callee) };
    const member = callee.kind === "index" && method === undefined && this.#member(callee);
    const direct = member === REDIS_CALL ? call : member === REDIS_PCALL ? pcall : undefined;
    const [name] = args;
    if (direct && name?.kind === "constant") {
      const words = this.#list(args.slice(1));
      const { value } = name;
      return (frame) => {
        const rest = words(frame);
        machine.site = site;
        return direct(value, rest);
      };
    }
    const list = this.#list(args);
    if (method !== undefined) return this.#methodCall(callee, method, list, line);
    const target = this.#expression(callee);
    return (frame) => {
      const called = target(frame);
      const values = list(frame);
      machine.site = site;
      if (typeof called === "function") return called(values === NOTHING ? [] : values);
      return raise(`attempt to call ${described(called, site.name)}`);
    };
  }

  #methodCall(
    callee: Expression,
    method: string,
    args: (frame: Frame) => Value[],
    line: number,
  ): EvaluateAll {
    const object = this.#expression(callee);
    const at = { line, name: nameOf(callee) };
    const site: Site = { line, name: `method '${method}'`, isMethod: true };
    return (frame) => {
      const self = object(frame);
      const called = index(self, method, at);
      const values = [self, ...args(frame)];
      machine.site = site;
      if (typeof called === "function") return called(values);
      return raise(`attempt to call ${described(called, site.name)}`);
    };
  }
}

/** Runs the body of a loop over `ipairs`, without a list of results for each item. */
function eachItem(
  frame: Frame,
  table: LuaTable,
  declare: readonly ReturnType<typeof declaration>[],
  run: Execute,
): Outcome {
  const [declareKey, declareItem] = declare;
  for (let key = 1;; key++) {
    const item = table.get(key);
    if (item === undefined) return undefined;
    step();
    declareKey(frame, key);
    declareItem?.(frame, item);
    for (let at = 2; at < declare.length; at++) declare[at](frame, undefined);
    const outcome = run(frame);
    if (outcome === BREAK) return undefined;
    if (outcome !== undefined) return outcome;
  }
}

/** Sets a variable where it is declared: a new one each time. */
function declaration({ slot, boxed }: Variable): (frame: Frame, value: Value) => undefined {
  if (boxed) return (frame, value) => void (frame[slot] = { value });
  return (frame, value) => void (frame[slot] = value);
}

/** Sets a variable that was declared before. */
function assignment({ slot, boxed }: Variable): (frame: Frame, value: Value) => undefined {
  if (boxed) return (frame, value) => void ((frame[slot] as Box).value = value);
  return (frame, value) => void (frame[slot] = value);
}

/** Compares with a constant. */
function equals(evaluate: Evaluate, value: Value, isEqual: boolean): Evaluate {
  if (isEqual) return (frame) => evaluate(frame) === value;
  return (frame) => evaluate(frame) !== value;
}

/** An operand of a list of operands: only its first value counts. */
function single(expression: Expression): Expression {
  return expression.kind === "call" || expression.kind === "varargs"
    ? { kind: "parentheses", inner: expression }
    : expression;
}

function isTrue(value: Value): boolean {
  return value !== undefined && value !== false;
}

/**
 * How an error calls what an expression is: `local 'key'`; `undefined` if Lua has no name for it.
 */
function nameOf(expression: Expression): string | undefined {
  switch (expression.kind) {
    case "variable": {
      const { name, isUpvalue } = expression.variable;
      return `${isUpvalue ? "upvalue" : "local"} '${name}'`;
    }
    case "global":
      return `global '${expression.name}'`;
    case "index": {
      const { key } = expression;
      const isText = key.kind === "constant" && typeof key.value === "string";
      return `field '${isText ? key.value : "?"}'`;
    }
    case "parentheses":
      return nameOf(expression.inner);
    default:
      return undefined;
  }
}
