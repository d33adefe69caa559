import { assertEquals, assertThrows } from "@std/assert";
import {
  checkFiniteMs,
  checkNotNegative,
  checkNumber,
  checkPositiveMs,
  rangeError,
} from "../../src/validate.ts";

const CHECKS = { checkPositiveMs, checkNotNegative, checkFiniteMs, checkNumber } as const;
const POSITIVE = "must be a finite number greater than 0";
const NOT_NEGATIVE = "must not be negative";
const FINITE = "must be a finite number of at least 0";

/** What each check says of a number; `undefined` where it lets it through. */
const NUMBERS: readonly (readonly [
  value: number,
  positive: string | undefined,
  notNegative: string | undefined,
  finite: string | undefined,
])[] = [
  [1, undefined, undefined, undefined],
  [0.5, undefined, undefined, undefined],
  [Number.MIN_VALUE, undefined, undefined, undefined],
  [Number.MAX_VALUE, undefined, undefined, undefined],
  [0, POSITIVE, undefined, undefined],
  [-0, POSITIVE, undefined, undefined],
  [-Number.MIN_VALUE, POSITIVE, NOT_NEGATIVE, FINITE],
  [-1, POSITIVE, NOT_NEGATIVE, FINITE],
  [NaN, POSITIVE, NOT_NEGATIVE, FINITE],
  [Infinity, POSITIVE, undefined, FINITE],
  [-Infinity, POSITIVE, NOT_NEGATIVE, FINITE],
];

for (const [value, positive, notNegative, finite] of NUMBERS) {
  const rules = {
    checkPositiveMs: positive,
    checkNotNegative: notNegative,
    checkFiniteMs: finite,
    checkNumber: undefined,
  };
  for (const [name, rule] of Object.entries(rules)) {
    const check = CHECKS[name as keyof typeof CHECKS];
    const shown = Object.is(value, -0) ? "-0" : `${value}`;
    Deno.test(`${name}() ${rule ? "refuses" : "lets through"} ${shown}`, () => {
      if (!rule) return check("try", "delayMs", value);
      assertEquals(
        assertThrows(() => check("try", "delayMs", value), RangeError).message,
        `Cannot try as 'delayMs' ${rule}: current value is ${value}`,
      );
    });
  }
}

for (const [name, check] of Object.entries(CHECKS)) {
  for (
    const [value, type] of [
      ["1", "string"],
      [1n, "bigint"],
      [null, "object"],
      [undefined, "undefined"],
      [true, "boolean"],
      [new Number(1), "object"],
      [Symbol("one"), "symbol"],
      [() => 1, "function"],
    ] as const
  ) {
    Deno.test(`${name}() refuses ${Deno.inspect(value)} by its type, without showing it`, () => {
      assertEquals(
        assertThrows(() => check("acquire lock", "waitMs", value as number), TypeError).message,
        `Cannot acquire lock as 'waitMs' must be a number: current type is '${type}'`,
      );
    });
  }
}

Deno.test("rangeError() says what cannot be done, why, and with which value", () => {
  const error = rangeError("extend lock", "ttlMs", "must be odd", 2);
  assertEquals(error.name, "RangeError");
  assertEquals(error.message, "Cannot extend lock as 'ttlMs' must be odd: current value is 2");
});
