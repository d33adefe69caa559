/**
 * A Lua script: compiled once, and run with keys and arguments.
 *
 * The subset is what scripts of locks are written in: all statements of Lua 5.1, functions as
 * values, the libraries `string`, `table` and `math` for the most part, and `redis.call`,
 * `redis.pcall`, `redis.error_reply`, `redis.status_reply` and `redis.sha1hex`. What is missing is
 * refused by an error that names the line and the construct, so that no script gets an answer that
 * a server would not give. Missing are metatables, coroutines, `pcall`, `cjson` and the like, and
 * whatever depends on the order of a table's fields or on its length if it has holes.
 *
 * @module
 */
import { fromByteString, type Reply } from "../server/replies.ts";
import { BASE } from "./base_library.ts";
import { compile } from "./compiler.ts";
import { parse } from "./parser.ts";
import { type CallCommand, REDIS, runWith, scriptError, toReply } from "./redis_library.ts";
import { sha1 } from "./sha1.ts";
import {
  first,
  keeping,
  LuaError,
  type LuaFunction,
  LuaTable,
  machine,
  STEPS_MAX,
  UnsupportedError,
  type Value,
} from "./values.ts";

/** Most bytes of a source. */
const SOURCE_BYTES_MAX = 64 * 1024;

/** A compiled script. */
export class LuaScript {
  /** The SHA-1 of its source, in lower-case hexadecimal digits. */
  readonly sha1: string;
  readonly #run: LuaFunction;
  #keys = new LuaTable();
  #args = new LuaTable();

  constructor(source: string) {
    if (source.length > SOURCE_BYTES_MAX) {
      throw new UnsupportedError(`a source of more than ${SOURCE_BYTES_MAX} bytes`, 1);
    }
    this.sha1 = sha1(fromByteString(source));
    this.#run = compile(parse(source), (name) => this.#global(name));
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
    const { site, steps, depth } = machine;
    const [outerKeys, outerArgs] = [this.#keys, this.#args];
    machine.steps = STEPS_MAX;
    machine.depth = 0;
    this.#keys = new LuaTable(keys);
    this.#args = new LuaTable(args);
    try {
      return toReply(first(runWith(call, () => this.#run([]))));
    } catch (error) {
      throw error instanceof LuaError ? scriptError(error, this.sha1) : error;
    } finally {
      [this.#keys, this.#args] = [outerKeys, outerArgs];
      Object.assign(machine, { site, steps, depth });
    }
  }

  #global(name: string): Value {
    if (name === "KEYS") return this.#keys;
    if (name === "ARGV") return this.#args;
    if (name === "redis") return REDIS;
    return Object.hasOwn(BASE, name) ? BASE[name] : undefined;
  }
}

/**
 * The compiled script; compiles a source only once. Throws an {@linkcode UnsupportedError} if the
 * source, a byte string, is no Lua, or has what this implementation has not.
 */
export const scriptOf: (source: string) => LuaScript = keeping((it) => new LuaScript(it));
