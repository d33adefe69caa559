/**
 * The functions of Lua without a library, and the libraries `math`, `string` and `table`.
 *
 * What lock scripts use is here; every other name is refused where a script has it.
 *
 * @module
 */
import { fixed, numberText, textOf, toNumber } from "./numbers.ts";
import { findPattern } from "./pattern.ts";
import {
  bounded,
  isTrue,
  Library,
  LuaError,
  LuaTable,
  machine,
  raise,
  typeName,
  UnsupportedError,
  type Value,
} from "./values.ts";

/** Most values that one call returns. */
const RESULTS_MAX = 7_000;
/** Signs without which a pattern is plain text; a zero byte is refused with the others. */
const SPECIAL = /[\0^$*+?.([%-]/u;
/** One conversion of `format`. */
const CONVERSION = /%(?:[%sd]|\.0f|[^A-Za-z]*[^]?)/gu;

/** The library `math`. */
export const MATH: Library = new Library("math", {
  abs: (args) => Math.abs(numberAt(args, 0)),
  ceil: (args) => Math.ceil(numberAt(args, 0)),
  floor: (args) => Math.floor(numberAt(args, 0)),
  huge: Infinity,
  max: (args) => numbersOf(args).reduce((best, number) => number > best ? number : best),
  min: (args) => numbersOf(args).reduce((best, number) => number < best ? number : best),
});

/** The library `string`, whose functions are the methods of strings too. */
export const STRING: Library = new Library("string", {
  find: (args) => {
    const [text, wanted] = [textAt(args, 0), textAt(args, 1)];
    if (!isTrue(args[3]) && SPECIAL.test(wanted)) {
      const match = findPattern(text, wanted, startOf(args, text));
      if (!match) return undefined;
      const [{ length }, ...captures] = match;
      return [match.index + 1, match.index + length, ...captures];
    }
    const at = text.indexOf(wanted, startOf(args, text));
    return at === -1 ? undefined : [at + 1, at + wanted.length];
  },
  format: (args) => {
    let at = 0;
    return bounded(
      textAt(args, 0).replace(CONVERSION, (conversion) => {
        return conversion === "%%" ? "%" : formatted(conversion, args, ++at);
      }),
    );
  },
  len: (args) => textAt(args, 0).length,
  lower: (args) => textAt(args, 0).replace(/[A-Z]+/gu, (letters) => letters.toLowerCase()),
  match: (args) => {
    const text = textAt(args, 0);
    const match = findPattern(text, textAt(args, 1), startOf(args, text));
    return match && match.length > 1 ? match.slice(1) : match?.[0];
  },
  sub: (args) => {
    const text = textAt(args, 0);
    const [from, to] = [position(integerAt(args, 1), text), position(integerAt(args, 2, -1), text)];
    return text.slice(Math.max(0, from - 1), to);
  },
  upper: (args) => textAt(args, 0).replace(/[a-z]+/gu, (letters) => letters.toUpperCase()),
});

/** The library `table`. */
export const TABLE: Library = new Library("table", {
  concat: (args) => {
    const [{ items }, separator] = [tableAt(args, 0), textAt(args, 1, "")];
    if (args.length > 2) throw new UnsupportedError("'table.concat' of a part");
    const texts = items.map((value, at) => {
      return textOf(value) ??
        raise(`invalid value (${typeName(value)}) at index ${at + 1} in table for 'concat'`);
    });
    return bounded(texts.join(separator));
  },
  insert: (args) => {
    const table = tableAt(args, 0);
    if (args.length === 3) throw new UnsupportedError("'table.insert' at a place");
    if (args.length !== 2) raise("wrong number of arguments to 'insert'");
    table.set(table.items.length + 1, args[1]);
    return [];
  },
  remove: (args) => {
    const table = tableAt(args, 0);
    if (args.length > 1) throw new UnsupportedError("'table.remove' at a place");
    const { length } = table.items;
    if (length === 0) return [];
    const last = table.get(length);
    table.set(length, undefined);
    return last;
  },
});

/** What has no library, by name. */
export const BASE: Readonly<Record<string, Value>> = {
  assert: (args) => isTrue(anyAt(args, 0)) ? args : raise(textAt(args, 1, "assertion failed!")),
  error: ([value, ...rest]) => {
    if (rest.length > 0) throw new UnsupportedError("an error with a level");
    if (typeof value === "function") throw new UnsupportedError("a function as an error");
    const text = textOf(value);
    throw text === undefined ? new LuaError(value) : raise(text);
  },
  math: MATH,
  string: STRING,
  table: TABLE,
  tonumber: (args) => {
    if (args.length > 1) throw new UnsupportedError("the base of a number");
    return toNumber(anyAt(args, 0));
  },
  tostring: (args) => {
    const value = anyAt(args, 0);
    if (typeof value === "number") return numberText(value);
    if (value === undefined) return "nil";
    if (typeof value === "string" || typeof value === "boolean") return String(value);
    throw new UnsupportedError(`the address of a ${typeName(value)}`);
  },
  type: (args) => typeName(anyAt(args, 0)),
  unpack: (args) => {
    const { items } = tableAt(args, 0);
    const [from, to] = [integerAt(args, 1, 1), integerAt(args, 2, items.length)];
    if (to - from >= RESULTS_MAX) throw new UnsupportedError(`more than ${RESULTS_MAX} results`);
    if (to < from) return [];
    if (from >= 1 && to <= items.length) return items.slice(from - 1, to);
    throw new UnsupportedError("'unpack' of more than a list has");
  },
};

// Arguments, with the errors of Lua

/** Raises an error about an argument, counted from 0. */
function badArgument(at: number, why: string): never {
  const { name, isMethod } = machine.site;
  const number = isMethod ? at : at + 1; // the object of a method does not count
  return raise(`bad argument #${number} to ${name?.slice(name.indexOf("'")) ?? "'?'"} (${why})`);
}

function wrongType(args: readonly Value[], at: number, wanted: string): never {
  const found = at < args.length ? typeName(args[at]) : "no value";
  return badArgument(at, `${wanted} expected, got ${found}`);
}

function anyAt(args: readonly Value[], at: number): Value {
  return at < args.length ? args[at] : badArgument(at, "value expected");
}

function numberAt(args: readonly Value[], at: number): number {
  return toNumber(args[at]) ?? wrongType(args, at, "number");
}

/** All arguments as numbers; there is at least one. */
function numbersOf(args: readonly Value[]): number[] {
  return Array.from({ length: Math.max(1, args.length) }, (_, at) => numberAt(args, at));
}

/** A number without its fraction. */
function integerAt(args: readonly Value[], at: number, missing?: number): number {
  if (missing !== undefined && args[at] === undefined) return missing;
  return Math.trunc(numberAt(args, at));
}

function textAt(args: readonly Value[], at: number, missing?: string): string {
  if (missing !== undefined && args[at] === undefined) return missing;
  return textOf(args[at]) ?? wrongType(args, at, "string");
}

function tableAt(args: readonly Value[], at: number): LuaTable {
  const value = args[at];
  return value instanceof LuaTable ? value : wrongType(args, at, "table");
}

// Strings

/** A position as it counts from the start; negative ones count from the end. */
function position(at: number, text: string): number {
  return at >= 0 ? at : Math.max(0, text.length + at + 1);
}

/** The index at which a search begins. */
function startOf(args: readonly Value[], text: string): number {
  return Math.min(Math.max(0, position(integerAt(args, 2, 1), text) - 1), text.length);
}

/** One argument as a conversion of `format` writes it. */
function formatted(conversion: string, args: readonly Value[], at: number): string {
  if (at >= args.length) badArgument(at, "no value");
  if (conversion === "%s") {
    const text = textAt(args, at);
    if (!text.includes("\0")) return text;
    throw new UnsupportedError("a zero byte in a format");
  }
  if (conversion === "%.0f") return fixed(numberAt(args, at));
  const number = conversion === "%d" ? Math.trunc(numberAt(args, at)) : NaN;
  if (Number.isSafeInteger(number)) return String(number);
  throw new UnsupportedError(`'${conversion.replace(/[^ -~]/gu, "?")}' in a format`);
}
