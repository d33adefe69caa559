/**
 * What code of other makers throws, as an error that is safe to read and to print.
 *
 * @module
 */
import { masked } from "./printable.ts";
import { isObject } from "./validate.ts";

/** Longest text of a foreign error that is kept as it is, in UTF-16 code units. */
const TEXT_LENGTH_MAX = 16_384;
/** Longest text of a copy. */
const COPIED_LENGTH_MAX = 1_024;
/** Most properties, with those of its causes, of a foreign error that is kept as it is. */
const PROPERTIES_MAX = 128;

/** What stands in place of a text that cannot be read. */
const UNREADABLE = "an error that cannot be read";

/**
 * Converts what a node, a client or a listener threw, or failed with, to an error. An ordinary
 * error stays what it is. Everything else becomes a new error with its name, message and code: a
 * value that is no error, an error whose properties run code or throw, and one that is very long or
 * holds much.
 *
 * @param thrown Anything: its getters may throw, and it may be a proxy that was revoked.
 */
export function toError(thrown: unknown): Error {
  return attempt(() => partsOf(thrown)) ? thrown as Error : copyOf(thrown);
}

/**
 * The same error if printing it shows none of some texts; else a copy with its name, its message
 * without them, and its code.
 *
 * @param error An error of {@linkcode toError}.
 * @param secrets The texts.
 */
export function withoutSecrets(error: Error, secrets: readonly string[]): Error {
  const shows = (part: unknown) =>
    typeof part === "string"
      ? secrets.some((secret) => part.includes(secret))
      : ArrayBuffer.isView(part) || part instanceof Map || part instanceof Set;
  return partsOf(error)?.some(shows) === false
    ? error
    : copyOf(error, masked(error.message, secrets));
}

/**
 * The message of what was thrown, or the value itself as text, of an object only what it is; not
 * made printable.
 *
 * @param thrown Anything.
 */
export function messageOf(thrown: unknown): string {
  const read = isObject(thrown)
    ? () => textOf(thrown, "message") ?? Object.prototype.toString.call(thrown)
    : () => String(thrown);
  return attempt(read) ?? UNREADABLE;
}

function copyOf(thrown: unknown, message = messageOf(thrown)): Error {
  const error = new Error(cut(message));
  const [name, code] = [textOf(thrown, "name"), textOf(thrown, "code")];
  if (name) error.name = cut(name);
  if (code) Reflect.set(error, "code", cut(code));
  if (attempt(() => Reflect.get(thrown as object, "permanent")) === true) {
    Reflect.set(error, "permanent", true);
  }
  return error;
}

function textOf(thrown: unknown, name: string): string | undefined {
  const text = attempt(() => Reflect.get(thrown as object, name));
  return typeof text === "string" ? text : undefined;
}

function cut(text: string): string {
  return text.length > COPIED_LENGTH_MAX ? `${text.slice(0, COPIED_LENGTH_MAX)}…` : text;
}

/** What `read` returns, or `undefined` if it throws. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/**
 * What an error consists of, if nothing but the runtime runs when it is printed, and that comes to
 * an end; else `undefined`.
 */
function partsOf(error: unknown): unknown[] | undefined {
  if (!(error instanceof Error)) return undefined;
  const { name, message, permanent } = error as Error & { permanent?: unknown };
  if (typeof name !== "string" || typeof message !== "string") return undefined;
  const parts: unknown[] = [name, message, permanent, error];
  for (const part of parts) { // which grows
    if (typeof part === "function" || typeof part === "string" && part.length > TEXT_LENGTH_MAX) {
      return undefined;
    }
    if (!isObject(part)) continue;
    const own = Object.getOwnPropertyDescriptors(part);
    for (const key of Reflect.ownKeys(own)) {
      const { get, value } = own[key as keyof typeof own] as PropertyDescriptor;
      // an accessor of some runtimes
      parts.push(key === "stack" ? Reflect.get(part, key) : get ?? value);
    }
    if (parts.length > PROPERTIES_MAX) return undefined;
  }
  return parts;
}
