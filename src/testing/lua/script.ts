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
import { CommandError, fromByteString, type Reply } from "../server/replies.ts";
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
   * @throws {CommandError} If it ended with an error, or met what this implementation has not.
   */
  run(call: CallCommand, keys: string[], args: string[]): Reply {
    const run = () => toReply(first(this.#run([])));
    return withCommandErrors(() => runWith(call, keys, args, run), this.sha1);
  }
}

/**
 * Has the client know how a script ended, or what it uses that is missing here, or that the runtime
 * has no room for: an expression that is too deep for its stack, or a pattern that is too large for
 * it.
 */
function withCommandErrors<T>(action: () => T, digest = ""): T {
  try {
    return action();
  } catch (error) {
    if (error instanceof LuaError) throw scriptError(error, digest);
    if (error instanceof UnsupportedError) throw new CommandError(`ERR ${error.message}`);
    if (!(error instanceof RangeError || error instanceof SyntaxError)) throw error;
    throw new CommandError(`ERR MemoryRedis cannot run this script: ${error.message}`);
  }
}

/**
 * The compiled script; compiles a source only once. Throws a {@linkcode CommandError} if the
 * source, a byte string, is no Lua, or has what this implementation has not.
 */
export const scriptOf: (source: string) => LuaScript = keeping((it) =>
  withCommandErrors(() => new LuaScript(it))
);
