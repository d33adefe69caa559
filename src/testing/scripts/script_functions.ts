/**
 * The Lua scripts of the library as functions, with the same replies also to arguments that the library never sends.
 *
 * @module
 */
import { ACQUIRE_OR_WAIT } from "../../redis_node/scripts/acquire.ts";
import { ADOPT } from "../../redis_node/scripts/adopt.ts";
import { ACQUIRE_COUNTED, RAISE } from "../../redis_node/scripts/fencing.ts";
import { CREATED } from "../../redis_node/scripts/creation.ts";
import { EXTEND } from "../../redis_node/scripts/extend.ts";
import { ACQUIRE_ANY } from "../../redis_node/scripts/pool.ts";
import { ACQUIRE_SHARED, EXTEND_SHARED, RELEASE_SHARED } from "../../redis_node/scripts/readers.ts";
import { RELEASE, RELEASE_QUEUED } from "../../redis_node/scripts/release.ts";
import { TRIAL } from "../../redis_node/scripts/trial.ts";
import { adopt } from "./adopt_function.ts";
import { created } from "./creation_function.ts";
import { acquireCounted, raise } from "./fence_functions.ts";
import { acquireAny } from "./pool_functions.ts";
import { acquireOrWait, release, releaseQueued } from "./queue_functions.ts";
import { acquireShared, extendShared, releaseShared } from "./reader_functions.ts";
import type { CommandContext } from "../commands/command.ts";
import { expireKey } from "../commands/key_commands.ts";
import type { Keyspace } from "../server/keyspace.ts";
import { array, integer } from "../server/replies.ts";
import { getInScript, luaError, toNumber } from "./script_calls.ts";

/** A script as a function. */
export interface ScriptFunction {
  /** The SHA-1 of its source, in lower-case hexadecimal digits. */
  readonly sha1: string;
  /** Executes it with `KEYS` and `ARGV`; returns the encoded reply. */
  run(context: CommandContext, keys: readonly string[], args: readonly string[]): string;
}

/** Every script of this library. */
export const SCRIPT_FUNCTIONS: readonly ScriptFunction[] = [
  integerScript(EXTEND.sha1, extend),
  { sha1: RELEASE.sha1, run: release },
  { sha1: RELEASE_QUEUED.sha1, run: releaseQueued },
  { sha1: ACQUIRE_OR_WAIT.sha1, run: acquireOrWait },
  { sha1: ACQUIRE_COUNTED.sha1, run: acquireCounted },
  { sha1: RAISE.sha1, run: raise },
  { sha1: ADOPT.sha1, run: adopt },
  { sha1: ACQUIRE_ANY.sha1, run: acquireAny },
  { sha1: ACQUIRE_SHARED.sha1, run: acquireShared },
  { sha1: EXTEND_SHARED.sha1, run: extendShared },
  { sha1: RELEASE_SHARED.sha1, run: releaseShared },
  { sha1: CREATED.sha1, run: created },
  { sha1: TRIAL.sha1, run: trial },
];

/** A script that needs only the keys, and replies an integer. */
export function integerScript(
  sha1: string,
  run: (keyspace: Keyspace, keys: readonly string[], args: readonly string[]) => number,
): ScriptFunction {
  return { sha1, run: (context, keys, args) => integer(run(context.keys, keys, args)) };
}

function extend(keyspace: Keyspace, keys: readonly string[], args: readonly string[]): number {
  const [value, ttl, shortens] = args;
  let reply = 1;
  for (const key of keys) {
    const found = getInScript(keyspace, key);
    // mutation: extension-steals
    if (found !== undefined && found !== value) return 0;
    // mutation: extension-sets-missing-keys
    if (found === undefined) reply = 2;
  }
  for (const key of keys) {
    const ttlMs = shortens === undefined ? toNumber(ttl) : Infinity;
    if (ttlMs === undefined) throw luaError("attempt to compare number with nil");
    // mutation: extension-shortens-ttl
    if (Number(keyspace.remainingMs(key)) < ttlMs) expireKey(keyspace, key, ttl);
  }
  return reply;
}

/** TRIAL: this server refuses none of the calls, and the key, its queue and its counter are missing. */
function trial(_context: CommandContext, [key]: readonly string[]): string {
  if (key === undefined) throw luaError("attempt to concatenate a nil value (local 'key')");
  return array([]);
}
