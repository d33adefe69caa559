/**
 * The tokens of a Lua source, and who reads them one after the other.
 *
 * @module
 */
import { UnsupportedError } from "./values.ts";

/** A token: a keyword or a sign by its own text, else what it is. */
export interface Token {
  readonly kind: string;
  /** Its text; that of a string without quotes. */
  readonly text: string;
  /** The line in which it ends, from 1. */
  readonly line: number;
}

/** The kinds of tokens that are not their own text. */
export const NAME = "a name", STRING = "a string", NUMBER = "a number", END = "the end";

const KEYWORDS = new Set(
  ("and break do else elseif end false for function if in local nil not or repeat return then " +
    "true until while").split(" "),
);
/** A token, or what stands between tokens. */
const TOKEN = new RegExp(
  [
    /[ \t-\r]+|--(?!\[=*\[)[^\n]*/u,
    /(?<comment>--)?\[(?<level>=*)\[\n?(?<long>[^]*?)\]\k<level>\]/u,
    /(?<word>[A-Za-z_]\w*)/u,
    /(?<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])/u,
    /(?<quote>["'])(?<quoted>(?:\\[^]|(?!\k<quote>)[^\\\r\n])*)\k<quote>/u,
    /(?<sign>\.{1,3}|[<>=~]=|[-+*\/%^#<>=(){}[\];:,])/u,
  ].map(({ source }) => source).join("|"),
  "uy",
);
/** Most blocks and expressions inside each other. */
const NESTING_MAX = 150;
const ESCAPES = new Map(
  Object.entries({ n: "\n", r: "\r", t: "\t", "\\": "\\", '"': '"', "'": "'" }),
);

/** Splits a source into tokens; behind them is {@linkcode END}. */
function tokensOf(source: string): Token[] {
  const tokens: Token[] = [];
  let line = 1;
  const add = (kind: string, text: string) => tokens.push({ kind, text, line });
  for (let at = 0; at < source.length; at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(source);
    if (!match) {
      const [text] = /^[^ \t-\r]{1,20}/u.exec(source.slice(at))!;
      throw new UnsupportedError(`'${text.replace(/[^ -~]/gu, "?")}' at this place`, line);
    }
    line += match[0].split("\n").length - 1;
    const { comment, long, word, number, quoted, sign } = match.groups!;
    if (long?.includes("\r") && !comment) {
      throw new UnsupportedError("a carriage return in a string", line);
    }
    if (long !== undefined && !comment) add(STRING, long);
    if (word !== undefined) add(KEYWORDS.has(word) ? word : NAME, word);
    if (number !== undefined) add(NUMBER, number);
    if (quoted !== undefined) add(STRING, unescaped(quoted, line));
    if (sign !== undefined) add(sign, sign);
  }
  add(END, "the end");
  return tokens;
}

function unescaped(text: string, line: number): string {
  return text.replace(/\\([^])/gu, (sequence, escaped: string) => {
    const meant = ESCAPES.get(escaped);
    if (meant !== undefined) return meant;
    throw new UnsupportedError(`the escape sequence '${sequence.replace("\n", "\\n")}'`, line);
  });
}

/** Reads the tokens of a source. */
export class TokenReader {
  readonly #tokens: readonly Token[];
  #at = 0;
  #nesting = 0;

  /** @param source The source, as a byte string. */
  constructor(source: string) {
    this.#tokens = tokensOf(source);
  }

  /** The token that is next. */
  get token(): Token {
    return this.#tokens[this.#at];
  }

  /** The kind of the one behind it. */
  get kindBehind(): string | undefined {
    return this.#tokens[this.#at + 1]?.kind;
  }

  /** The line of the token before. */
  get line(): number {
    return this.#tokens[Math.max(0, this.#at - 1)].line;
  }

  next(): Token {
    return this.#tokens[this.#at++];
  }

  skip(kind: string): boolean {
    if (this.token.kind !== kind) return false;
    this.#at++;
    return true;
  }

  expect(kind: string): Token {
    if (this.token.kind === kind) return this.next();
    throw this.unexpected(kind);
  }

  unexpected(wanted?: string): UnsupportedError {
    const { kind, text } = this.token;
    const found = kind === STRING ? kind : `'${text}'`;
    return this.unsupported(
      `${found} ${wanted === undefined ? "at this place" : `in place of '${wanted}'`}`,
    );
  }

  unsupported(what: string): UnsupportedError {
    return new UnsupportedError(what, this.token.line);
  }

  nested<T>(read: () => T): T {
    if (++this.#nesting > NESTING_MAX) {
      throw this.unsupported(`more than ${NESTING_MAX} levels of nesting`);
    }
    const result = read();
    this.#nesting--;
    return result;
  }
}
