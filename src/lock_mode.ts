/**
 * The modes of locks, and options that are more than a number or a function.
 *
 * @module
 */
import { quoted } from "./errors.ts";
import { checkType } from "./validate.ts";

/** Who else may hold a resource: nobody, or others in shared mode. */
export type LockMode = "exclusive" | "shared";

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
 * @throws {TypeError} If it is no {@linkcode LockMode}.
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
  options: { readonly mode: LockMode; readonly fencing: boolean; readonly any: boolean },
): void {
  if (options.mode === "exclusive") return;
  for (const name of ["fencing", "any"] as const) {
    if (options[name]) {
      throw new TypeError(`Cannot ${attempt} as 'mode' must be 'exclusive' if '${name}' is true`);
    }
  }
}
