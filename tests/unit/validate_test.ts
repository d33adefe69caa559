import { assertEquals, assertThrows } from "@std/assert";
import { check, FINITE, NOT_NEGATIVE, NUMBER, POSITIVE } from "../../src/validate.ts";

const ALL = [-Infinity, -1, -Number.MIN_VALUE, -0, 0, Number.MIN_VALUE, 0.5, 1, Number.MAX_VALUE];
const NUMBERS = [...ALL, Infinity, NaN];

/** Each rule, what it says of a number that it refuses, and the numbers that it lets through. */
const RULES = [
  [
    POSITIVE,
    "must be a finite number greater than 0",
    (value: number) => value > 0 && value < Infinity,
  ],
  [NOT_NEGATIVE, "must not be negative", (value: number) => value >= 0],
  [
    FINITE,
    "must be a finite number of at least 0",
    (value: number) => value >= 0 && value < Infinity,
  ],
  [NUMBER, "", () => true],
] as const;

for (const [wanted, rule, allows] of RULES) {
  const what = `a check of numbers that ${rule || "may be any"}`;
  Deno.test(`${what} lets the right numbers through, and refuses the others with their value`, () => {
    for (const value of NUMBERS) {
      if (allows(value)) check("try", "delayMs", value, wanted);
      else {
        assertEquals(
          assertThrows(() => check("try", "delayMs", value, wanted), RangeError).message,
          `Cannot try as 'delayMs' ${rule}: current value is ${value}`,
        );
      }
    }
  });

  Deno.test(`${what} refuses what is no number by its type, without showing it`, () => {
    for (
      const [value, type] of [
        ["1", "string"],
        [1n, "bigint"],
        [null, "null"],
        [undefined, "undefined"],
        [true, "boolean"],
        [new Number(1), "Number"],
        [Promise.resolve(1), "Promise"],
        [{}, "Object"],
        [Symbol("one"), "symbol"],
        [() => 1, "function"],
      ] as const
    ) {
      assertEquals(
        assertThrows(() => check("acquire lock", "waitMs", value, wanted), TypeError).message,
        `Cannot acquire lock as 'waitMs' must be a number: current type is '${type}'`,
      );
    }
  });
}
