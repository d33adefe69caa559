/**
 * The operators of Lua, and the errors of operands that they cannot take.
 *
 * @module
 */
import { textOf, toNumber } from "./numbers.ts";
import { STRING } from "./libraries.ts";
import {
  bounded,
  isTrue,
  LuaTable,
  machine,
  raise,
  type Site,
  typeName,
  UnsupportedError,
  type Value,
} from "./values.ts";

/** Where an operator with two operands stands, and what an error calls these. */
export interface OperatorSite extends Site {
  readonly names: readonly [left: string | undefined, right: string | undefined];
}

export type Operator = (a: Value, b: Value, site: OperatorSite) => Value;

/**
 * The operators with two operands: how strongly each binds, and what it does. `and` and `or` do not
 * always evaluate the second operand.
 */
export const BINARY: Readonly<Record<string, readonly [precedence: number, does?: Operator]>> = {
  "or": [1],
  "and": [2],
  "==": [3, (a, b) => a === b],
  "~=": [3, (a, b) => a !== b],
  "<": [3, (a, b, site) => isComparable(a, b, site) && a! < b!],
  "<=": [3, (a, b, site) => isComparable(a, b, site) && a! <= b!],
  // Lua turns these around.
  ">": [3, (a, b, site) => isComparable(b, a, site) && b! < a!],
  ">=": [3, (a, b, site) => isComparable(b, a, site) && b! <= a!],
  "..": [4, concatenate],
  "+": [5, arithmetic((a, b) => a + b)],
  "-": [5, arithmetic((a, b) => a - b)],
  "*": [6, arithmetic((a, b) => a * b)],
  "/": [6, arithmetic((a, b) => a / b)],
  "%": [6, arithmetic((a, b) => a - Math.floor(a / b) * b)],
  "^": [8, arithmetic(power)],
};
/** How strongly the operators with one operand bind. */
export const UNARY_PRECEDENCE = 7;

/** The operators with one operand. */
export const UNARY: Readonly<Record<string, (value: Value, site: Site) => Value>> = {
  "not": (value) => !isTrue(value),
  "-": (value, site) => -number(value, site, site.name),
  "#": (value, site) => {
    if (typeof value === "string") return value.length;
    machine.site = site;
    return value instanceof LuaTable ? value.items.length : refuse("get length of", value, site);
  },
};

/** `container[key]`. */
export function index(container: Value, key: Value, site: Site): Value {
  if (container instanceof LuaTable) return container.get(key, site);
  return typeof container === "string" ? STRING.get(key, site) : refuse("index", container, site);
}

/** `container[key] = value`. */
export function setIndex(container: Value, key: Value, value: Value, site: Site): void {
  machine.site = site;
  if (container instanceof LuaTable) container.set(key, value);
  else if (typeof container === "string") throw new UnsupportedError("the field of a string");
  else refuse("index", container, site);
}

/** Raises an error about a value that an operation cannot take. */
export function refuse(action: string, value: Value, site: Site, name = site.name): never {
  const type = `a ${typeName(value)} value`;
  return raise(`attempt to ${action} ${name === undefined ? type : `${name} (${type})`}`, site);
}

function arithmetic(compute: (a: number, b: number, site: Site) => number): Operator {
  return (a, b, site) => {
    if (typeof a === "number" && typeof b === "number") return compute(a, b, site);
    const [left, right] = [number(a, site, site.names[0]), number(b, site, site.names[1])];
    return compute(left, right, site);
  };
}

function number(value: Value, site: Site, name: string | undefined): number {
  machine.site = site;
  return toNumber(value) ?? refuse("perform arithmetic on", value, site, name);
}

/**
 * Runtimes differ in the last digit of a power, unless it is an integer that a number holds
 * exactly.
 */
function power(a: number, b: number, { line }: Site): number {
  const result = a ** b;
  const isExact = Number.isSafeInteger(result) || a === 2 && Number.isFinite(result);
  if (isExact && Number.isInteger(a) && Number.isInteger(b) && b >= 0) return result;
  throw new UnsupportedError("a power that is no safe integer", line);
}

/** Whether the values have one type and can be compared; raises an error if not. */
function isComparable(a: Value, b: Value, site: Site): boolean {
  const type = typeof a;
  if (type === typeof b && (type === "number" || type === "string")) return true;
  const [left, right] = [typeName(a), typeName(b)];
  const types = left === right ? `two ${left} values` : `${left} with ${right}`;
  return raise(`attempt to compare ${types}`, site);
}

function concatenate(a: Value, b: Value, site: OperatorSite): string {
  machine.site = site;
  const [left, right] = [textOf(a), textOf(b)];
  if (left === undefined) return refuse("concatenate", a, site, site.names[0]);
  if (right === undefined) return refuse("concatenate", b, site, site.names[1]);
  return bounded(left + right);
}
