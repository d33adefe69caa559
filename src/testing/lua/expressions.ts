/**
 * Compiles expressions to closures while it reads them, and knows which variable is where.
 *
 * A *frame* has the variables of one call, each in its slot; in slot 0 is the frame of the call in
 * which the function was created. A loop has one frame for all its iterations, where Lua has new
 * variables for each: so no function can be created in a loop.
 *
 * @module
 */
import { BASE } from "./libraries.ts";
import {
  BINARY,
  index,
  type Operator,
  refuse,
  setIndex,
  UNARY,
  UNARY_PRECEDENCE,
} from "./operators.ts";
import { REDIS } from "./redis_library.ts";
import { NAME, NUMBER, STRING, type Token, TokenReader } from "./tokens.ts";
import {
  enter,
  first,
  isTrue,
  Library,
  type LuaFunction,
  LuaTable,
  machine,
  type Result,
  UnsupportedError,
  type Value,
} from "./values.ts";

/** The frame of the enclosing function, and the variables. */
export type Frame = [Frame | undefined, ...Value[]];
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
  readonly slot?: Slot;
  /** The value, in a list, if that never changes. */
  readonly constant?: readonly [Value];
  /**
   * What sets it, if that is possible. Its table and its key are evaluated before the values; but
   * variables of this function are read when it is set, unless the statement sets them first: those
   * are `before`.
   */
  readonly target?: (before: readonly Slot[]) => Target;
}

/** The variables of a function that is being read. */
interface Scope {
  /** Those that are visible, the innermost last. */
  readonly visible: { readonly name: string; readonly slot: number }[];
  readonly outer: Scope | undefined;
  /** How many slots its frame has. No two variables share one: a function may keep the first. */
  size: number;
  /** How many loops are open. */
  loops: number;
}

/** How a `break` ends a statement. */
export const BREAK: unique symbol = Symbol("break");
/** Most variables of one function. */
const VARIABLES_MAX = 200;

/** Reads expressions, and the functions in them. */
export abstract class ExpressionReader extends TokenReader {
  #scope: Scope = { visible: [], outer: undefined, size: 1, loops: 0 };

  /** Statements, up to what ends a block. */
  abstract block(): Execute;

  /** A block from a keyword or a sign to `end`. */
  body(start: string): Execute {
    this.expect(start);
    const block = this.block();
    this.expect("end");
    return block;
  }

  // Variables

  /** Makes a variable, which is visible up to the end of the block; returns its slot. */
  declare(name: string): number {
    const scope = this.#scope;
    const slot = scope.size++;
    if (slot > VARIABLES_MAX) {
      throw this.unsupported(`more than ${VARIABLES_MAX} variables in a function`);
    }
    scope.visible.push({ name, slot });
    return slot;
  }

  /** What is declared in it is not visible behind it. */
  scoped<T>(read: () => T): T {
    const { visible } = this.#scope;
    const { length } = visible;
    const result = read();
    visible.length = length;
    return result;
  }

  get isInLoop(): boolean {
    return this.#scope.loops > 0;
  }

  /** Reads the body of a loop. */
  looped<T>(read: () => T): T {
    this.#scope.loops++;
    const result = read();
    this.#scope.loops--;
    return result;
  }

  names(): string[] {
    const names: string[] = [];
    do names.push(this.expect(NAME).text); while (this.skip(","));
    return names;
  }

  /** The variable of this function, or of one around it. */
  local(name: string): Expression | undefined {
    let scope: Scope | undefined = this.#scope;
    for (let depth = 0; scope; scope = scope.outer, depth++) {
      const found = scope.visible.findLast((it) => it.name === name);
      if (found) return variable(depth, found.slot, name);
    }
    return undefined;
  }

  #variable({ text, line }: Token): Expression {
    const local = this.local(text);
    if (local) return local;
    const name = `global '${text}'`;
    if (text === "KEYS") return { evaluate: () => machine.keys, name };
    if (text === "ARGV") return { evaluate: () => machine.args, name };
    if (text === "redis") return { ...constant(REDIS), name };
    if (Object.hasOwn(BASE, text)) return { ...constant(BASE[text]), name };
    throw new UnsupportedError(`the global variable '${text}'`, line);
  }

  // Operators

  expressions(): Expression[] {
    const list = [this.expression()];
    while (this.skip(",")) list.push(this.expression());
    return list;
  }

  expression(weakest = 1): Expression {
    return this.nested(() => {
      let left = this.#unary();
      for (;;) {
        const { kind } = this.token;
        const [precedence, operate] = BINARY[kind] ?? [0];
        if (precedence < weakest) return left;
        this.next();
        // Those that bind from the right take what is as strong as themselves.
        const fromRight = kind === ".." || kind === "^";
        const right = this.expression(fromRight ? precedence : precedence + 1);
        // `..` copies its operands, as a call does.
        if (kind === "..") left = { evaluate: left.evaluate, name: left.name };
        left = operate
          ? this.#binary(operate, left, right)
          : { evaluate: either(kind, left, right) };
      }
    });
  }

  #unary(): Expression {
    const operate = UNARY[this.token.kind];
    if (!operate) return this.#simple();
    const { kind } = this.next();
    const { evaluate, constant: known, name } = this.expression(UNARY_PRECEDENCE);
    if (kind === "-" && typeof known?.[0] === "number") return this.#computed(-known[0]);
    const site = { line: this.line, name };
    return { evaluate: (frame) => operate(evaluate(frame), site) };
  }

  #binary(operate: Operator, left: Expression, right: Expression): Expression {
    const site = { line: this.line, names: [left.name, right.name] } as const;
    const [a, b] = [left.constant?.[0], right.constant?.[0]];
    if (typeof a === "number" && typeof b === "number") {
      const result = operate(a, b, site);
      if (typeof result === "number") return this.#computed(result);
    }
    return { evaluate: inOrder(left, right, (a, b) => operate(a, b, site)) };
  }

  /** A number that Lua computes when it reads the source. */
  #computed(number: number): Expression {
    // Lua takes the constants 0 and -0 of a function for one.
    if (Object.is(number, -0)) throw this.unsupported("'-0'");
    return constant(number);
  }

  // Values

  #simple(): Expression {
    const { kind, text } = this.token;
    switch (kind) {
      case "nil":
      case "true":
      case "false":
        this.next();
        return constant(kind === "nil" ? undefined : kind === "true");
      case NUMBER:
      case STRING:
        this.next();
        return constant(kind === NUMBER ? Number(text) : text);
      case "{":
        return { evaluate: this.#table() };
      case "function":
        this.next();
        return { evaluate: this.newFunction() };
      case "...":
        throw this.unsupported("'...'");
      default:
        return this.suffixed();
    }
  }

  /** A variable, or what is in parentheses, with its fields and calls. */
  suffixed(): Expression {
    let expression = this.#primary();
    for (;;) {
      const { kind } = this.token;
      if (kind === ".") {
        this.next();
        expression = indexed(expression, constant(this.expect(NAME).text), this.line);
      } else if (kind === "[") {
        this.next();
        const key = this.expression();
        this.expect("]");
        expression = indexed(expression, key, this.line);
      } else if (kind === ":") {
        this.next();
        expression = this.#call(expression, this.expect(NAME).text);
      } else if (kind === "(") {
        expression = this.#call(expression);
      } else if (kind === STRING || kind === "{") {
        throw this.unsupported("a call without parentheses");
      } else {
        return expression;
      }
    }
  }

  #primary(): Expression {
    if (this.token.kind === NAME) return this.#variable(this.next());
    if (!this.skip("(")) throw this.unexpected();
    const { evaluate, name, slot, constant: known } = this.expression();
    this.expect(")");
    return { evaluate, name, slot, ...known && { constant: known } };
  }

  /** A call of a function, or of a method of an object, from its arguments on. */
  #call({ evaluate, name }: Expression, method?: string): Expression {
    const { line } = this.token;
    const list = listOf(this.arguments());
    const site = { line, name };
    const isMethod = method !== undefined;
    const calledSite = isMethod ? { line, name: `method '${method}'`, isMethod } : site;
    const evaluateAll = (frame: Frame): Result => {
      const object = evaluate(frame);
      const called = isMethod ? index(object, method, site) : object;
      const values = list(frame);
      if (isMethod) values.unshift(object);
      machine.site = calledSite;
      return typeof called === "function" ? called(values) : refuse("call", called, calledSite);
    };
    return { evaluate: (frame) => first(evaluateAll(frame)), evaluateAll };
  }

  arguments(): Expression[] {
    const lineBefore = this.line;
    const { line } = this.expect("(");
    // Lua refuses this, because it may be the begin of a statement.
    if (line !== lineBefore) throw new UnsupportedError("a call on two lines", line);
    const args = this.token.kind === ")" ? [] : this.expressions();
    this.expect(")");
    return args;
  }

  /** A list, or a table of fields. */
  #table(): Evaluate {
    const site = { line: this.expect("{").line };
    const items: Expression[] = [];
    const keys: Evaluate[] = [];
    while (this.token.kind !== "}") {
      if (this.skip("[")) {
        keys.push(this.expression().evaluate);
        this.expect("]");
        this.expect("=");
      } else if (this.token.kind === NAME && this.kindBehind === "=") {
        keys.push(constant(this.next().text).evaluate);
        this.next();
      }
      items.push(this.expression());
      if (!this.skip(",") && !this.skip(";")) break;
    }
    this.expect("}");
    if (keys.length === 0) return listTable(listOf(items));
    if (keys.length < items.length) throw this.unsupported("items and fields in one table");
    return (frame) => {
      const table = new LuaTable();
      keys.forEach((keyOf, at) => {
        const [key, value] = [keyOf(frame), items[at].evaluate(frame)];
        machine.site = site;
        if (typeof key === "number") {
          throw new UnsupportedError("a number as a key in a table's braces");
        }
        table.set(key, value);
      });
      return table;
    };
  }

  /** A function, from its parameters on: what creates it. */
  newFunction(): (outer: Frame) => LuaFunction {
    if (this.isInLoop) throw this.unsupported("a function in a loop");
    const outer = this.#scope;
    this.#scope = { visible: [], outer, size: 1, loops: 0 };
    this.expect("(");
    if (this.token.kind === "...") throw this.unsupported("'...'");
    const parameters = this.token.kind === ")" ? [] : this.names();
    for (const name of parameters) this.declare(name);
    const creates = this.creates(this.body(")"), parameters.length);
    this.#scope = outer;
    return creates;
  }

  /** What creates the function whose body has been read. */
  creates(body: Execute, parameters: number): (outer?: Frame) => LuaFunction {
    const { size } = this.#scope;
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
}

/** A value that never changes. */
function constant(value: Value): Expression {
  return { evaluate: () => value, constant: [value] };
}

/** A variable of this function, or of the one so many levels further out. */
function variable(depth: number, slot: number, name: string): Expression {
  const frameOf = (frame: Frame) => {
    for (let level = 0; level < depth; level++) frame = frame[0]!;
    return frame;
  };
  const target: Expression["target"] = () => (frame) => {
    const owner = frameOf(frame);
    return (value) => void (owner[slot] = value);
  };
  return depth > 0
    ? { evaluate: (frame) => frameOf(frame)[slot] as Value, name: `upvalue '${name}'`, target }
    : { evaluate: (frame) => frame[slot] as Value, name: `local '${name}'`, target, slot };
}

/** `table[key]`. */
function indexed(table: Expression, key: Expression, line: number): Expression {
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

/** Evaluates the table or the key of a target: now, or when it is set. */
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

/** `and` and `or`. */
function either(
  kind: string,
  { evaluate: left }: Expression,
  { evaluate: right }: Expression,
): Evaluate {
  const goesOn = kind === "and";
  return (frame) => {
    const value = left(frame);
    return isTrue(value) === goesOn ? right(frame) : value;
  };
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

/** `{ a, b }`. */
function listTable(listOfItems: (frame: Frame) => Value[]): Evaluate {
  return (frame) => {
    const list = listOfItems(frame);
    if (!list.includes(undefined)) return new LuaTable(list);
    const table = new LuaTable();
    list.forEach((value, at) => value !== undefined && table.set(at + 1, value));
    return table;
  };
}

/** The values of several expressions: all of the last one, the first of each other. */
export function listOf(expressions: readonly Expression[]): (frame: Frame) => Value[] {
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
