/**
 * The library `redis`, and how replies become values of Lua and values become replies.
 *
 * @module
 */
import {
  CommandError,
  Double,
  fromByteString,
  type Reply,
  Status,
  Verbatim,
} from "../server/replies.ts";
import { general } from "./numbers.ts";
import { sha1 } from "./sha1.ts";
import { Library, LuaError, LuaTable, UnsupportedError, type Value } from "./values.ts";

/** Executes a command of a script; throws the {@linkcode CommandError} of one that fails. */
export type CallCommand = (name: string, args: string[]) => Reply;

/** How many digits a number has at most as the argument of a command. */
const ARGUMENT_DIGITS = 17;
/** Most tables inside each other in a reply. */
const REPLY_DEPTH_MAX = 100;
/** Fields by which a table stands for a reply of RESP3. */
const RESP3_FIELDS = ["double", "map", "set", "big_number", "verbatim_string"];

/** Executes the commands of the script that runs. */
let callCommand: CallCommand;

/** Runs a script whose commands are executed by `call`. Runs may be nested. */
export function runWith<T>(call: CallCommand, run: () => T): T {
  const before = callCommand;
  callCommand = call;
  try {
    return run();
  } finally {
    callCommand = before;
  }
}

/** The library. */
export const REDIS = new Library("redis", {
  call: ([name, ...args]) => call(name, args),
  pcall: ([name, ...args]) => pcall(name, args),
  error_reply: ([text, ...rest]) => {
    if (typeof text !== "string" || rest.length > 0) {
      return errorTable("ERR wrong number or type of arguments");
    }
    const [, code = "ERR", message] = /^-?(?:([^ ]*) )?([^]*)$/u.exec(text.split("\0", 1)[0])!;
    return errorTable(`${code} ${message.replace(/^[\r\n]+|[\r\n]+$/gu, "")}`);
  },
  replicate_commands: () => true,
  sha1hex: (args) => {
    if (args.length !== 1) throw new LuaError(errorTable("ERR wrong number of arguments"));
    return sha1(fromByteString(wordOf(args[0]) ?? ""));
  },
  status_reply: ([text, ...rest]) => {
    if (typeof text !== "string" || rest.length > 0) {
      return errorTable("ERR wrong number or type of arguments");
    }
    return tableWith("ok", text);
  },
});

/** `redis.call`. */
export function call(name: Value, args: Value[]): Value {
  try {
    return toValue(callCommand(commandName(name), wordsOf(args)));
  } catch (error) {
    throw error instanceof CommandError ? new LuaError(errorTable(error.message)) : error;
  }
}

/** `redis.pcall`. */
export function pcall(name: Value, args: Value[]): Value {
  try {
    return toValue(callCommand(commandName(name), wordsOf(args)));
  } catch (error) {
    if (error instanceof CommandError) return errorTable(error.message);
    throw error;
  }
}

function commandName(name: Value): string {
  if (typeof name === "string") return name;
  if (name === undefined) {
    throw new CommandError("ERR Please specify at least one argument for this redis lib call");
  }
  return wordsOf([name])[0];
}

function wordsOf(args: Value[]): string[] {
  for (let at = 0; at < args.length; at++) {
    if (typeof args[at] === "string") continue;
    const word = wordOf(args[at]);
    if (typeof word !== "string") {
      throw new CommandError("ERR Lua redis lib command arguments must be strings or integers");
    }
    args[at] = word;
  }
  return args as string[];
}

function wordOf(value: Value): string | undefined {
  if (typeof value !== "number") return value as string | undefined;
  if (Number.isSafeInteger(value) && !Object.is(value, -0)) return String(value);
  return general(value, ARGUMENT_DIGITS);
}

function tableWith(field: string, value: Value): LuaTable {
  const table = new LuaTable();
  table.set(field, value);
  return table;
}

function errorTable(message: string): LuaTable {
  const table = tableWith("err", message);
  table.set("ignore_error_stats_update", true); // servers have it too
  return table;
}

function toValue(reply: Reply): Value {
  if (typeof reply === "string" || typeof reply === "number") return reply;
  if (reply === null) return false;
  if (typeof reply === "bigint") return Number(reply);
  if (Array.isArray(reply)) {
    return new LuaTable(
      reply.every((item) => typeof item === "string") ? reply : reply.map(toValue),
    );
  }
  if (reply instanceof Status) return tableWith("ok", reply.text);
  if (reply instanceof Double || reply instanceof Verbatim) return reply.text;
  throw new UnsupportedError("a command with such a reply");
}

/** What a script returns, as a reply. */
export function toReply(value: Value, depth = 0): Reply {
  if (typeof value === "string" || typeof value === "number") return value;
  if (value === true) return 1;
  if (!(value instanceof LuaTable)) return null;
  if (depth > REPLY_DEPTH_MAX) {
    throw new UnsupportedError(`a reply with more than ${REPLY_DEPTH_MAX} levels`);
  }
  if (value.isList) return value.list.map((item) => toReply(item, depth + 1));
  const error = value.get("err");
  if (typeof error === "string") return new CommandError(toText(error));
  const status = value.get("ok");
  if (typeof status === "string") return new Status(toText(status));
  if (RESP3_FIELDS.some((field) => value.get(field) !== undefined)) {
    throw new UnsupportedError("a reply of RESP3");
  }
  return value.list.map((item) => toReply(item, depth + 1));
}

/**
 * What a server keeps of a text that is no bulk string: it ends at a zero byte, and has no line
 * ends.
 */
function toText(text: string): string {
  return text.split("\0", 1)[0].replace(/[\r\n]/gu, " ");
}

/** The error with which a script ended. */
export function scriptError({ value, line }: LuaError, digest: string): CommandError {
  const found = value instanceof LuaTable ? value.get("err") ?? "ERR unknown error" : undefined;
  const message = found ?? `ERR ${typeof value === "string" ? value : String(value ?? "nil")}`;
  return new CommandError(`${toText(String(message))} script: ${digest}, on @user_script:${line}.`);
}
