/**
 * Commands inside scripts, whose errors name where they stand.
 *
 * @module
 */
import type { Script } from "../../redis_node/scripts/script.ts";
import { setKey } from "../commands/key_commands.ts";
import type { Keyspace } from "../server/keyspace.ts";
import { CommandError } from "../server/replies.ts";

/** Where in a script a command stands: an error names both. */
export interface ScriptPlace {
  /** The script. */
  readonly sha1: string;
  /** The line of its source, counted from 1. */
  readonly line: number;
}

/** `redis.call('GET', key)` in a script. */
export function getInScript(keyspace: Keyspace, key: string | undefined, place: ScriptPlace) {
  return atPlace(place, () => {
    if (key === undefined) throw noArgument();
    return keyspace.get(key);
  });
}

/** `redis.call('SET', key, ARGV[1], 'PX', ARGV[2])` in a script. */
export function setInScript(
  keyspace: Keyspace,
  key: string,
  [value, ttl]: readonly string[],
  place: ScriptPlace,
): void {
  atPlace(place, () => {
    if (value === undefined || ttl === undefined) {
      throw noArgument();
    }
    setKey(keyspace, [key, value, "PX", ttl]);
  });
}

/** An argument of a command in a script is missing. */
function noArgument(): CommandError {
  return new CommandError("ERR Lua redis lib command arguments must be strings or integers");
}

/** Does what a command in a script does; an error names where it stands. */
export function atPlace<Result>(place: ScriptPlace, action: () => Result): Result {
  try {
    return action();
  } catch (error) {
    throw error instanceof CommandError ? scriptError(error, place) : error;
  }
}

/** The error of a command in a script. */
export function scriptError({ message }: CommandError, { sha1, line }: ScriptPlace): CommandError {
  return new CommandError(`${message} script: ${sha1}, on @user_script:${line}.`);
}

/**
 * Where in a script `text` stands first.
 *
 * @param script The script.
 * @param text Part of a line.
 */
export function placeIn({ sha1, source }: Script, text: string): ScriptPlace {
  return {
    sha1,
    get line() { // looked for where there is an error alone
      return source.slice(0, source.indexOf(text)).split("\n").length;
    },
  };
}

/** `tonumber(text)`. */
export function toNumber(text: string | undefined): number | undefined {
  const number = Number(text?.trim() || NaN);
  return Number.isNaN(number) ? undefined : number;
}
