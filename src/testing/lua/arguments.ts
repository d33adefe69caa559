/**
 * Checks the arguments of a library's function, with the errors of Lua.
 *
 * @module
 */
import { numberText, toNumber } from "./numbers.ts";
import { LuaTable, machine, raise, typeName, type Value } from "./values.ts";

/** Raises an error about an argument, counted from 0. */
export function badArgument(at: number, why: string): never {
  const { name, isMethod } = machine.site;
  const number = isMethod ? at : at + 1; // the object of a method does not count
  return raise(`bad argument #${number} to ${name?.slice(name.indexOf("'")) ?? "'?'"} (${why})`);
}

function wrongType(args: readonly Value[], at: number, wanted: string): never {
  const found = at < args.length ? typeName(args[at]) : "no value";
  return badArgument(at, `${wanted} expected, got ${found}`);
}

/** Any argument, also nil. */
export function anyAt(args: readonly Value[], at: number): Value {
  return at < args.length ? args[at] : badArgument(at, "value expected");
}

/** A number, or text that is one. */
export function numberAt(args: readonly Value[], at: number): number {
  return toNumber(args[at]) ?? wrongType(args, at, "number");
}

/** A number without its fraction. */
export function integerAt(args: readonly Value[], at: number, missing?: number): number {
  if (missing !== undefined && args[at] === undefined) return missing;
  return Math.trunc(numberAt(args, at));
}

/** Text, or a number as text. */
export function textAt(args: readonly Value[], at: number, missing?: string): string {
  const value = args[at];
  if (typeof value === "string") return value;
  if (typeof value === "number") return numberText(value);
  if (missing !== undefined && value === undefined) return missing;
  return wrongType(args, at, "string");
}

/** A table. */
export function tableAt(args: readonly Value[], at: number): LuaTable {
  const value = args[at];
  return value instanceof LuaTable ? value : wrongType(args, at, "table");
}
