/**
 * What a command in RESP2 means: its arguments, the keys that it is about, and what it does to a lock.
 *
 * @module
 */
import { ACQUIRE_ALL, ACQUIRE_OR_WAIT } from "../redis_node/scripts/acquire.ts";
import { ACQUIRE_COUNTED, ACQUIRE_FENCED } from "../redis_node/scripts/fencing.ts";
import { RELEASE_QUEUED } from "../redis_node/scripts/queue.ts";
import { RELEASE } from "../redis_node/scripts/release.ts";
import type { Script } from "../redis_node/scripts/script.ts";

/** What every key of ours begins with that is not the key of a lock. */
const HELPER_PREFIX = "hasp:";

const CR = 13;

/** The scripts that set keys, and those that delete them, by their source and by their digest. */
const ACQUIRES = namesOf(ACQUIRE_ALL, ACQUIRE_OR_WAIT, ACQUIRE_COUNTED, ACQUIRE_FENCED);
const RELEASES = namesOf(RELEASE, RELEASE_QUEUED);

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** A command, taken apart. */
export interface ReadCommand {
  /** Its name and its arguments. */
  readonly args: readonly string[];
  /** The keys of locks that it names. */
  readonly keys: readonly string[];
  /** The value that it sets the keys to, or deletes them for; `undefined` if it does neither. */
  readonly value: string | undefined;
  /** The TTL that it sets keys with, in milliseconds; `undefined` if it sets none, so that one with a value releases. */
  readonly ttlMs: number | undefined;
}

/** The last command in RESP2 and what it says, because all nodes get the same bytes one after another. */
let last: { readonly bytes: Uint8Array; readonly command: ReadCommand } | undefined;

/**
 * Takes a command apart.
 *
 * @param command The command in RESP2, as the encoder writes it, or its arguments.
 */
export function readCommand(command: Uint8Array | string[]): ReadCommand {
  if (!(command instanceof Uint8Array)) return read(command);
  if (last?.bytes !== command) last = { bytes: command, command: read(argumentsOf(command)) };
  return last.command;
}

function read(args: string[]): ReadCommand {
  const [name, first, second] = args;
  switch (name) {
    case "SET":
      return { args, keys: [first], value: second, ttlMs: Number(args.at(-1)) };
    case "EVAL":
    case "EVALSHA": {
      const keyCount = Math.max(Number(second), 0);
      const keys = args.slice(3, 3 + keyCount).filter(isLockKey);
      const [value, ttl] = args.slice(3 + keyCount);
      if (ACQUIRES.has(first)) return { args, keys, value, ttlMs: Number(ttl) };
      return { args, keys, value: RELEASES.has(first) ? value : undefined, ttlMs: undefined };
    }
    case "GET":
    case "PTTL":
    case "TYPE":
      return { args, keys: [first].filter(isLockKey), value: undefined, ttlMs: undefined };
    default:
      return { args, keys: [], value: undefined, ttlMs: undefined };
  }
}

function isLockKey(key: string): boolean {
  return !key.startsWith(HELPER_PREFIX);
}

function namesOf(...scripts: readonly Script[]): ReadonlySet<string> {
  return new Set(scripts.flatMap(({ source, sha1 }) => [source, sha1]));
}

/** The arguments of a command: an array of bulk strings. */
function argumentsOf(command: Uint8Array): string[] {
  let at = 0;
  /** Reads a line of a mark and a number. */
  const readNumber = () => {
    const end = command.indexOf(CR, at);
    const digits = decoder.decode(command.subarray(at + 1, end));
    at = end + 2;
    return Number(digits);
  };
  return Array.from({ length: readNumber() }, () => {
    const length = readNumber();
    const text = decoder.decode(command.subarray(at, at + length));
    at += length + 2;
    return text;
  });
}
