/**
 * The scripts that count fencing tokens, as functions.
 *
 * @module
 */
import { COUNTER_AGE_MS_MAX, COUNTER_TTL_MS, counterStart } from "../../fencing/token.ts";
import { COUNTER_PREFIX } from "../../redis_node/scripts/fencing.ts";
import type { CommandContext } from "../commands/command.ts";
import { INT64_MAX, parseInteger } from "../commands/integers.ts";
import type { Keyspace } from "../server/keyspace.ts";
import { CommandError, integer } from "../server/replies.ts";
import { luaError, ReturnedError, setInScript, toNumber } from "./script_calls.ts";

/** Decimal digits as `INCR` writes them. */
const DIGITS = /^(?:0|[1-9]\d*)$/u;

/** ACQUIRE_COUNTED. */
export function acquireCounted(
  context: CommandContext,
  [key]: readonly string[],
  [value, ttl, hintText]: readonly string[],
): string {
  const { keys } = context;
  if (!setInScript(keys, key, [value, "NX", "PX", ttl])) return integer(0);
  const name = COUNTER_PREFIX + key;
  const hint = Number(hintText);
  const before = countable(keys, name);
  const count = Number(before) + 1;
  const isYoung = (timeUs: number) => count > 1 && count > timeUs - COUNTER_AGE_MS_MAX * 1_000;
  // mutation: counters-stand-still
  keys.replace(name, String(before + 1n));
  if (isYoung(hint) && count <= Number.MAX_SAFE_INTEGER) return integer(count);
  const start = counterStart(nowUs(context), hint);
  if (count < 1 || Math.max(count, start) > Number.MAX_SAFE_INTEGER) {
    keys.replace(name, String(before));
    throw new ReturnedError(notCounter(name));
  }
  if (isYoung(start)) return integer(count);
  keys.set(name, String(start), keys.nowMs() + BigInt(COUNTER_TTL_MS));
  return integer(start);
}

/** RAISE. */
export function raise(
  context: CommandContext,
  names: readonly string[],
  [value, tokenText]: readonly string[],
): string {
  if (names.some((key) => context.keys.get(key) !== value)) return integer(0);
  const token = toNumber(tokenText);
  if (token === undefined) {
    throw luaError("attempt to perform arithmetic on local 'hint' (a nil value)");
  }
  return integer(fence(context, names, token, token, 0));
}

/** `fence(keys, token, hint, step)`. */
export function fence(
  context: CommandContext,
  names: readonly string[],
  token: number,
  hint: number,
  step: number,
): number {
  const { keys } = context;
  const timeUs = nowUs(context);
  const start = counterStart(timeUs, hint);
  const counts = names.map((key) => {
    const last = countOf(keys, COUNTER_PREFIX + key);
    return last > 0 ? last + step : start;
  });
  const highest = Math.max(token, ...counts);
  if (highest > Number.MAX_SAFE_INTEGER) {
    throw luaError("WRONGTYPE the clock is beyond all fencing counters");
  }
  // mutation: leaping-counter-expires-early
  const ttlMs = COUNTER_TTL_MS + Math.max(0, Math.ceil((highest - timeUs) / 1_000));
  const expiresAtMs = keys.nowMs() + BigInt(ttlMs);
  for (const key of names) keys.set(COUNTER_PREFIX + key, highest.toFixed(0), expiresAtMs);
  return highest;
}

/** The value that `INCR` increments; its error names the counter. */
function countable(keys: Keyspace, name: string): bigint {
  try {
    const count = parseInteger(keys.get(name) ?? "0");
    if (count < INT64_MAX) return count;
    throw new CommandError("ERR increment or decrement would overflow");
  } catch (error) {
    throw error instanceof CommandError ? new ReturnedError(naming(error.message, name)) : error;
  }
}

function notCounter(name: string): string {
  return naming("WRONGTYPE this is no fencing counter", name);
}

/** A text that ends with a name; the server cuts it off at a NUL. */
function naming(text: string, name: string): string {
  return `${text}: ${name.split("\0", 1)[0]}`;
}

/** `countOf(key)`. */
function countOf(keys: Keyspace, name: string): number {
  const text = keys.get(name) ?? "0";
  if (DIGITS.test(text) && Number(text) < Number.MAX_SAFE_INTEGER) return Number(text);
  throw luaError(notCounter(name));
}

function nowUs({ server }: CommandContext): number {
  return Math.floor(server.clock.wallMs() * 1_000);
}
