/**
 * The commands about keys: GET, MGET, SET, DEL, EXISTS, PTTL, TYPE, PEXPIRE, INCR, DECR.
 *
 * SET supports NX, XX, PX and EX; any other option is a syntax error, as on a server that is older
 * than the option.
 *
 * @module
 */
import type { CommandContext, CommandTable } from "./command.ts";
import { INT64_MAX, INT64_MIN, parseInteger } from "./integers.ts";
import type { Keyspace } from "../server/keyspace.ts";
import { CommandError, OK, type Reply, Status } from "../server/replies.ts";

/** The commands. */
export const KEY_COMMANDS: CommandTable = {
  get: { arity: 2, run: ({ keys }, [key]) => keys.get(key) ?? null },
  mget: { arity: -2, run: ({ keys }, names) => names.map((key) => textOf(keys, key)) },
  set: { arity: -3, grows: true, run: set },
  del: {
    arity: -2,
    writes: true,
    run: ({ keys }, args) => howMany(args, (key) => keys.delete(key)),
  },
  exists: { arity: -2, run: ({ keys }, args) => howMany(args, (key) => keys.has(key)) },
  pttl: { arity: 2, run: ({ keys }, [key]) => keys.remainingMs(key) },
  type: { arity: 2, run: ({ keys }, [key]) => new Status(keys.type(key)) },
  pexpire: { arity: 3, writes: true, run: expire },
  incr: { arity: 2, grows: true, run: (context, [key]) => count(context, key, 1n) },
  decr: { arity: 2, grows: true, run: (context, [key]) => count(context, key, -1n) },
};

/** The options of one SET. */
interface SetOptions {
  condition?: "NX" | "XX";
  unit?: "PX" | "EX";
  amount?: string;
}

function set({ keys }: CommandContext, args: readonly string[]): Reply {
  const [key, value, ...words] = args;
  const { condition, unit, amount } = setOptions(words);
  const expiresAtMs = unit && expiryMs(amount!, unit === "EX" ? 1000n : 1n, keys.nowMs());
  if (condition !== undefined && keys.has(key) !== (condition === "XX")) return null;
  keys.set(key, value, expiresAtMs);
  return OK;
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

function expire({ keys }: CommandContext, [key, amount]: readonly string[]): Reply {
  const lifeMs = parseInteger(amount);
  const nowMs = keys.nowMs();
  if (lifeMs > INT64_MAX - nowMs) {
    throw new CommandError("ERR invalid expire time in 'pexpire' command");
  }
  return keys.expireAt(key, nowMs + lifeMs) ? 1 : 0;
}

/** Adds to the counter of a key. */
function count({ keys }: CommandContext, key: string, step: bigint): Reply {
  const after = parseInteger(keys.get(key) ?? "0") + step;
  if (after > INT64_MAX || after < INT64_MIN) {
    throw new CommandError("ERR increment or decrement would overflow");
  }
  keys.replace(key, String(after));
  return after;
}

/** What MGET replies for a key: null also if it holds no text. */
function textOf(keys: Keyspace, key: string): Reply {
  return keys.type(key) === "string" ? keys.get(key)! : null;
}

function howMany(keys: readonly string[], holds: (key: string) => boolean): number {
  let counted = 0;
  for (const key of keys) if (holds(key)) counted++;
  return counted;
}
