/**
 * The tokens of a Lua source.
 *
 * @module
 */
import { UnsupportedError } from "./values.ts";

/** A token: a keyword or a sign by its own text, else what it is. */
export interface Token {
  readonly kind: string;
  /** The name, or the text of a string. */
  readonly text: string;
  readonly number: number;
  /** The line in which it ends, from 1. */
  readonly line: number;
}

/** The kinds of tokens that are not their own text. */
export const NAME = "a name", STRING = "a string", NUMBER = "a number", END = "the end";

const KEYWORDS = new Set(
  ("and break do else elseif end false for function if in local nil not or repeat return then " +
    "true until while").split(" "),
);
const SPACE = /[ \t-\r]+|--(?!\[=*\[)[^\n]*/uy;
const LONG = /(--)?\[(=*)\[\n?([^]*?)\]\2\]/uy;
const WORD = /[A-Za-z_]\w*/uy;
const NUMERAL = /(?:0x[\da-f]{1,13}|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(?![\w.])/iuy;
const QUOTED = /(["'])((?:\\[^]|(?!\1)[^\\\r\n])*)\1/uy;
const SIGN = /\.{1,3}|[<>=~]=|[-+*/%^#<>=(){}[\];:,]/uy;
const ESCAPE = /\\(\d{1,3}|[^])/gu;
const ESCAPES: Readonly<Record<string, string>> = {
  ...{ a: "\x07", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" },
};

/**
 * Splits a source into tokens.
 *
 * @param source The source, as a byte string.
 * @returns The tokens, and {@linkcode END} behind them.
 * @throws {UnsupportedError} If something is no token.
 */
export function tokensOf(source: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  let line = 1;
  const take = (pattern: RegExp) => {
    pattern.lastIndex = at;
    const match = pattern.exec(source);
    if (!match) return undefined;
    at = pattern.lastIndex;
    for (const byte of match[0]) if (byte === "\n") line++;
    return match;
  };
  const add = (kind: string, text = "", number = 0) => tokens.push({ kind, text, number, line });
  while (at < source.length) {
    if (take(SPACE)) continue;
    let match = take(LONG);
    if (match) {
      if (match[1] !== undefined) continue;
      if (match[3].includes("\r")) {
        throw new UnsupportedError("a carriage return in a string", line);
      }
      add(STRING, match[3]);
    } else if ((match = take(WORD))) {
      if (KEYWORDS.has(match[0])) add(match[0]);
      else add(NAME, match[0]);
    } else if ((match = take(NUMERAL))) {
      add(NUMBER, "", Number(match[0]));
    } else if ((match = take(QUOTED))) {
      add(STRING, unescaped(match[2], line));
    } else if ((match = take(SIGN))) {
      add(match[0]);
    } else {
      throw new UnsupportedError(`'${source[at].replace(/[^!-~]/u, "?")}' begins no token`, line);
    }
  }
  add(END);
  return tokens;
}

function unescaped(text: string, line: number): string {
  return text.replace(ESCAPE, (_, escaped: string) => {
    if (!/^\d/u.test(escaped)) return ESCAPES[escaped] ?? escaped;
    const code = Number(escaped);
    if (code > 255) throw new UnsupportedError(`the escape sequence '\\${escaped}'`, line);
    return String.fromCharCode(code);
  });
}
