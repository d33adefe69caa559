/**
 * Commands and errors inside scripts.
 *
 * redis-server adds to an error the line of the script. The server in memory has no script to count lines in, so it names
 * the script alone.
 *
 * @module
 */
import { setKey } from "../commands/key_commands.ts";
import type { Keyspace } from "../server/keyspace.ts";
import { CommandError } from "../server/replies.ts";

/** An error that a script returns; one that ends a script is a plain {@linkcode CommandError}. */
export class ReturnedError extends CommandError {}

/** `redis.call('GET', key)`. */
export function getInScript(keyspace: Keyspace, key: string | undefined): string | undefined {
  if (key === undefined) throw missingArgument();
  return keyspace.get(key);
}

/** `redis.call('SET', key, value, 'PX', ttl)`, or with `NX` and without a TTL. */
export function setInScript(
  keyspace: Keyspace,
  key: string | undefined,
  [value, ...options]: readonly (string | undefined)[],
): boolean {
  const words = [key, value, ...options];
  if (words.includes(undefined)) throw missingArgument();
  return setKey(keyspace, words as string[]);
}

/** The error of a command that misses an argument. */
function missingArgument(): CommandError {
  return new CommandError("ERR Lua redis lib command arguments must be strings or integers");
}

/** An error that Lua throws by itself. */
export function luaError(text: string): CommandError {
  return new CommandError(`ERR user_script: ${text}`);
}

/** The error of a script as its caller gets it. */
export function scriptError(error: unknown, sha1: string): CommandError {
  if (error instanceof ReturnedError) return error;
  if (error instanceof CommandError) {
    return new CommandError(`${error.message} script: ${sha1}, on @user_script.`);
  }
  // A key or a value is missing: Lua stops with an error, and so does the function in its place.
  return new CommandError(`ERR user_script: ${(error as Error).message} script: ${sha1}`);
}

/** `tonumber(text)`. */
export function toNumber(text: string | undefined): number | undefined {
  const number = Number(text?.trim() || NaN);
  return Number.isNaN(number) ? undefined : number;
}
