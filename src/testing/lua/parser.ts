/**
 * Reads a Lua source into a tree.
 *
 * @module
 */
import { FunctionScope } from "./scope.ts";
import { END, NAME, NUMBER, STRING, type Token, tokensOf } from "./tokens.ts";
import type { Block, Call, Expression, FunctionCode, Statement, Target, Variable } from "./tree.ts";
import { UnsupportedError } from "./values.ts";

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
const UNARY = 6;
/** What ends a block. */
const BLOCK_ENDS = ["end", "else", "elseif", "until", END];

/**
 * Reads a source.
 *
 * @param source The source, as a byte string.
 * @returns The code of the function that the source is the body of.
 * @throws {UnsupportedError} If it is no Lua, or has what this implementation has not.
 */
export function parse(source: string): FunctionCode {
  return new Parser(tokensOf(source)).main();
}

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;
  #nesting = 0;
  #loops = 0;
  #scope = new FunctionScope();
  #rest: Variable | undefined;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  main(): FunctionCode {
    const body = this.#block();
    if (this.#token.kind !== END) throw this.#unexpected();
    return { parameters: [], rest: undefined, captures: [], size: this.#scope.finish(), body };
  }

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
    const found = kind === NAME ? `'${text}'` : kind === NUMBER ? "a number" : `'${kind}'`;
    return new UnsupportedError(
      wanted === undefined ? `${found} is unexpected` : `${found} in place of '${wanted}'`,
      line,
    );
  }

  #nested<T>(read: () => T): T {
    if (++this.#nesting > NESTING_MAX) {
      throw new UnsupportedError(`more than ${NESTING_MAX} levels of nesting`, this.#token.line);
    }
    const result = read();
    this.#nesting--;
    return result;
  }

  // Statements

  #block(): Block {
    return this.#scope.block(() => this.#statements());
  }

  #statements(): Block {
    const statements: Statement[] = [];
    while (!BLOCK_ENDS.includes(this.#token.kind)) {
      const statement = this.#nested(() => this.#statement());
      statements.push(statement);
      this.#skip(";");
      const isLast = statement.kind === "return" || statement.kind === "break";
      if (isLast && !BLOCK_ENDS.includes(this.#token.kind)) throw this.#unexpected("end");
    }
    return statements;
  }

  #loop(): Block {
    this.#loops++;
    const body = this.#block();
    this.#loops--;
    return body;
  }

  #statement(): Statement {
    switch (this.#token.kind) {
      case "local":
        return this.#local();
      case "if":
        return this.#if();
      case "for":
        return this.#for();
      case "while": {
        this.#next();
        const test = this.#expression();
        this.#expect("do");
        const body = this.#loop();
        this.#expect("end");
        return { kind: "while", test, body };
      }
      case "do": {
        this.#next();
        const body = this.#block();
        this.#expect("end");
        return { kind: "do", body };
      }
      case "repeat":
        return this.#repeat();
      case "return":
        this.#next();
        return { kind: "return", values: this.#returned() };
      case "break":
        if (this.#loops === 0) throw this.#unexpected();
        this.#next();
        return { kind: "break" };
      case "function":
        throw new UnsupportedError("a global function", this.#token.line);
      default:
        return this.#assignmentOrCall();
    }
  }

  #returned(): Expression[] {
    if (this.#token.kind === ";" || BLOCK_ENDS.includes(this.#token.kind)) return [];
    return this.#expressions();
  }

  #local(): Statement {
    const { line } = this.#next();
    if (this.#skip("function")) {
      const variable = this.#scope.create(this.#expect(NAME).text, line);
      this.#scope.show(variable);
      return { kind: "function", variable, code: this.#function() };
    }
    const variables = this.#names();
    const values = this.#skip("=") ? this.#expressions() : [];
    this.#scope.show(...variables);
    return { kind: "local", variables, values };
  }

  #names(): Variable[] {
    const variables: Variable[] = [];
    do variables.push(this.#scope.create(this.#expect(NAME).text, this.#line)); while (
      this.#skip(",")
    );
    return variables;
  }

  #if(): Statement {
    const tests: Expression[] = [];
    const bodies: Block[] = [];
    do {
      this.#next();
      tests.push(this.#expression());
      this.#expect("then");
      bodies.push(this.#block());
    } while (this.#token.kind === "elseif");
    if (this.#skip("else")) bodies.push(this.#block());
    this.#expect("end");
    return { kind: "if", tests, bodies };
  }

  #for(): Statement {
    const { line } = this.#next();
    return this.#scope.block((): Statement => {
      const variables = this.#names();
      const isNumeric = variables.length === 1 && this.#skip("=");
      if (!isNumeric) this.#expect("in");
      const values = this.#expressions();
      const [from, to, by] = values;
      if (isNumeric && (!to || values.length > 3)) throw this.#unexpected("do");
      const start = this.#expect("do");
      this.#scope.show(...variables);
      const body = this.#loop();
      this.#expect("end");
      if (!isNumeric) return { kind: "for", variables, values, body, line };
      return { kind: "numeric", variable: variables[0], from, to, by, body, line: start.line };
    });
  }

  /** The test sees the variables of the body. */
  #repeat(): Statement {
    this.#next();
    return this.#scope.block(() => {
      this.#loops++;
      const body = this.#statements();
      this.#loops--;
      this.#expect("until");
      return { kind: "repeat", body, test: this.#expression() };
    });
  }

  #assignmentOrCall(): Statement {
    const expression = this.#suffixed();
    if (expression.kind === "call") return { kind: "call", call: expression };
    const targets = [this.#target(expression)];
    while (this.#skip(",")) targets.push(this.#target(this.#suffixed()));
    this.#expect("=");
    return { kind: "assignment", targets, values: this.#expressions() };
  }

  #target(expression: Expression): Target {
    if (expression.kind === "variable" || expression.kind === "index") return expression;
    if (expression.kind !== "global") throw this.#unexpected();
    throw new UnsupportedError(`the global variable '${expression.name}'`, expression.line);
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
        left = joined(operator, left, right, this.#line);
      }
    });
  }

  #unary(): Expression {
    const operator = this.#token.kind;
    if (operator !== "not" && operator !== "-" && operator !== "#") return this.#simple();
    this.#next();
    const operand = this.#expression(UNARY);
    if (operator === "-" && operand.kind === "constant" && typeof operand.value === "number") {
      return { kind: "constant", value: -operand.value };
    }
    return { kind: "unary", operator, operand, line: this.#line };
  }

  #simple(): Expression {
    const { kind, text, number } = this.#token;
    switch (kind) {
      case "nil":
      case "true":
      case "false":
        this.#next();
        return { kind: "constant", value: kind === "nil" ? undefined : kind === "true" };
      case NUMBER:
        this.#next();
        return { kind: "constant", value: number };
      case STRING:
        this.#next();
        return { kind: "constant", value: text };
      case "{":
        return this.#table();
      case "function":
        this.#next();
        return { kind: "function", code: this.#function() };
      case "...":
        if (!this.#rest) throw new UnsupportedError("'...' of the script itself", this.#token.line);
        this.#next();
        return { kind: "varargs", slot: this.#rest };
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
        const key = { kind: "constant", value: this.#expect(NAME).text } as const;
        expression = { kind: "index", table: expression, key, line: this.#line };
      } else if (kind === "[") {
        this.#next();
        const key = this.#expression();
        this.#expect("]");
        expression = { kind: "index", table: expression, key, line: this.#line };
      } else if (kind === ":") {
        this.#next();
        expression = this.#call(expression, this.#expect(NAME).text);
      } else if (kind === "(" || kind === STRING || kind === "{") {
        expression = this.#call(expression);
      } else {
        return expression;
      }
    }
  }

  #primary(): Expression {
    const { kind, text, line } = this.#token;
    if (kind === "(") {
      this.#next();
      const inner = this.#expression();
      this.#expect(")");
      return { kind: "parentheses", inner };
    }
    if (kind !== NAME) throw this.#unexpected();
    this.#next();
    const variable = this.#scope.find(text);
    return variable ? { kind: "variable", variable } : { kind: "global", name: text, line };
  }

  #call(callee: Expression, method?: string): Call {
    const { kind, text, line } = this.#token;
    let args: Expression[];
    if (kind === STRING) {
      this.#next();
      args = [{ kind: "constant", value: text }];
    } else if (kind === "{") {
      args = [this.#table()];
    } else {
      this.#expect("(");
      // Lua refuses this, because it may be the begin of a statement.
      if (line !== this.#tokens[this.#at - 2].line) {
        throw new UnsupportedError("a call on two lines", line);
      }
      args = this.#token.kind === ")" ? [] : this.#expressions();
      this.#expect(")");
    }
    return { kind: "call", callee, args, line, ...(method === undefined ? {} : { method }) };
  }

  #table(): Expression {
    const { line } = this.#expect("{");
    const items: Expression[] = [];
    const fields: (readonly [Expression, Expression, number])[] = [];
    while (this.#token.kind !== "}") {
      const { kind, text } = this.#token;
      if (kind === "[") {
        this.#next();
        const key = this.#expression();
        this.#expect("]");
        this.#expect("=");
        fields.push([key, this.#expression(), items.length]);
      } else if (kind === NAME && this.#tokens[this.#at + 1].kind === "=") {
        this.#at += 2;
        fields.push([{ kind: "constant", value: text }, this.#expression(), items.length]);
      } else {
        items.push(this.#expression());
      }
      if (!this.#skip(",") && !this.#skip(";")) break;
    }
    this.#expect("}");
    return { kind: "table", items, fields, line };
  }

  /** A function, from its parameters on. */
  #function(): FunctionCode {
    const outer = { scope: this.#scope, rest: this.#rest, loops: this.#loops };
    const scope = new FunctionScope(outer.scope);
    [this.#scope, this.#rest, this.#loops] = [scope, undefined, 0];
    const parameters: Variable[] = [];
    this.#expect("(");
    while (this.#token.kind !== ")") {
      if (this.#token.kind === "...") {
        this.#rest = scope.create("...", this.#next().line);
        break;
      }
      parameters.push(scope.create(this.#expect(NAME).text, this.#line));
      if (!this.#skip(",")) break;
      if (this.#token.kind === ")") throw this.#unexpected(NAME);
    }
    this.#expect(")");
    scope.show(...parameters);
    const body = this.#block();
    this.#expect("end");
    const size = scope.finish();
    const code = { parameters, rest: this.#rest, captures: scope.captures, size, body };
    [this.#scope, this.#rest, this.#loops] = [outer.scope, outer.rest, outer.loops];
    return code;
  }
}

function joined(operator: string, left: Expression, right: Expression, line: number): Expression {
  if (operator !== "..") return { kind: "binary", operator, left, right, line };
  // Only what stands to the right belongs to the chain: it has been read before.
  if (right.kind !== "concatenation") {
    return { kind: "concatenation", operands: [left, right], line };
  }
  return { ...right, operands: [left, ...right.operands] };
}
