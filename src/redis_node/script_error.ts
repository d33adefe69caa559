/**
 * The error of a script that reads the clock, on a server that is too old for it.
 *
 * @module
 */
import { ReplyError } from "../redis/errors.ts";

/** Servers before Redis 5 refuse a script that writes after it has read the clock, by this text. */
const TOO_OLD = "Write commands not allowed after non deterministic commands";
const EXPLANATION = "ERR the server is too old: fencing tokens, the restart guard, shared mode " +
  "and waiting without polling need Redis 5 or newer";

/** The error with which a script failed; an error that explains it if the server is too old for the script. */
export function scriptError(reply: ReplyError): ReplyError {
  return reply.message.includes(TOO_OLD) ? new ReplyError(EXPLANATION) : reply;
}
