/**
 * What a Lua script is to the client, how its source is put together, and how a server says that it is too old for one.
 *
 * @module
 */
import { ReplyError } from "../../redis/errors.ts";

/** Servers before Redis 5 refuse a script that writes after it has read the clock, by this text. */
const TOO_OLD = "Write commands not allowed after non deterministic commands";
const EXPLANATION = "ERR the server is too old: fencing tokens, the restart guard, shared mode " +
  "and waiting without polling need Redis 5 or newer";

/** A script, and the digest that `EVALSHA` calls it by. */
export interface Script {
  /**
   * The Lua source. Servers have Lua 5.1 or newer. From 5.3 on, `2 ^ n` is a fraction, which not every server replies as an
   * integer, and `math.max` compares no text with a number.
   */
  readonly source: string;
  /** The SHA-1 of the source, in lower-case hexadecimal digits. */
  readonly sha1: string;
}

/** Joins the parts of a script. The numbers in them are repeated from constants; a test compares the two. */
export function lua(...parts: readonly string[]): string {
  return parts.join("");
}

/** The error with which a script failed; an error that explains it if the server is too old for the script. */
export function scriptError(reply: ReplyError): ReplyError {
  return reply.message.includes(TOO_OLD) ? new ReplyError(EXPLANATION) : reply;
}
