/**
 * What a server says that is too old for a script, in words that help.
 *
 * @module
 */
import { ReplyError } from "../redis/errors.ts";

/** Servers before Redis 5 refuse a script that writes after it has read the clock, by this text. */
const REFUSAL = "Write commands not allowed after non deterministic commands";
const EXPLANATION = "ERR the server is too old: fencing tokens, the restart guard and waiting " +
  "without polling need Redis 5 or newer";

/** The reply of a server that is too old for a script: it will not run it, however often it is asked. */
class OldServerError extends ReplyError {
  override get permanent(): boolean {
    return true;
  }
}

/** The error with which a script failed; if the server is too old for the script, an error that says so instead. */
export function scriptError(reply: ReplyError): ReplyError {
  return reply.message.includes(REFUSAL) ? new OldServerError(EXPLANATION) : reply;
}
