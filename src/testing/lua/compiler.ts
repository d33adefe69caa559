/**
 * Compiles a Lua source to closures while it reads it, so that nothing is looked up by name when a
 * script runs, and no source is evaluated by the runtime, which not all runtimes allow.
 *
 * The closures are in `closures.ts`.
 *
 * @module
 */
import {
  assignment,
  binary,
  BREAK,
  call,
  choice,
  constant,
  type Evaluate,
  type Execute,
  type Expression,
  fieldsTable,
  forItems,
  forNumbers,
  functionOf,
  indexed,
  listTable,
  locals,
  loop,
  methodCall,
  returned,
  sequence,
  untilTrue,
  variable,
  whileTrue,
} from "./closures.ts";
import { BASE } from "./libraries.ts";
import { UNARY } from "./operators.ts";
import { REDIS } from "./redis_library.ts";
import { END, NAME, NUMBER, STRING, type Token, tokensOf } from "./tokens.ts";
import { type LuaFunction, machine, UnsupportedError } from "./values.ts";

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

/** Most variables of one function. */
const VARIABLES_MAX = 200;
/** Most blocks and expressions inside each other. */
const NESTING_MAX = 150;
/** How strongly operators bind: those of a row more than those before it. */
const PRECEDENCES: readonly (readonly string[])[] = [
  ["or"],
  ["and"],
  ["<", ">", "<=", ">=", "~=", "=="],
  [".."],
  ["+", "-"],
  ["*", "/", "%"],
  [], // the operators with one operand
  ["^"],
];
const UNARY_PRECEDENCE = 6;
/** What ends a block. */
const BLOCK_ENDS = ["end", "else", "elseif", "until", END];

/**
 * Compiles a source.
 *
 * @param source The source, as a byte string.
 * @returns A function that runs it.
 * @throws {UnsupportedError} If it is no Lua, or has what this implementation has not.
 */
export function compile(source: string): LuaFunction {
  return new Compiler(tokensOf(source)).main();
}

class Compiler {
  readonly #tokens: readonly Token[];
  #at = 0;
  #nesting = 0;
  #scope: Scope = { visible: [], outer: undefined, size: 1, loops: 0 };

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  main(): LuaFunction {
    const body = this.#block();
    if (this.#token.kind !== END) throw this.#unexpected();
    return functionOf(0, this.#scope.size, body)(undefined);
  }

  // Tokens

  get #token(): Token {
    return this.#tokens[this.#at];
  }

  /** The line of the token before. */
  get #line(): number {
    return this.#tokens[Math.max(0, this.#at - 1)].line;
  }

  #next(): Token {
    return this.#tokens[this.#at++];
  }

  #skip(kind: string): boolean {
    if (this.#token.kind !== kind) return false;
    this.#at++;
    return true;
  }

  #expect(kind: string): Token {
    if (this.#token.kind === kind) return this.#next();
    throw this.#unexpected(kind);
  }

  #unexpected(wanted?: string): UnsupportedError {
    const { kind, text, line } = this.#token;
    const found = kind === STRING ? kind : `'${text}'`;
    const where = wanted === undefined ? "at this place" : `in place of '${wanted}'`;
    return new UnsupportedError(`${found} ${where}`, line);
  }

  #unsupported(what: string): UnsupportedError {
    return new UnsupportedError(what, this.#token.line);
  }

  #nested<T>(read: () => T): T {
    if (++this.#nesting > NESTING_MAX) {
      throw this.#unsupported(`more than ${NESTING_MAX} levels of nesting`);
    }
    const result = read();
    this.#nesting--;
    return result;
  }

  // Variables

  /** Makes a variable, which is visible up to the end of the block; returns its slot. */
  #declare(name: string): number {
    const scope = this.#scope;
    const slot = scope.size++;
    if (slot > VARIABLES_MAX) {
      throw this.#unsupported(`more than ${VARIABLES_MAX} variables in a function`);
    }
    scope.visible.push({ name, slot });
    return slot;
  }

  /** What is declared in it is not visible behind it. */
  #scoped<T>(read: () => T): T {
    const { visible } = this.#scope;
    const { length } = visible;
    const result = read();
    visible.length = length;
    return result;
  }

  #local(text: string): Expression | undefined {
    let scope: Scope | undefined = this.#scope;
    for (let depth = 0; scope; scope = scope.outer, depth++) {
      const found = scope.visible.findLast(({ name }) => name === text);
      if (found) return variable(depth, found.slot, text);
    }
    return undefined;
  }

  #variable({ text, line }: Token): Expression {
    const local = this.#local(text);
    if (local) return local;
    const name = `global '${text}'`;
    if (text === "KEYS") return { evaluate: () => machine.keys, name };
    if (text === "ARGV") return { evaluate: () => machine.args, name };
    if (text === "redis") return { ...constant(REDIS), name };
    if (Object.hasOwn(BASE, text)) return { ...constant(BASE[text]), name };
    throw new UnsupportedError(`the global variable '${text}'`, line);
  }

  // Statements

  #block(): Execute {
    return this.#scoped(() => this.#statements());
  }

  #statements(): Execute {
    const statements: Execute[] = [];
    while (!BLOCK_ENDS.includes(this.#token.kind)) {
      const { kind } = this.#token;
      statements.push(this.#nested(() => this.#statement()));
      this.#skip(";");
      const isLast = kind === "return" || kind === "break";
      if (isLast && !BLOCK_ENDS.includes(this.#token.kind)) throw this.#unexpected("end");
    }
    return sequence(statements);
  }

  #statement(): Execute {
    switch (this.#token.kind) {
      case "local":
        return this.#declaration();
      case "if":
        return this.#if();
      case "for":
        return this.#for();
      case "while":
        return this.#while();
      case "repeat":
        return this.#repeat();
      case "do":
        return this.#body("do");
      case "return":
        return this.#return();
      case "break":
        if (this.#scope.loops === 0) throw this.#unexpected();
        this.#next();
        return () => BREAK;
      case "function":
        throw this.#unsupported("a global function");
      default:
        return this.#assignmentOrCall();
    }
  }

  /** A block from a keyword to `end`. */
  #body(start: string): Execute {
    this.#expect(start);
    const block = this.#block();
    this.#expect("end");
    return block;
  }

  /** Reads the body of a loop. */
  #looped<T>(read: () => T): T {
    this.#scope.loops++;
    const result = read();
    this.#scope.loops--;
    return result;
  }

  #declaration(): Execute {
    this.#next();
    if (this.#skip("function")) {
      const slot = this.#declare(this.#expect(NAME).text); // first: the function can call itself
      const { evaluate } = this.#function();
      return (frame) => void (frame[slot] = evaluate(frame));
    }
    const names = this.#names();
    const values = this.#skip("=") ? this.#expressions() : [];
    return locals(names.map((name) => this.#declare(name)), values);
  }

  #names(): string[] {
    const names: string[] = [];
    do names.push(this.#expect(NAME).text); while (this.#skip(","));
    return names;
  }

  #if(): Execute {
    const tests: Evaluate[] = [];
    const blocks: Execute[] = [];
    do {
      this.#next();
      tests.push(this.#expression().evaluate);
      this.#expect("then");
      blocks.push(this.#block());
    } while (this.#token.kind === "elseif");
    const otherwise = this.#skip("else") ? this.#block() : undefined;
    this.#expect("end");
    return choice(tests, blocks, otherwise);
  }

  #while(): Execute {
    const site = { line: this.#next().line };
    const { evaluate } = this.#expression();
    return loop(whileTrue(evaluate), this.#looped(() => this.#body("do")), site);
  }

  /** The test sees the variables of the body. */
  #repeat(): Execute {
    const site = { line: this.#next().line };
    return this.#scoped(() =>
      this.#looped(() => {
        const body = this.#statements();
        this.#expect("until");
        return loop(untilTrue(this.#expression().evaluate), body, site);
      })
    );
  }

  #for(): Execute {
    this.#next();
    return this.#scoped(() => {
      const names = this.#names();
      return names.length === 1 && this.#skip("=")
        ? this.#numericFor(names[0])
        : this.#forIn(names);
    });
  }

  #numericFor(name: string): Execute {
    const limits = this.#expressions().map(({ evaluate }) => evaluate);
    if (limits.length < 2 || limits.length > 3) throw this.#unexpected("do");
    const site = { line: this.#token.line };
    const slot = this.#declare(name);
    return loop(forNumbers(slot, limits, site), this.#looped(() => this.#body("do")), site);
  }

  /** A loop over `ipairs`, or over `pairs` of a list. */
  #forIn(names: readonly string[]): Execute {
    this.#expect("in");
    const { text: how, line } = this.#next();
    const isKnown = (how === "ipairs" || how === "pairs") && !this.#local(how);
    const list = isKnown && this.#token.kind === "(" ? this.#arguments() : [];
    if (list.length !== 1 || names.length > 2) {
      throw this.#unsupported("a loop of another form than 'for index, item in ipairs(list) do'");
    }
    const slots = names.map((name) => this.#declare(name));
    const items = forItems(how, list[0].evaluate, slots, { line });
    return loop(items, this.#looped(() => this.#body("do")), { line });
  }

  #return(): Execute {
    this.#next();
    if (this.#token.kind === ";" || BLOCK_ENDS.includes(this.#token.kind)) return () => [];
    return returned(this.#expressions());
  }

  #assignmentOrCall(): Execute {
    const expressions = [this.#suffixed()];
    const [{ evaluateAll: call }] = expressions;
    if (call) return (frame) => void call(frame);
    while (this.#skip(",")) expressions.push(this.#suffixed());
    const slots = expressions.map(({ slot }) => slot);
    const targets = expressions.map(({ target }, at) => {
      if (!target) throw this.#unexpected();
      return target(slots.slice(at + 1)); // the last is set first
    });
    this.#expect("=");
    return assignment(targets, this.#expressions());
  }

  // Expressions

  #expressions(): Expression[] {
    const list = [this.#expression()];
    while (this.#skip(",")) list.push(this.#expression());
    return list;
  }

  #expression(weakest = 0): Expression {
    return this.#nested(() => {
      let left = this.#unary();
      for (;;) {
        const operator = this.#token.kind;
        const precedence = PRECEDENCES.findIndex((operators) => operators.includes(operator));
        if (precedence < weakest) return left;
        this.#next();
        // Those that bind from the right take what is as strong as themselves.
        const fromRight = operator === ".." || operator === "^";
        const right = this.#expression(fromRight ? precedence : precedence + 1);
        const names = [left.name, right.name] as const;
        left = { evaluate: binary(operator, left, right, { line: this.#line, names }) };
      }
    });
  }

  #unary(): Expression {
    const operator = this.#token.kind;
    if (!Object.hasOwn(UNARY, operator)) return this.#simple();
    this.#next();
    const { evaluate, constant: known, name } = this.#expression(UNARY_PRECEDENCE);
    const site = { line: this.#line, name };
    const operate = UNARY[operator];
    if (operator === "-" && typeof known?.[0] === "number") {
      // Lua takes the constants 0 and -0 of a function for one.
      if (known[0] === 0) throw this.#unsupported("'-0'");
      return constant(-known[0]);
    }
    return { evaluate: (frame) => operate(evaluate(frame), site) };
  }

  #simple(): Expression {
    const { kind, text } = this.#token;
    switch (kind) {
      case "nil":
      case "true":
      case "false":
        this.#next();
        return constant(kind === "nil" ? undefined : kind === "true");
      case NUMBER:
        this.#next();
        return constant(Number(text));
      case STRING:
        this.#next();
        return constant(text);
      case "{":
        return this.#table();
      case "function":
        this.#next();
        return this.#function();
      case "...":
        throw this.#unsupported("'...'");
      default:
        return this.#suffixed();
    }
  }

  #suffixed(): Expression {
    let expression = this.#primary();
    for (;;) {
      const { kind } = this.#token;
      if (kind === ".") {
        this.#next();
        expression = indexed(expression, constant(this.#expect(NAME).text), this.#line);
      } else if (kind === "[") {
        this.#next();
        const key = this.#expression();
        this.#expect("]");
        expression = indexed(expression, key, this.#line);
      } else if (kind === ":") {
        this.#next();
        const method = this.#expect(NAME).text;
        const { line } = this.#token;
        expression = methodCall(expression, method, this.#arguments(), line);
      } else if (kind === "(") {
        const { line } = this.#token;
        expression = call(expression, this.#arguments(), line);
      } else if (kind === STRING || kind === "{") {
        throw this.#unsupported("a call without parentheses");
      } else {
        return expression;
      }
    }
  }

  #primary(): Expression {
    const token = this.#next();
    if (token.kind === NAME) return this.#variable(token);
    if (token.kind !== "(") {
      this.#at--;
      throw this.#unexpected();
    }
    const { evaluate, name, slot } = this.#expression();
    this.#expect(")");
    return { evaluate, name, slot };
  }

  #arguments(): Expression[] {
    const { line } = this.#expect("(");
    // Lua refuses this, because it may be the begin of a statement.
    if (line !== this.#tokens[this.#at - 2].line) {
      throw new UnsupportedError("a call on two lines", line);
    }
    const args = this.#token.kind === ")" ? [] : this.#expressions();
    this.#expect(")");
    return args;
  }

  /** A list, or a table of fields. */
  #table(): Expression {
    const { line } = this.#expect("{");
    const items: Expression[] = [];
    const keys: Evaluate[] = [];
    while (this.#token.kind !== "}") {
      if (this.#skip("[")) {
        keys.push(this.#expression().evaluate);
        this.#expect("]");
        this.#expect("=");
      } else if (this.#token.kind === NAME && this.#tokens[this.#at + 1].kind === "=") {
        keys.push(constant(this.#next().text).evaluate);
        this.#next();
      }
      items.push(this.#expression());
      if (!this.#skip(",") && !this.#skip(";")) break;
    }
    this.#expect("}");
    if (keys.length === 0) return { evaluate: listTable(items) };
    if (keys.length < items.length) throw this.#unsupported("items and fields in one table");
    return { evaluate: fieldsTable(keys, items, { line }) };
  }

  /** A function, from its parameters on. */
  #function(): Expression {
    if (this.#scope.loops > 0) throw this.#unsupported("a function in a loop");
    const scope: Scope = { visible: [], outer: this.#scope, size: 1, loops: 0 };
    this.#scope = scope;
    this.#expect("(");
    if (this.#token.kind === "...") throw this.#unsupported("'...'");
    const parameters = this.#token.kind === ")" ? [] : this.#names();
    for (const name of parameters) this.#declare(name);
    const body = this.#body(")");
    this.#scope = scope.outer!;
    return { evaluate: functionOf(parameters.length, scope.size, body) };
  }
}
