/**
 * The tokens of a Lua source.
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
const ESCAPES = new Map(
  Object.entries({ n: "\n", r: "\r", t: "\t", "\\": "\\", '"': '"', "'": "'" }),
);

/**
 * Splits a source into tokens.
 *
 * @param source The source, as a byte string.
 * @returns The tokens, and {@linkcode END} behind them.
 * @throws {UnsupportedError} If something is no token.
 */
export function tokensOf(source: string): Token[] {
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
