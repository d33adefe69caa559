/**
 * What it means that a server refuses a command, and the words that explain it.
 *
 * @module
 */
import { ELSEWHERE, ReplyError } from "../redis/errors.ts";

/** Error prefix of a script that the server does not know. */
export const UNKNOWN_SCRIPT = "NOSCRIPT";
/** Servers before Redis 5 refuse a script that writes after it has read the clock, by this text. */
const TOO_OLD = "Write commands not allowed after non deterministic commands";
const TOO_OLD_EXPLANATION =
  "ERR the server is too old: fencing tokens, the restart guard, shared mode " +
  "and waiting without polling need Redis 5 or newer";

/** Dragonfly refuses a script that builds the name of a key, by this text. */
const UNDECLARED = "script tried accessing undeclared key";
const UNDECLARED_EXPLANATION =
  "ERR the server refuses keys that a script builds: start Dragonfly with " +
  "--default_lua_flags=allow-undeclared-keys";

/** What follows a cluster's error about keys that another of its nodes has. */
const CLUSTER_EXPLANATION =
  ": the server is a node of a cluster, which takes commandNode() and a hash tag in each resource";
/** How a server says that it knows no command of an attempt. */
const UNKNOWN_COMMAND = /^ERR unknown command '(SET|EVAL)'/u;
const UNKNOWN_EXPLANATION = ": a Sentinel, or a server without Lua scripts, can hold no lock";
/**
 * In the error if the queue's key, or the counter's, holds another type; older servers put other
 * words before it.
 */
const WRONG_TYPE = "WRONGTYPE";
/** How a server says that it is a replica: also inside the errors of scripts before Redis 7. */
const DEMOTED = /^(READONLY|MASTERDOWN) |-READONLY /u;

/** What Redis 7, Valkey 9.1 and newer ones append to an error of a command in a script. */
const IN_SCRIPT = / script: (\S+, )?on @user_script:\d+\.$/u;

/**
 * An error reply without what concerns the script alone, or one that explains it: if the server is
 * too old for a script, refuses the names of keys that it builds, is a cluster's, or a Sentinel.
 */
export function explained(reply: ReplyError): ReplyError {
  const message = reply.message.replace(IN_SCRIPT, "");
  if (message.includes(TOO_OLD)) return new ReplyError(TOO_OLD_EXPLANATION);
  if (message.includes(UNDECLARED)) return new ReplyError(UNDECLARED_EXPLANATION);
  if (UNKNOWN_COMMAND.test(message)) return new ReplyError(message + UNKNOWN_EXPLANATION);
  if (ELSEWHERE.test(message)) return new ReplyError(message + CLUSTER_EXPLANATION);
  return message === reply.message ? reply : new ReplyError(message);
}

/**
 * Whether a server refuses a command because it is a replica now, so that another one is the
 * primary.
 */
export function isDemoted(error: unknown): error is ReplyError {
  return error instanceof ReplyError && DEMOTED.test(error.message);
}

/** Whether an error says that something else stands under the queue's key, or the counter's. */
export function isWrongType({ message }: ReplyError): boolean {
  return message.includes(WRONG_TYPE);
}
