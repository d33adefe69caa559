/**
 * Checks of options that users pass, with one wording for all of them.
 *
 * @module
 */
import { quoted } from "./printable.ts";

/**
 * Checks that options are an object, and that each of them is known. An option of an inherited name
 * counts too.
 *
 * @param action What fails otherwise, for messages: `acquire lock`.
 * @param options What the caller passed.
 * @param names The names of all valid options.
 * @param prefix What stands before a name in a message.
 * @throws {TypeError} If `options` is not an object, or an option is unknown.
 */
export function checkOptions(
  action: string,
  options: unknown,
  names: readonly string[],
  prefix = "",
): void {
  if (!isObject(options)) {
    // node-redlock and others take the TTL in this place.
    const isTtl = typeof options === "number" && names.includes("ttlMs");
    const hint = isTtl ? `, pass { ttlMs: ${options} } for a TTL` : "";
    throw formError(action, "options", "must be an object", options, hint);
  }
  for (const name in options) {
    if (names.includes(name)) continue;
    const rule = `is unknown: valid options are ${names.join(", ")}`;
    throw typeError(action, `option '${prefix}${name}' ${rule}`);
  }
}

/** What a value must be. */
export interface Rule {
  /** What `typeof` says of it; missing if that does not matter. */
  readonly type?: string;
  /** What else holds of it, in the words of the message and as a function. */
  readonly text?: string;
  readonly holds?: (value: never) => boolean;
  /** Whether a value that breaks it has the wrong form: a `TypeError`, which does not show it. */
  readonly isForm?: true;
}

/** The rules for some options. */
export type Rules = Readonly<Record<string, Rule>>;

/**
 * Checks a value.
 *
 * @param action What fails otherwise, for messages: `acquire lock`.
 * @param name The option or parameter.
 * @param value Its value.
 * @param rule What it must be.
 * @throws {TypeError} If it has another type, or the wrong form.
 * @throws {RangeError} If it is out of range; the message says the rule and the value.
 */
export function check(action: string, name: string, value: unknown, rule: Rule): void {
  const { type, text, holds, isForm } = rule;
  const found = typeof value;
  if (type && found !== type) throw formError(action, name, `must be a ${type}`, value);
  if (holds?.(value as never) !== false) return;
  if (isForm) throw formError(action, name, text!, value);
  throw rangeError(action, name, text!, value as number | string);
}

/**
 * Checks those of some values that have a rule; `undefined` passes: it means the default. `prefix`
 * stands before a name in a message.
 */
export function checkAll(
  action: string,
  values: Readonly<Record<string, unknown>>,
  rules: Rules,
  prefix = "",
): void {
  for (const name in rules) {
    if (values[name] !== undefined) check(action, prefix + name, values[name], rules[name]);
  }
}

/** A rule for numbers. */
export function numberThat(text: string, holds: (value: number) => boolean): Rule {
  return { type: "number", text, holds };
}

/** A rule for texts. */
export function textThat(text: string, holds: (value: string) => boolean): Rule {
  return { type: "string", text, holds };
}

export const BOOLEAN: Rule = { type: "boolean" };
export const FUNCTION: Rule = { type: "function" };
export const NUMBER: Rule = { type: "number" };
export const NOT_NEGATIVE: Rule = /* @__PURE__ */ numberThat(
  "must not be negative",
  (value) => value >= 0,
);
export const FINITE: Rule = /* @__PURE__ */ numberThat(
  "must be a finite number of at least 0",
  (value) => value >= 0 && value < Infinity,
);
export const POSITIVE: Rule = /* @__PURE__ */ numberThat(
  "must be a finite number greater than 0",
  (value) => value > 0 && value < Infinity,
);
export const NAME: Rule = { text: "must be a non-empty string", holds: isName, isForm: true };
/** A text that becomes a part of a key. UTF-8 has no lone surrogates: two keys would be one. */
export const KEY_TEXT: Rule = {
  type: "string",
  text: "must be well-formed Unicode, without lone surrogates",
  holds: (text: string) => !/[\ud800-\udfff]/u.test(text),
  isForm: true,
};
export const SIGNAL: Rule = {
  text: "must be an AbortSignal",
  // An old polyfill may lack the second.
  holds: (signal: AbortSignal | null) =>
    [signal?.addEventListener, signal?.throwIfAborted].every((it) => typeof it === "function"),
  isForm: true,
};

export function isName(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

export function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** The error of an argument of the wrong type or form. */
export function typeError(action: string, why: string): TypeError {
  return new TypeError(`Cannot ${action} as ${why}`);
}

/** The same by a rule and a hint. It shows the value's type only: the value may be a secret. */
export function formError(
  action: string,
  name: string,
  rule: string,
  value: unknown,
  hint = "",
): TypeError {
  return typeError(action, `'${name}' ${rule}: current type is '${typeOf(value)}'${hint}`);
}

/** The type of a value for messages: `string`, `empty string`, `null`, or a name as `Promise`. */
export function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (value === "") return "empty string";
  if (Array.isArray(value) && value.length === 0) return "empty Array";
  return isObject(value) ? Object.prototype.toString.call(value).slice(8, -1) : typeof value;
}

/** The error of an option that is out of range. */
export function rangeError(
  action: string,
  name: string,
  rule: string,
  value: number | string,
): RangeError {
  const current = typeof value === "string" ? quoted(value) : value;
  return new RangeError(`Cannot ${action} as '${name}' ${rule}: current value is ${current}`);
}
