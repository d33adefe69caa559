/**
 * Checks of options that users pass, with one wording for all of them.
 *
 * @module
 */
import { quoted } from "./errors.ts";

/**
 * Checks that options are an object, and that each of them is known. An option of an inherited name
 * counts too.
 *
 * @param attempt The call that fails otherwise, for messages: `acquire lock`.
 * @param options What the caller passed.
 * @param names The names of all valid options.
 * @throws {TypeError} If `options` is not an object, or an option is unknown.
 */
export function checkOptions(attempt: string, options: unknown, names: readonly string[]): void {
  if (typeof options !== "object" || options === null) {
    const current = options === null ? "value is null" : `type is '${typeof options}'`;
    // node-redlock and others take the TTL in this place.
    const isTtl = typeof options === "number" && names.includes("ttlMs");
    const hint = isTtl ? `, pass { ttlMs: ${options} } for a TTL` : "";
    throw new TypeError(
      `Cannot ${attempt} as 'options' must be an object: current ${current}${hint}`,
    );
  }
  for (const name in options) {
    if (names.includes(name)) continue;
    const valid = names.join(", ");
    throw new TypeError(
      `Cannot ${attempt} as option '${name}' is unknown: valid options are ${valid}`,
    );
  }
}

/**
 * Checks the type of an option. `undefined` passes, because it means the default.
 *
 * @param attempt The call that fails otherwise.
 * @param name The option.
 * @param value Its value.
 * @param type The result of `typeof` that it must have.
 * @throws {TypeError} If it has another type.
 */
export function checkType(attempt: string, name: string, value: unknown, type: string): void {
  if (value === undefined || typeof value === type) return;
  throw new TypeError(
    `Cannot ${attempt} as '${name}' must be a ${type}: current type is '${typeof value}'`,
  );
}

/**
 * Checks an option: its type, and a rule. Throws a `TypeError`, or a `RangeError` that says the
 * rule and the value.
 */
export type Check<Value = unknown> = (attempt: string, name: string, value: Value) => void;

/** As {@linkcode checkType}, for one type. */
function ofType(type: string): Check {
  return (attempt, name, value) => checkType(attempt, name, value, type);
}

/** Checks that an option is a number of which a rule holds. */
function numberOf(rule: string, holds: (value: number) => boolean): Check<number> {
  return (attempt, name, value) => {
    checkNumber(attempt, name, value);
    if (!holds(value)) throw rangeError(attempt, name, rule, value);
  };
}

export const checkBoolean: Check = /* @__PURE__ */ ofType("boolean");
export const checkFunction: Check = /* @__PURE__ */ ofType("function");
export const checkNotNegative: Check<number> = /* @__PURE__ */ numberOf(
  "must not be negative",
  (value) => value >= 0,
);
export const checkFiniteMs: Check<number> = /* @__PURE__ */ numberOf(
  "must be a finite number of at least 0",
  (value) => value >= 0 && value < Infinity,
);
export const checkPositiveMs: Check<number> = /* @__PURE__ */ numberOf(
  "must be a finite number greater than 0",
  (value) => value > 0 && value < Infinity,
);
/** How many of something, or no limit. */
export const checkCount: Check<number> = /* @__PURE__ */ numberOf(
  "must be a safe integer of at least 0, or Infinity",
  (value) => value === Infinity || Number.isSafeInteger(value) && value >= 0,
);

/**
 * UTF-8 cannot encode a lone surrogate, so two strings that differ in one would be the same key.
 */
const LONE_SURROGATE = /[\ud800-\udfff]/u;

/**
 * Checks a text that becomes a part of a key: a string without lone surrogates. `undefined` passes.
 *
 * @param attempt The call that fails otherwise.
 * @param name The option.
 * @param text Its value.
 * @throws {TypeError} If it is something else.
 */
export function checkKeyText(attempt: string, name: string, text: unknown): void {
  checkType(attempt, name, text, "string");
  if (text === undefined || !LONE_SURROGATE.test(text as string)) return;
  throw new TypeError(
    `Cannot ${attempt} as '${name}' must be well-formed Unicode, without lone surrogates`,
  );
}

/**
 * Checks that an option is an `AbortSignal` or `undefined`.
 *
 * @param attempt The call that fails otherwise.
 * @param name The option.
 * @param value Its value.
 * @throws {TypeError} If it is something else.
 */
export function checkSignal(attempt: string, name: string, value: AbortSignal | undefined): void {
  if (value === undefined) return;
  // An old polyfill may lack the second.
  const methods = [value?.addEventListener, value?.throwIfAborted];
  if (methods.every((method) => typeof method === "function")) return;
  throw new TypeError(`Cannot ${attempt} as '${name}' must be an AbortSignal`);
}

/**
 * Checks that an option is a number.
 *
 * @param attempt The call that fails otherwise.
 * @param name The option.
 * @param value Its value.
 * @throws {TypeError} If it is not a number.
 */
export function checkNumber(attempt: string, name: string, value: unknown): void {
  if (typeof value === "number") return;
  throw new TypeError(
    `Cannot ${attempt} as '${name}' must be a number: current type is '${typeof value}'`,
  );
}

/** A label: see {@linkcode RedlockOptions.label}. */
const LABEL = /^[ -~]{0,64}$/u;

/**
 * Checks a label.
 *
 * @throws {TypeError} If it is not a string.
 * @throws {RangeError} If it has other characters, or too many.
 */
export function checkLabel(attempt: string, name: string, value: string): void {
  checkType(attempt, name, value, "string");
  if (LABEL.test(value)) return;
  const rule = "must be at most 64 printable ASCII characters";
  throw new RangeError(`Cannot ${attempt} as '${name}' ${rule}: current value is ${quoted(value)}`);
}

/**
 * Checks a mode.
 *
 * @throws {TypeError} If it is neither `exclusive` nor `shared`.
 */
export function checkMode(attempt: string, name: string, value: unknown): void {
  if (value === "exclusive" || value === "shared") return;
  const current = quoted(String(value));
  throw new TypeError(
    `Cannot ${attempt} as '${name}' must be 'exclusive' or 'shared': current value is ${current}`,
  );
}

/**
 * Checks that a mode goes together with other options.
 *
 * @throws {TypeError} If it is `shared`, and one of those is set that need a single holder.
 */
export function checkTogether(
  attempt: string,
  options: { readonly mode: string; readonly fencing: boolean; readonly any: boolean },
): void {
  if (options.mode === "exclusive") return;
  for (const name of ["fencing", "any"] as const) {
    if (options[name]) {
      throw new TypeError(`Cannot ${attempt} as 'mode' must be 'exclusive' if '${name}' is true`);
    }
  }
}

/** The error of an option that is out of range. */
export function rangeError(
  attempt: string,
  name: string,
  rule: string,
  value: number,
): RangeError {
  return new RangeError(`Cannot ${attempt} as '${name}' ${rule}: current value is ${value}`);
}
