/**
 * The commands about keys: GET, SET, DEL, EXISTS, PTTL, TYPE, PEXPIRE, INCR, and on newer servers DELEX and DELIFEQ.
 *
 * SET supports NX, XX, PX and EX; any other option is a syntax error, as on a server that is older than the option.
 *
 * @module
 */
import type { Command, CommandContext } from "./command.ts";
import { INT64_MAX, parseInteger } from "./integers.ts";
import type { Keyspace } from "../server/keyspace.ts";
import { bulk, CommandError, integer, simple } from "../server/replies.ts";

/** The commands by their names in lower case. */
export const KEY_COMMANDS: Readonly<Record<string, Command>> = {
  get: { arity: 2, run: ({ keys }, [key]) => bulk(keys.get(key)) },
  set: { arity: -3, run: ({ keys }, args) => setReply(setKey(keys, args)) },
  del: { arity: -2, run: ({ keys }, args) => integer(count(args, (key) => keys.delete(key))) },
  exists: { arity: -2, run: ({ keys }, args) => integer(count(args, (key) => keys.has(key))) },
  pttl: { arity: 2, run: ({ keys }, [key]) => integer(keys.remainingMs(key)) },
  type: { arity: 2, run: ({ keys }, [key]) => simple(keys.type(key)) },
  pexpire: { arity: 3, run: expire },
  incr: { arity: 2, run: increment },
  delex: { arity: -2, newer: true, run: deleteIf },
  delifeq: { arity: 3, newer: true, run: deleteIfEqual },
};

/** The options of one SET. */
interface SetOptions {
  condition?: "NX" | "XX";
  unit?: "PX" | "EX";
  amount?: string;
}

/**
 * SET, also for scripts.
 *
 * @param keys The database.
 * @param args The key, the value and the options.
 * @returns Whether the key was set.
 * @throws {CommandError} If an option is unknown, contradicts another, or is not a valid expiry.
 */
export function setKey(keys: Keyspace, args: readonly string[]): boolean {
  const [key, value, ...words] = args;
  const { condition, unit, amount } = setOptions(words);
  const expiresAtMs = unit && expiryMs(amount!, unit === "EX" ? 1000n : 1n, keys.nowMs());
  if (condition !== undefined && keys.has(key) !== (condition === "XX")) return false;
  keys.set(key, value, expiresAtMs);
  return true;
}

function setReply(done: boolean): string {
  return done ? simple("OK") : bulk(undefined);
}

function setOptions(words: readonly string[]): SetOptions {
  const options: SetOptions = {};
  for (let index = 0; index < words.length; index++) {
    const word = words[index].toUpperCase();
    const last = index === words.length - 1;
    if ((word === "NX" || word === "XX") && (options.condition ?? word) === word) {
      options.condition = word;
    } else if ((word === "PX" || word === "EX") && (options.unit ?? word) === word && !last) {
      options.unit = word;
      options.amount = words[++index];
    } else {
      throw new CommandError("ERR syntax error");
    }
  }
  return options;
}

function expiryMs(amount: string, unitMs: bigint, nowMs: bigint): bigint {
  const lifeMs = parseInteger(amount) * unitMs;
  if (lifeMs <= 0n || lifeMs > INT64_MAX - nowMs) {
    throw new CommandError("ERR invalid expire time in 'set' command");
  }
  return nowMs + lifeMs;
}

function expire({ keys }: CommandContext, [key, amount]: readonly string[]): string {
  return integer(expireKey(keys, key, amount) ? 1 : 0);
}

/**
 * PEXPIRE, also for scripts.
 *
 * @param keys The database.
 * @param key The key.
 * @param amount The new TTL in milliseconds, as text.
 * @returns Whether the key exists.
 * @throws {CommandError} If the amount is not a valid TTL.
 */
export function expireKey(keys: Keyspace, key: string, amount: string): boolean {
  const lifeMs = parseInteger(amount);
  const nowMs = keys.nowMs();
  if (lifeMs > INT64_MAX - nowMs) {
    throw new CommandError("ERR invalid expire time in 'pexpire' command");
  }
  return keys.expireAt(key, nowMs + lifeMs);
}

function increment({ keys }: CommandContext, [key]: readonly string[]): string {
  const before = parseInteger(keys.get(key) ?? "0");
  if (before === INT64_MAX) throw new CommandError("ERR increment or decrement would overflow");
  keys.replace(key, String(before + 1n));
  return integer(before + 1n);
}

function deleteIf(context: CommandContext, [key, ...condition]: readonly string[]): string {
  if (condition.length === 0) return integer(context.keys.delete(key) ? 1 : 0);
  const [word, value] = condition;
  if (condition.length !== 2 || word.toUpperCase() !== "IFEQ") {
    throw new CommandError("ERR syntax error");
  }
  return deleteIfEqual(context, [key, value]);
}

function deleteIfEqual({ keys }: CommandContext, [key, value]: readonly string[]): string {
  return integer(keys.get(key) === value && keys.delete(key) ? 1 : 0);
}

function count(keys: readonly string[], holds: (key: string) => boolean): number {
  let counted = 0;
  for (const key of keys) if (holds(key)) counted++;
  return counted;
}
