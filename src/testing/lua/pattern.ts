/**
 * Patterns of Lua as regular expressions on byte strings.
 *
 * Both try alternatives in the same order, so both find the same. What has no counterpart is
 * refused: `%b`, `%f`, references to captures, and zero bytes.
 *
 * @module
 */
import { literal } from "../commands/glob.ts";
import { keeping, UnsupportedError, type Value } from "./values.ts";

/** The members of each class of bytes. */
const CLASSES: Readonly<Record<string, string>> = {
  a: "A-Za-z",
  c: "\\x00-\\x1f\\x7f",
  d: "0-9",
  l: "a-z",
  p: "!-\\/:-@\\[-`{-~",
  s: "\\t-\\r ",
  u: "A-Z",
  w: "0-9A-Za-z",
  x: "0-9A-Fa-f",
  z: "\\x00",
};

/** A match of a pattern. */
export interface LuaMatch {
  /** Where it begins, from 0. */
  readonly start: number;
  readonly end: number;
  readonly text: string;
  readonly captures: Value[];
}

/** A compiled pattern. */
export class LuaPattern {
  /** Whether it matches at the first position only. */
  readonly isAnchored: boolean;
  readonly #expression: RegExp;
  /** The captures that are positions, from 1. */
  readonly #positions: readonly number[];

  constructor(pattern: string) {
    if (pattern.includes("\0")) throw refused(pattern, "a zero byte"); // Lua ends it there
    this.isAnchored = pattern[0] === "^";
    const { source, positions } = sourceOf(this.isAnchored ? pattern.slice(1) : pattern);
    this.#positions = positions;
    const flags = `${this.isAnchored ? "y" : "g"}${positions.length > 0 ? "d" : ""}`;
    this.#expression = new RegExp(source, flags);
  }

  /** The first match at or behind an index. */
  find(text: string, from: number): LuaMatch | undefined {
    this.#expression.lastIndex = from;
    const match = this.#expression.exec(text);
    if (!match) return undefined;
    const captures: Value[] = match.slice(1);
    for (const at of this.#positions) captures[at - 1] = match.indices![at]![0] + 1;
    return { start: match.index, end: match.index + match[0].length, text: match[0], captures };
  }
}

/** The compiled pattern. */
export const patternOf: (pattern: string) => LuaPattern = keeping((it) => new LuaPattern(it));

/** Translates a pattern, without the anchor at its begin. */
function sourceOf(pattern: string): { source: string; positions: readonly number[] } {
  const positions: number[] = [];
  let count = 0;
  let source = "";
  let open = 0;
  for (let at = 0; at < pattern.length;) {
    const byte = pattern[at];
    if (byte === "(") {
      count++;
      if (pattern[at + 1] === ")") positions.push(count);
      [source, open, at] = [`${source}(`, open + 1, at + 1];
    } else if (byte === ")") {
      if (open-- === 0) throw refused(pattern, "a parenthesis without the other one");
      [source, at] = [`${source})`, at + 1];
    } else if (byte === "$" && at === pattern.length - 1) {
      [source, at] = [`${source}(?![^])`, at + 1];
    } else {
      const end = itemEnd(pattern, at);
      source += itemSource(pattern.slice(at, end), pattern);
      at = end;
      if (pattern[at] === "-") source += "*?";
      else if (/^[*+?]/u.test(pattern.slice(at, at + 1))) source += pattern[at];
      else continue;
      at++;
    }
  }
  if (open > 0) throw refused(pattern, "a parenthesis without the other one");
  return { source, positions };
}

/** The end of what stands for one byte. */
function itemEnd(pattern: string, start: number): number {
  if (pattern[start] === "%") {
    if (start + 1 === pattern.length) throw refused(pattern, "a '%' at its end");
    return start + 2;
  }
  if (pattern[start] !== "[") return start + 1;
  let at = start + (pattern[start + 1] === "^" ? 2 : 1);
  do {
    if (at >= pattern.length) throw refused(pattern, "a set without its end");
    at += pattern[at] === "%" ? 2 : 1;
  } while (pattern[at] !== "]");
  return at + 1;
}

function itemSource(item: string, pattern: string): string {
  if (item === ".") return "[^]";
  if (item[0] === "[" && item.length > 1) return setSource(item, pattern);
  const [members, isNegated] = membersOf(item, pattern);
  return `[${isNegated ? "^" : ""}${members}]`;
}

function setSource(item: string, pattern: string): string {
  const isNegated = item[1] === "^";
  const parts = item.slice(isNegated ? 2 : 1, -1)
    .match(/%[^]|[^%]-[^]|[^]/gu) ?? [];
  const members = parts.map((part) => {
    if (part.length === 3) {
      return part[0] <= part[2] ? `${literal(part[0])}-${literal(part[2])}` : "";
    }
    const [inside, isOther] = membersOf(part, pattern);
    return isOther ? complement(inside) : inside;
  });
  return `[${isNegated ? "^" : ""}${members.join("")}]`;
}

/** The members of a class or a single byte, and whether all others are meant. */
function membersOf(item: string, pattern: string): [members: string, isNegated: boolean] {
  if (item[0] !== "%") return [literal(item), false];
  const letter = item[1].toLowerCase();
  if (!/[A-Za-z0-9]/u.test(item[1])) return [literal(item[1]), false];
  const members = CLASSES[letter];
  if (members === undefined) throw refused(pattern, `'${item}'`);
  return [members, item[1] !== letter];
}

/** The members of a class as all that are not in it, because a set cannot hold a negated one. */
function complement(members: string): string {
  const inside = new RegExp(`[${members}]`, "u");
  return Array.from({ length: 256 }, (_, code) => String.fromCharCode(code))
    .filter((byte) => !inside.test(byte)).map(literal).join("");
}

function refused(pattern: string, what: string): UnsupportedError {
  return new UnsupportedError(`${what} in the pattern '${pattern.replace(/[^ -~]/gu, "?")}'`);
}
