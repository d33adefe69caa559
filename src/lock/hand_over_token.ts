/**
 * The text with which one client hands a lock over to another.
 *
 * It contains no deadline, because the clocks of two machines need not agree, and no keys, because each client has its
 * own `keyPrefix`.
 *
 * @module
 */
import { checkResources } from "../resources.ts";

/** The first element of what a token encodes; another form gets another number. */
const VERSION = 1;
/** A value of this library. */
const VALUE = /^[\da-f]{40}(:[ -~]{1,64})?$/u;

/** The token of a lock: version, value and resources as JSON, in the URL-safe alphabet of Base64, without padding. */
export function handOverToken(value: string, resources: readonly string[]): string {
  const bytes = new TextEncoder().encode(JSON.stringify([VERSION, value, ...resources]));
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(text).replace(/[+/=]/gu, (digit) => ({ "+": "-", "/": "_" })[digit] ?? "");
}

/**
 * What a token contains: the value of the lock's keys, and the resources.
 *
 * @param token What the caller passed.
 * @param keyPrefix The prefix of each resource in its key.
 * @throws {TypeError} If it is no token of {@linkcode handOverToken}.
 * @throws {RangeError} If a key would begin with `hasp:`, or there are too many resources.
 */
export function readToken(
  token: string,
  keyPrefix: string,
): { readonly value: string; readonly resources: readonly string[] } {
  const [version, value, ...resources] = decoded(token);
  if (version !== VERSION || typeof value !== "string" || !VALUE.test(value)) throw notToken();
  return { value, resources: checkResources("adopt lock", resources as string[], keyPrefix) };
}

function decoded(token: string): unknown[] {
  if (typeof token !== "string" || !/^[\w-]+$/u.test(token)) throw notToken();
  try {
    const text = atob(token.replace(/[-_]/gu, (digit) => digit === "-" ? "+" : "/"));
    const bytes = Uint8Array.from(text, (char) => char.charCodeAt(0));
    return [...JSON.parse(new TextDecoder().decode(bytes))];
  } catch {
    throw notToken(); // the error of a parser may quote the token
  }
}

function notToken(): TypeError {
  return new TypeError("Cannot adopt lock as 'token' must be what 'lock.handOver()' has returned");
}
