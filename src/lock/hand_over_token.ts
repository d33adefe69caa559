/**
 * The text with which one client hands a lock over to another.
 *
 * It contains no deadline, because the clocks of two machines need not agree, and no keys, because
 * each client has its own `keyPrefix`. It says how long the keys may live from the hand-over on, so
 * that its next holder knows for how long a node that was away may still have the former value.
 *
 * @module
 */
import { isOwnValue } from "../holder.ts";
import { TTL_MS_MAX } from "../options.ts";
import { checkResources } from "../resources.ts";

/** The first element of what a token encodes; another form gets another number. */
const VERSION = 2;

/** A lock that was handed over. */
export interface HandedOver {
  /** The value of its keys. */
  readonly value: string;
  /** How long the keys live at most, from the hand-over on, in milliseconds. */
  readonly ttlMs: number;
  /** What was left of `atLeastMs`, in milliseconds. */
  readonly keptMs: number;
  readonly resources: readonly string[];
}

/** The token of a lock: JSON in the URL-safe alphabet of Base64, without padding. */
export function handOverToken({ value, ttlMs, keptMs, resources }: HandedOver): string {
  const content = [VERSION, value, ttlMs, keptMs, ...resources];
  const bytes = new TextEncoder().encode(JSON.stringify(content));
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(text).replace(/[+/=]/gu, (digit) => ({ "+": "-", "/": "_" })[digit] ?? "");
}

/**
 * What a token contains.
 *
 * @param token What the caller passed.
 * @param keyPrefix The prefix of each resource in its key.
 * @throws {TypeError} If it is no token of {@linkcode handOverToken}.
 * @throws {RangeError} If a key would begin with `hasp:`, or there are too many resources.
 */
export function readToken(token: string, keyPrefix: string): HandedOver {
  const [version, value, ttlMs, keptMs, ...resources] = decoded(token);
  const isToken = version === VERSION && isOwnValue(value) && isTime(ttlMs) && isTime(keptMs);
  if (!isToken) throw notToken();
  const checked = checkResources("adopt lock", resources as string[], keyPrefix);
  return { value, ttlMs, keptMs, resources: checked };
}

function isTime(ms: unknown): ms is number {
  return Number.isSafeInteger(ms) && (ms as number) >= 0 && (ms as number) <= TTL_MS_MAX;
}

function decoded(token: string): unknown[] {
  try {
    if (!/^[\w-]+$/u.test(token)) throw notToken();
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
