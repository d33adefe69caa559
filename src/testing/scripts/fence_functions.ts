/**
 * The scripts that count fencing tokens, as functions that stand for them.
 *
 * @module
 */
import { COUNTER_TTL_MS, counterStart } from "../../fencing/token.ts";
import {
  ACQUIRE_COUNTED,
  ACQUIRE_FENCED,
  counterKey,
  EXTEND_FENCED,
  RAISE,
} from "../../redis_node/scripts/fencing.ts";
import type { Script } from "../../redis_node/scripts/script.ts";
import type { CommandContext } from "../commands/command.ts";
import { INT64_MAX, parseInteger } from "../commands/integers.ts";
import { setKey } from "../commands/key_commands.ts";
import type { Keyspace } from "../server/keyspace.ts";
import { acquireOrWait } from "./queue_functions.ts";
import { CommandError, integer } from "../server/replies.ts";
import { atPlace, placeIn, scriptError, toNumber } from "./script_places.ts";

/** ACQUIRE_COUNTED. */
export function acquireCounted(
  context: CommandContext,
  [key, counter]: readonly string[],
  [value, ttl, hint]: readonly string[],
): string {
  const { keys } = context;
  const set = atPlace(
    placeIn(ACQUIRE_COUNTED, "redis.call('SET', KEYS[1]"),
    () => setKey(keys, [key, value, "NX", "PX", ttl]),
  );
  if (!set) return integer(0);
  const before = atPlace(
    placeIn(ACQUIRE_COUNTED, "redis.call('INCR'"),
    () => countable(keys, counter),
  );
  if (before >= 1n) {
    putCount(keys, counter, before + 1n);
    return integer(Number(before + 1n));
  }
  const count = startOf(context, hint) + 1;
  putCount(keys, counter, count);
  return integer(count);
}

/** ACQUIRE_FENCED. */
export function acquireFenced(
  context: CommandContext,
  names: readonly string[],
  args: readonly string[],
): string {
  const count = () => {
    const counts = names.map((key) => {
      const last = countIn(context.keys, key, ACQUIRE_FENCED) ?? startOf(context, args[5]);
      return last + 1;
    });
    return lift(context.keys, names, Math.max(0, ...counts), ACQUIRE_FENCED);
  };
  return acquireOrWait(context, names, args, ACQUIRE_FENCED, count);
}

/** RAISE. */
export function raise(
  { keys }: CommandContext,
  names: readonly string[],
  [value, token]: readonly string[],
): string {
  const place = placeIn(RAISE, "redis.call('GET', key) ~=");
  for (const key of names) if (atPlace(place, () => keys.get(key)) !== value) return integer(0);
  return integer(lift(keys, names, toNumber(token), RAISE));
}

/** Lifts the counters of several keys to the highest of them and `token`, and returns that. */
export function lift(
  keyspace: Keyspace,
  names: readonly string[],
  token: number | undefined,
  script: Script = EXTEND_FENCED,
): number {
  const counts = names.map((key) => {
    const count = countIn(keyspace, key, script) ?? 0;
    if (token === undefined) throw noToken(script);
    return count;
  });
  const highest = Math.max(token!, ...counts);
  for (const key of names) putCount(keyspace, counterKey(key), highest);
  return highest;
}

/** What `INCR` counts on from. */
function countable(keyspace: Keyspace, counter: string): bigint {
  const count = parseInteger(keyspace.get(counter) ?? "0");
  if (count < INT64_MAX) return count;
  throw new CommandError("ERR increment or decrement would overflow");
}

/** `count(key)`: what is no number is no counter. */
function countIn(keyspace: Keyspace, key: string, script: Script): number | undefined {
  const place = placeIn(script, "tonumber(redis.call('GET', counter(key)))");
  return toNumber(atPlace(place, () => keyspace.get(counterKey(key))));
}

function putCount(keyspace: Keyspace, counter: string, count: number | bigint): void {
  keyspace.set(counter, String(count), keyspace.nowMs() + BigInt(COUNTER_TTL_MS));
}

function startOf({ server }: CommandContext, hint: string): number {
  return counterStart(Math.floor(server.clock.wallMs() * 1_000), Number(hint));
}

/** `math.max(token, …)` where the token is no number. */
function noToken(script: Script): CommandError {
  const place = placeIn(script, "highest = math.max(highest, count(key) or 0)");
  const what = "bad argument #1 to 'max' (number expected, got nil)";
  return scriptError(new CommandError(`ERR user_script:${place.line}: ${what}`), place);
}
