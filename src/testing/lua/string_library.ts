/**
 * The library `string`.
 *
 * @module
 */
import { badArgument, integerAt, numberAt, textAt } from "./arguments.ts";
import { fixed, general } from "./numbers.ts";
import { type LuaMatch, patternOf } from "./pattern.ts";
import {
  bounded,
  checkResults,
  first,
  keeping,
  Library,
  listOf,
  LuaTable,
  step,
  UnsupportedError,
  type Value,
} from "./values.ts";

/** Signs without which a pattern is plain text; a zero byte is refused with the others. */
const SPECIAL = /[\0^$*+?.([%-]/u;
/** One conversion of `format`. */
const CONVERSION = /%(?:%|(0?)(\d{0,2})(?:\.(\d{1,2}))?([A-Za-z])|[^]?)/gu;
/** Integers of 32 bits end here: greater ones are written in ways of their own. */
const UINT32_END = 2 ** 32;

/** The library, whose functions are the methods of strings too. */
export const STRING_METHODS = new Library("string", {
  byte: (args) => {
    const text = textAt(args, 0);
    const from = position(integerAt(args, 1, 1), text);
    const to = Math.min(position(integerAt(args, 2, from), text), text.length);
    const bytes = text.slice(Math.max(0, from - 1), Math.max(0, to));
    checkResults(bytes.length);
    return [...bytes].map((byte) => byte.charCodeAt(0));
  },
  char: (args) =>
    args.map((_, at) => {
      const code = integerAt(args, at);
      if (code < 0 || code > 255) badArgument(at, "invalid value");
      return String.fromCharCode(code);
    }).join(""),
  find: (args) => find(args, true),
  format,
  gmatch: (args) => {
    const [text, pattern] = [textAt(args, 0), patternOf(textAt(args, 1))];
    if (pattern.isAnchored) throw new UnsupportedError("an anchor in a pattern of 'gmatch'");
    let at = 0;
    return () => {
      const match = at > text.length ? undefined : pattern.find(text, at);
      if (!match) return undefined;
      at = Math.max(match.start + 1, match.end);
      return captures(match);
    };
  },
  gsub: substitute,
  len: (args) => textAt(args, 0).length,
  lower: (args) => textAt(args, 0).replace(/[A-Z]/gu, (byte) => byte.toLowerCase()),
  match: (args) => find(args, false),
  rep: (args) => {
    const [text, count] = [textAt(args, 0), Math.max(0, integerAt(args, 1))];
    if (text.length * count > 0) bounded({ length: text.length * count } as string);
    return text.length === 0 ? "" : text.repeat(count);
  },
  reverse: (args) => [...textAt(args, 0)].reverse().join(""),
  sub: (args) => {
    const text = textAt(args, 0);
    const from = position(integerAt(args, 1), text);
    const to = position(integerAt(args, 2, -1), text);
    return text.slice(Math.max(0, from - 1), to);
  },
  upper: (args) => textAt(args, 0).replace(/[a-z]/gu, (byte) => byte.toUpperCase()),
});

/** A position as it counts from the start; negative ones count from the end. */
function position(at: number, text: string): number {
  return at >= 0 ? at : Math.max(0, text.length + at + 1);
}

function find(args: Value[], isFind: boolean): Value | Value[] {
  const [text, wanted] = [textAt(args, 0), textAt(args, 1)];
  const from = Math.min(Math.max(0, position(integerAt(args, 2, 1), text) - 1), text.length);
  const isPlain = args[3] !== undefined && args[3] !== false;
  if (isFind && (isPlain || !SPECIAL.test(wanted))) {
    const at = text.indexOf(wanted, from);
    return at === -1 ? undefined : [at + 1, at + wanted.length];
  }
  const match = patternOf(wanted).find(text, from);
  if (!match) return undefined;
  if (!isFind) return captures(match);
  return [match.start + 1, match.end, ...match.captures];
}

/** What a match captured: the whole match if it has no captures. */
function captures({ text, captures }: LuaMatch): Value | Value[] {
  return captures.length === 0 ? text : captures.length === 1 ? captures[0] : captures;
}

function substitute(args: Value[]): Value[] {
  const [text, pattern] = [textAt(args, 0), patternOf(textAt(args, 1))];
  const by = typeof args[2] === "number" ? textAt(args, 2) : args[2];
  if (typeof by !== "string" && typeof by !== "function" && !(by instanceof LuaTable)) {
    badArgument(2, "string/function/table expected");
  }
  const limit = integerAt(args, 3, Infinity);
  let [result, at, count] = ["", 0, 0];
  while (count < limit) {
    step();
    const match = pattern.find(text, at);
    if (!match) break;
    result += text.slice(at, match.start) + replacement(by as Value, match);
    count++;
    at = match.end;
    if (match.text === "") result += text.slice(at, ++at);
    if (at > text.length || pattern.isAnchored) break;
  }
  return [bounded(result + text.slice(at)), count];
}

function replacement(by: Value, match: LuaMatch): string {
  if (typeof by === "string") {
    return by.replace(/%([^])?/gu, (part, sign: string | undefined) => {
      if (sign === undefined || !/\d/u.test(sign)) return sign ?? "\0";
      if (sign === "0") return match.text;
      const found = listOf(captures(match))[Number(sign) - 1];
      return found === undefined ? badCapture(part) : textAt([found], 0);
    });
  }
  const capture = first(captures(match));
  const value = typeof by === "function"
    ? first(by([...listOf(captures(match))]))
    : (by as LuaTable).get(capture);
  if (value === undefined || value === false) return match.text;
  if (typeof value === "string" || typeof value === "number") return textAt([value], 0);
  throw new UnsupportedError("a replacement that is no text");
}

function badCapture(part: string): never {
  throw new UnsupportedError(`'${part}' in the replacement of 'gsub'`);
}

/** One conversion of a format. */
interface Conversion {
  readonly text: string;
  readonly letter: string | undefined;
  readonly width: number;
  readonly precision: number | undefined;
  readonly hasZeros: boolean;
}

function format(args: Value[]): string {
  let [result, at] = ["", 0];
  for (const part of partsOf(textAt(args, 0))) {
    if (typeof part === "string") {
      result += part;
      continue;
    }
    if (++at >= args.length) badArgument(at, "no value");
    const { letter, width, precision, hasZeros } = part;
    const text = converted(args, at, letter, precision);
    if (text === undefined || hasZeros && !/^[dfg]$/u.test(letter!)) {
      throw new UnsupportedError(`'${part.text}' in a format`);
    }
    const sign = hasZeros && text.startsWith("-") ? "-" : "";
    result += sign + text.slice(sign.length).padStart(width - sign.length, hasZeros ? "0" : " ");
  }
  return bounded(result);
}

/** The texts and conversions of a format. */
const partsOf = keeping((format): readonly (string | Conversion)[] => {
  const parts: (string | Conversion)[] = [];
  let at = 0;
  for (const match of format.matchAll(CONVERSION)) {
    const [text, zero, width = "", precision, letter] = match;
    parts.push(format.slice(at, match.index));
    at = match.index + text.length;
    parts.push(
      text === "%%" ? "%" : {
        text,
        letter,
        width: Number(width),
        precision: precision === undefined ? undefined : Number(precision),
        hasZeros: zero === "0",
      },
    );
  }
  parts.push(format.slice(at));
  return parts;
});

/** One argument in one format; `undefined` if the format is unknown. */
function converted(
  args: Value[],
  at: number,
  letter: string | undefined,
  precision: number | undefined,
): string | undefined {
  switch (letter) {
    case "s": {
      const text = textAt(args, at);
      if (text.includes("\0")) throw new UnsupportedError("a zero byte in a format");
      return text.slice(0, precision);
    }
    case "d":
    case "i": {
      const number = numberAt(args, at);
      if (!Number.isSafeInteger(Math.trunc(number)) || precision !== undefined) return undefined;
      return String(Math.trunc(number) + 0);
    }
    case "f":
      return fixed(numberAt(args, at), precision ?? 6);
    case "g":
      return general(numberAt(args, at), precision ?? 6);
    case "x":
    case "X": {
      const number = numberAt(args, at);
      const isPlain = Number.isInteger(number) && number >= 0 && number < UINT32_END;
      if (!isPlain || precision !== undefined) return undefined;
      const text = number.toString(16);
      return letter === "X" ? text.toUpperCase() : text;
    }
    default:
      return undefined;
  }
}
