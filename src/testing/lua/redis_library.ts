/**
 * The library `redis`, and how replies become values of Lua and values become replies.
 *
 * @module
 */
import { CommandError, Double, type Reply, Status, Verbatim } from "../server/replies.ts";
import { general } from "./numbers.ts";
import { Library, LuaError, LuaTable, machine, UnsupportedError, type Value } from "./values.ts";

/** How many digits a number has at most as the argument of a command. */
const ARGUMENT_DIGITS = 17;
/** Most tables inside each other in a reply. */
const REPLY_DEPTH_MAX = 100;
/** Fields by which a table stands for a reply of RESP3. */
const RESP3_FIELDS = ["double", "map", "set", "big_number", "verbatim_string"];

/** The library. */
export const REDIS: Library = new Library("redis", {
  call: (args) => {
    const reply = replyTo(args);
    if (reply instanceof CommandError) throw new LuaError(toValue(reply));
    return toValue(reply);
  },
  pcall: (args) => toValue(replyTo(args)),
  error_reply: (args) => {
    const [, code = "ERR", message] = /^-?(?:([^ ]*) )?([^]*)$/u.exec(
      textOf(args).split("\0", 1)[0],
    )!;
    return tableWith("err", `${code} ${message.replace(/^[\r\n]+|[\r\n]+$/gu, "")}`);
  },
  LOG_DEBUG: 0,
  LOG_NOTICE: 2,
  LOG_VERBOSE: 1,
  LOG_WARNING: 3,
  log: (args) => {
    if (args.length > 1 && typeof args[0] === "number" && args[0] >= 0 && args[0] <= 3) return [];
    throw new UnsupportedError("'redis.log' without a level and a text");
  },
  replicate_commands: () => true,
  status_reply: (args) => tableWith("ok", textOf(args)),
});

/** The reply to a command, which may be an error. */
function replyTo(words: Value[]): Reply {
  try {
    if (words.length === 0) {
      throw new CommandError("ERR Please specify at least one argument for this redis lib call");
    }
    for (let at = 0; at < words.length; at++) words[at] = wordOf(words[at]);
    return machine.call(words[0] as string, words.slice(1) as string[]);
  } catch (error) {
    if (error instanceof CommandError) return error;
    throw error;
  }
}

/** A word of a command. */
function wordOf(value: Value): string {
  if (typeof value === "string") return value;
  if (typeof value !== "number") {
    throw new CommandError("ERR Lua redis lib command arguments must be strings or integers");
  }
  if (Number.isSafeInteger(value) && !Object.is(value, -0)) return String(value);
  return general(value, ARGUMENT_DIGITS);
}

/** The only argument, which is text. */
function textOf([text, ...rest]: Value[]): string {
  if (typeof text === "string" && rest.length === 0) return text;
  throw new UnsupportedError("an error or a status that is no text");
}

function tableWith(field: string, value: Value): LuaTable {
  const table = new LuaTable();
  table.set(field, value);
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
  if (reply instanceof CommandError) return tableWith("err", reply.message);
  if (reply instanceof Status) return tableWith("ok", reply.text);
  if (reply instanceof Double || reply instanceof Verbatim) return reply.text;
  throw new UnsupportedError("the reply of such a command");
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
  if (value.get(value.list.length + 1) !== undefined) {
    throw new UnsupportedError("a reply that was not filled from 1 on");
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
