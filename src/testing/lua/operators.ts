/**
 * The operators of Lua, and the errors of operands that they cannot take.
 *
 * @module
 */
import { numberText, toNumber } from "./numbers.ts";
import { STRING_METHODS } from "./string_library.ts";
import {
  bounded,
  LuaTable,
  machine,
  raise,
  type Site,
  typeName,
  UnsupportedError,
  type Value,
} from "./values.ts";

/** What an error calls an operand. */
type Name = string | undefined;

/** `container[key]`. */
export function index(container: Value, key: Value, site: Site): Value {
  if (container instanceof LuaTable) return container.get(key);
  if (typeof container === "string") {
    machine.site = site;
    return STRING_METHODS.get(key);
  }
  return refuse("index", container, site.line, site.name);
}

/** `container[key] = value`. */
export function setIndex(container: Value, key: Value, value: Value, site: Site): void {
  machine.site = site;
  if (container instanceof LuaTable) container.set(key, value);
  else if (typeof container === "string") throw new UnsupportedError("the field of a string");
  else refuse("index", container, site.line, site.name);
}

/** `#value`. */
export function length(value: Value, site: Site): number {
  if (typeof value === "string") return value.length;
  machine.site = site;
  if (value instanceof LuaTable) return value.length;
  return refuse("get length of", value, site.line, site.name);
}

/** `a + b` and the like. */
export function arithmetic(
  operator: string,
  a: Value,
  b: Value,
  line: number,
  names: readonly Name[],
): number {
  if (typeof a === "number" && typeof b === "number") return computed(operator, a, b, line);
  machine.site = { line };
  const [left, right] = [toNumber(a), toNumber(b)];
  if (left === undefined) return refuse("perform arithmetic on", a, line, names[0]);
  if (right === undefined) return refuse("perform arithmetic on", b, line, names[1]);
  return computed(operator, left, right, line);
}

function computed(operator: string, a: number, b: number, line: number): number {
  switch (operator) {
    case "+":
      return a + b;
    case "-":
      return a - b;
    case "*":
      return a * b;
    case "/":
      return a / b;
    case "%":
      return a - Math.floor(a / b) * b;
    default:
      return power(a, b, line);
  }
}

/**
 * Runtimes differ in the last digit of a power, unless it is an integer that a number holds
 * exactly.
 */
export function power(a: number, b: number, line: number): number {
  const result = a ** b;
  const isExact = Number.isSafeInteger(result) || a === 2 && Number.isFinite(result);
  if (isExact && Number.isInteger(a) && Number.isInteger(b) && b >= 0) return result;
  throw new UnsupportedError("a power that is no safe integer", line);
}

/** `a < b` or `a <= b`. */
export function compare(operator: "<" | "<=", a: Value, b: Value, line: number): boolean {
  if (
    typeof a === "number" && typeof b === "number" || typeof a === "string" && typeof b === "string"
  ) {
    return operator === "<" ? a < b : a <= b;
  }
  const [left, right] = [typeName(a), typeName(b)];
  const types = left === right ? `two ${left} values` : `${left} with ${right}`;
  return raise(`attempt to compare ${types}`, { line });
}

/** `a .. b .. c`, from the right. */
export function concatenate(
  operands: readonly Value[],
  line: number,
  names: readonly Name[],
): string {
  let text = "";
  for (let at = operands.length - 1; at >= 0; at--) {
    const operand = operands[at];
    if (typeof operand === "string") text = operand + text;
    else if (typeof operand === "number") text = numberText(operand) + text;
    else {
      // Of the last two, the first is looked at before the second.
      const isLast = at === operands.length - 1;
      const wrong = isLast && !isText(operands[at - 1]) ? at - 1 : at;
      return refuse("concatenate", operands[wrong], line, names[wrong]);
    }
  }
  machine.site = { line };
  return bounded(text);
}

function isText(value: Value): boolean {
  return typeof value === "string" || typeof value === "number";
}

function refuse(action: string, value: Value, line: number, name: Name): never {
  return raise(`attempt to ${action} ${described(value, name)}`, { line });
}

/** A value that an operation cannot take, as an error says it. */
export function described(value: Value, name: Name): string {
  const type = `a ${typeName(value)} value`;
  return name === undefined ? type : `${name} (${type})`;
}
