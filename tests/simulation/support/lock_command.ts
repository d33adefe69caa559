/**
 * Reading a request as what it is to the locks: who wants to acquire, extend or release what.
 *
 * @module
 */
import {
  ACQUIRE_ALL,
  ACQUIRE_COUNTED,
  ACQUIRE_FENCED,
  ACQUIRE_OR_WAIT,
  EXTEND,
  RELEASE,
  RELEASE_QUEUED,
} from "./library.ts";

/** What a command is about, if it is about a lock. */
export interface LockCommand {
  readonly operation: "acquire" | "extend" | "release";
  readonly keys: readonly string[];
  readonly value: string;
}

const OPERATIONS = new Map<string, LockCommand["operation"]>(
  ([
    ["acquire", ACQUIRE_ALL],
    ["acquire", ACQUIRE_OR_WAIT],
    ["acquire", ACQUIRE_COUNTED],
    ["acquire", ACQUIRE_FENCED],
    ["extend", EXTEND],
    ["release", RELEASE],
    ["release", RELEASE_QUEUED],
  ] as const).flatMap(([operation, { sha1, source }]) => [[sha1, operation], [source, operation]]),
);

/** What a request is about, where it is about a lock. */
export function lockCommand(words: readonly string[]): LockCommand | undefined {
  if (words[0] === "SET") return { operation: "acquire", keys: [words[1]], value: words[2] };
  if (words[0] !== "EVALSHA" && words[0] !== "EVAL") return undefined;
  const operation = OPERATIONS.get(words[1]);
  if (!operation) return undefined;
  const count = Number(words[2]);
  const keys = words.slice(3, 3 + count);
  return { operation, keys, value: words[3 + count] };
}
