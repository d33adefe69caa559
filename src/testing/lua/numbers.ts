/**
 * Numbers as text and back, as Lua 5.1 and the C library convert them.
 *
 * @module
 */
import { UnsupportedError, type Value } from "./values.ts";

const NUMERAL = /^[ \t-\r]*(?:[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|0x[\da-f]{1,13})[ \t-\r]*$/iu;
/** What the C library also takes for a number, or for the end of one. */
const STRANGE = /\0|^[ \t-\r]*[+-]?(?:nan|inf|0x)/iu;
/** How many digits of a number are looked at; JavaScript has no more. */
const DIGITS = 100;
/** How many digits `tostring` keeps. */
const LUA_DIGITS = 14;
/** Numbers from here on are not written by all their digits. */
const LUA_INTEGER_END = 1e14;

/** The number that a value is or, if it is text, stands for; `undefined` if it is no number. */
export function toNumber(value: Value): number | undefined {
  if (typeof value === "number") return value;
  if (typeof value !== "string") return undefined;
  if (NUMERAL.test(value)) return Number(value);
  if (!STRANGE.test(value)) return undefined;
  throw new UnsupportedError(`the number '${value.replace(/[^ -~]/gu, "?")}'`);
}

/** Text, or a number as text; `undefined` if a value is neither. */
export function textOf(value: Value): string | undefined {
  if (typeof value === "string") return value;
  return typeof value === "number" ? numberText(value) : undefined;
}

/** A number as `tostring` and `..` write it. */
export function numberText(number: number): string {
  if (Number.isInteger(number) && Math.abs(number) < LUA_INTEGER_END && !Object.is(number, -0)) {
    return String(number);
  }
  return general(number, LUA_DIGITS);
}

/** A number as `%.<digits>g` writes it. */
export function general(number: number, digits: number): string {
  if (Number.isNaN(number)) throw new UnsupportedError("the text of NaN");
  if (!Number.isFinite(number)) return number < 0 ? "-inf" : "inf";
  const sign = number < 0 || Object.is(number, -0) ? "-" : "";
  let [text, power] = exponential(number, digits - 1);
  const [all, allPower] = exponential(number, DIGITS);
  // Of two that are as near, C takes the even one, and JavaScript the greater.
  const isTie = /^50*$/u.test(all.slice(digits)) && Number(all[digits - 1]) % 2 === 0;
  if (isTie) [text, power] = [all.slice(0, digits), allPower];
  text = text.replace(/0+$/u, "");
  if (power < -4 || power >= digits) {
    const fraction = text.length > 1 ? `.${text.slice(1)}` : "";
    const exponent = String(Math.abs(power)).padStart(2, "0");
    return `${sign}${text[0]}${fraction}e${power < 0 ? "-" : "+"}${exponent}`;
  }
  if (power < 0) return `${sign}0.${"0".repeat(-power - 1)}${text}`;
  const whole = text.slice(0, power + 1).padEnd(power + 1, "0");
  return sign + whole + (text.length > power + 1 ? `.${text.slice(power + 1)}` : "");
}

/** The digits of a number without its sign, and the power of ten of the first. */
function exponential(number: number, decimals: number): [digits: string, power: number] {
  const [digits, power] = Math.abs(number).toExponential(decimals).split("e");
  return [digits.replace(".", ""), Number(power)];
}

/** A number as `%.0f` writes it. */
export function fixed(number: number): string {
  if (!Number.isFinite(number)) throw new UnsupportedError("'%.0f' of such a number");
  // Of two that are as near, C takes the even one.
  const whole = Math.abs(number % 1) === 0.5 ? 2 * Math.round(number / 2) : Math.round(number);
  if (Number.isSafeInteger(whole)) return Object.is(whole, -0) ? "-0" : String(whole);
  return String(BigInt(whole));
}
