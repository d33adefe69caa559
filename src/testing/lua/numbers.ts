/**
 * Numbers as text and back, as Lua 5.1 and the C library convert them.
 *
 * @module
 */
import { UnsupportedError, type Value } from "./values.ts";

const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/iu;
const HEXADECIMAL = /^([+-]?)(0x[\da-f]+)$/iu;
/** What the C library also takes for a number. */
const STRANGE = /^[+-]?(?:nan|inf|0x)/iu;
/** How many digits of a number are looked at; JavaScript has no more. */
const DIGITS = 100;
/** Numbers from here on have no fraction. */
const INTEGERS_FROM = 2 ** 53;
/** How many digits `tostring` keeps. */
const LUA_DIGITS = 14;
/** Numbers from here on are not written by all their digits. */
const LUA_INTEGER_END = 1e14;

/** The number that a value is or, if it is text, stands for; `undefined` if it is no number. */
export function toNumber(value: Value): number | undefined {
  if (typeof value === "number") return value;
  if (typeof value !== "string") return undefined;
  if (DECIMAL.test(value)) return Number(value);
  const text = value.split("\0", 1)[0].replace(/^[ \t-\r]+|[ \t-\r]+$/gu, "");
  if (DECIMAL.test(text)) return Number(text);
  const [, sign, digits] = HEXADECIMAL.exec(text) ?? [];
  if (digits !== undefined) return sign === "-" ? -Number(digits) : Number(digits);
  if (STRANGE.test(text)) throw new UnsupportedError(`the number '${text}'`);
  return undefined;
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
  const kept = Math.max(1, digits);
  if (!Number.isFinite(number)) return infinite(number);
  const { sign, text, exponent } = rounded(number, () => kept);
  if (exponent >= -4 && exponent < kept) return sign + withoutZeros(pointed(text, exponent));
  const mantissa = withoutZeros(pointed(text, 0));
  const power = String(Math.abs(exponent)).padStart(2, "0");
  return `${sign}${mantissa}e${exponent < 0 ? "-" : "+"}${power}`;
}

/** A number as `%.<decimals>f` writes it. */
export function fixed(number: number, decimals: number): string {
  if (decimals === 0 && Number.isSafeInteger(number) && !Object.is(number, -0)) {
    return String(number);
  }
  if (!Number.isFinite(number)) return infinite(number);
  if (Math.abs(number) >= INTEGERS_FROM) { // more digits than are looked at
    return `${BigInt(number)}${decimals === 0 ? "" : `.${"0".repeat(decimals)}`}`;
  }
  const { sign, text, exponent } = rounded(number, (power) => power + 1 + decimals);
  return sign + pointed(text, exponent).replace(/^[^.]*$/u, "$&.") // a point
    .replace(/\.(\d*)$/u, (_, digits) => decimals === 0 ? "" : `.${digits.padEnd(decimals, "0")}`);
}

function infinite(number: number): string {
  if (Number.isNaN(number)) throw new UnsupportedError("the text of NaN");
  return number < 0 ? "-inf" : "inf";
}

/** The digits of a number, rounded half to even, and the power of ten of the first. */
function rounded(number: number, keep: (exponent: number) => number) {
  const [digits, power] = Math.abs(number).toExponential(DIGITS).split("e");
  const all = digits.replace(".", "");
  let exponent = Number(power);
  const count = Math.max(0, keep(exponent));
  let text = all.slice(0, count);
  const rest = keep(exponent) < 0 ? "0" : all.slice(count);
  const isOdd = Number(text.at(-1) ?? 0) % 2 === 1;
  if (rest > "5" && !/^50*$/u.test(rest) || isOdd && rest[0] === "5") {
    const next = String(BigInt(text || "0") + 1n).padStart(count, "0");
    if (next.length > count) exponent++;
    text = next;
  }
  const sign = number < 0 || Object.is(number, -0) ? "-" : "";
  return { sign, text: text || "0", exponent: text ? exponent : 0 };
}

/** Digits with a point behind the one of 10⁰. */
function pointed(digits: string, exponent: number): string {
  if (exponent < 0) return `0.${"0".repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  return digits.length > exponent + 1 ? `${whole}.${digits.slice(exponent + 1)}` : whole;
}

function withoutZeros(text: string): string {
  return text.includes(".") ? text.replace(/\.?0+$/u, "") : text;
}
