/**
 * A Lua script: compiled once, and run with keys and arguments.
 *
 * The subset is what scripts of locks are written in; {@linkcode MemoryRedis} lists it. What is
 * missing is refused by an error that names the line and the construct, so that no script gets an
 * answer that a server would not give. If that shows when the script is read, the script does
 * nothing.
 *
 * @module
 */
import { fromByteString, type Reply } from "../server/replies.ts";
import { compile } from "./compiler.ts";
import { scriptError, toReply } from "./redis_library.ts";
import { sha1 } from "./sha1.ts";
import {
  type CallCommand,
  first,
  keeping,
  LuaError,
  type LuaFunction,
  runWith,
  UnsupportedError,
} from "./values.ts";

/** Most bytes of a source. */
const SOURCE_BYTES_MAX = 64 * 1024;

/** A compiled script. */
export class LuaScript {
  /** The SHA-1 of its source, in lower-case hexadecimal digits. */
  readonly sha1: string;
  readonly #run: LuaFunction;

  constructor(source: string) {
    if (source.length > SOURCE_BYTES_MAX) {
      throw new UnsupportedError(`a source of more than ${SOURCE_BYTES_MAX} bytes`, 1);
    }
    this.sha1 = sha1(fromByteString(source));
    this.#run = compile(source);
  }

  /**
   * Runs it.
   *
   * @param call Executes its commands.
   * @param keys `KEYS`.
   * @param args `ARGV`.
   * @returns What it returned.
   * @throws {CommandError} If it ended with an error.
   * @throws {UnsupportedError} If it met what this implementation has not.
   */
  run(call: CallCommand, keys: string[], args: string[]): Reply {
    try {
      return runWith(call, keys, args, () => toReply(first(this.#run([]))));
    } catch (error) {
      throw error instanceof LuaError ? scriptError(error, this.sha1) : error;
    }
  }
}

/**
 * The compiled script; compiles a source only once. Throws an {@linkcode UnsupportedError} if the
 * source, a byte string, is no Lua, or has what this implementation has not.
 */
export const scriptOf: (source: string) => LuaScript = keeping((it) => new LuaScript(it));
