/**
 * The functions of Lua that have no library, and the libraries `math` and `table`.
 *
 * @module
 */
import { anyAt, badArgument, integerAt, numberAt, tableAt, textAt } from "./arguments.ts";
import { numberText, toNumber } from "./numbers.ts";
import { power } from "./operators.ts";
import { STRING_METHODS } from "./string_library.ts";
import {
  bounded,
  checkResults,
  Library,
  LuaError,
  machine,
  nextItem,
  NOTHING,
  raise,
  step,
  typeName,
  UnsupportedError,
  type Value,
} from "./values.ts";

const MATH = new Library("math", {
  abs: (args) => Math.abs(numberAt(args, 0)),
  ceil: (args) => Math.ceil(numberAt(args, 0)),
  floor: (args) => Math.floor(numberAt(args, 0)),
  fmod: (args) => numberAt(args, 0) % numberAt(args, 1),
  huge: Infinity,
  max: (args) => extreme(args, 1),
  min: (args) => extreme(args, -1),
  pow: (args) => power(numberAt(args, 0), numberAt(args, 1), machine.site.line),
  sqrt: (args) => Math.sqrt(numberAt(args, 0)),
});

const TABLE = new Library("table", { concat, insert, remove, sort });

/** All of them, by name. */
export const BASE: Readonly<Record<string, Value>> = {
  assert: (args) => {
    const value = anyAt(args, 0);
    if (value !== undefined && value !== false) return args;
    return raise(textAt(args, 1, "assertion failed!"));
  },
  error: (args) => {
    const [value] = args;
    const level = integerAt(args, 1, 1);
    if (level > 1) throw new UnsupportedError("an error of a level above 1");
    const isText = typeof value === "string" || typeof value === "number";
    if (isText && level === 1) return raise(textAt([value], 0));
    throw new LuaError(value);
  },
  ipairs: (args) => [nextItem, tableAt(args, 0), 0],
  math: MATH,
  next: nextOf,
  pairs: (args) => [nextOf, tableAt(args, 0), undefined],
  select: (args) => {
    if (args[0] === "#") return args.length - 1;
    const at = integerAt(args, 0);
    if (at < 0) {
      if (-at >= args.length) badArgument(0, "index out of range");
      return args.slice(at);
    }
    if (at === 0) badArgument(0, "index out of range");
    return args.slice(at);
  },
  string: STRING_METHODS,
  table: TABLE,
  tonumber: (args) => {
    if (args[1] !== undefined && numberAt(args, 1) !== 10) {
      throw new UnsupportedError("the base of a number");
    }
    return toNumber(anyAt(args, 0));
  },
  tostring: (args) => {
    const value = anyAt(args, 0);
    if (typeof value === "number") return numberText(value);
    if (typeof value === "string") return value;
    if (value === undefined) return "nil";
    if (typeof value === "boolean") return String(value);
    throw new UnsupportedError(`the address of a ${typeName(value)}`);
  },
  type: (args) => typeName(anyAt(args, 0)),
  unpack: (args) => {
    const table = tableAt(args, 0);
    const from = integerAt(args, 1, 1);
    const to = args[2] === undefined ? table.length : integerAt(args, 2);
    checkResults(to - from + 1);
    if (from === 1 && to === table.list.length) return table.list.slice();
    if (to < from) return NOTHING;
    return Array.from({ length: to - from + 1 }, (_, at) => table.get(from + at));
  },
};

function nextOf(args: Value[]): Value | Value[] {
  const table = tableAt(args, 0);
  const key = table.next(args[1]);
  return key === undefined ? undefined : [key, table.get(key)];
}

/** The greatest number, or with the sign -1 the least. */
function extreme(args: Value[], sign: 1 | -1): number {
  let best = numberAt(args, 0);
  for (let at = 1; at < args.length; at++) {
    const number = numberAt(args, at);
    if (sign === 1 ? number > best : number < best) best = number;
  }
  return best;
}

function concat(args: Value[]): string {
  const table = tableAt(args, 0);
  const separator = textAt(args, 1, "");
  const from = integerAt(args, 2, 1);
  const to = args[3] === undefined ? table.length : integerAt(args, 3);
  const parts: string[] = [];
  for (let at = from; at <= to; at++) {
    step();
    const value = table.get(at);
    if (typeof value !== "string" && typeof value !== "number") {
      raise(`invalid value (${typeName(value)}) at index ${at} in table for 'concat'`);
    }
    parts.push(textAt([value as Value], 0));
  }
  return bounded(parts.join(separator));
}

function insert(args: Value[]): Value[] {
  const table = tableAt(args, 0);
  const end = table.length + 1;
  if (args.length === 2) table.set(end, args[1]);
  else if (args.length !== 3) raise("wrong number of arguments to 'insert'");
  else {
    const place = integerAt(args, 1);
    for (let at = Math.max(end, place); at > place; at--) {
      step();
      table.set(at, table.get(at - 1));
    }
    table.set(place, args[2]);
  }
  return NOTHING;
}

function remove(args: Value[]): Value | Value[] {
  const table = tableAt(args, 0);
  const end = table.length;
  const place = integerAt(args, 1, end);
  if (place < 1 || place > end) return NOTHING;
  const removed = table.get(place);
  table.list.splice(place - 1, 1);
  return removed === undefined ? [undefined] : removed;
}

/** Without a function: those that Lua takes for equal would come in an order of its own. */
function sort(args: Value[]): Value[] {
  const table = tableAt(args, 0);
  if (args[1] !== undefined) throw new UnsupportedError("a function that sorts");
  const { list } = table;
  const type = typeof list[0];
  const isSortable = table.length === 0 || (type === "string" || type === "number") &&
      list.every((value) => typeof value === type && !Number.isNaN(value));
  if (!isSortable) throw new UnsupportedError("a table of several types that is sorted");
  list.sort((a, b) => a! < b! ? -1 : a! > b! ? 1 : 0);
  return NOTHING;
}
