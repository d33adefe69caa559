/**
 * What an HTTP handler answers when there is no lock: 409 where somebody else holds it, 503 where too few nodes
 * can tell.
 *
 * @module
 */

import { LockHeldError, QuorumError, type Redlock } from "@hasp/redlock";

/** Makes a handler whose work at one path is done by one request at a time. */
export function exclusive(
  redlock: Redlock,
  work: (signal: AbortSignal) => Promise<Response>,
): (request: Request) => Promise<Response> {
  return async (request) => {
    const { pathname } = new URL(request.url);
    // The client that went away ends the wait, and so does the end of the lock end the work.
    const options = { waitMs: 500, signal: request.signal };
    try {
      return await redlock.using(pathname, options, ({ signal }) => work(signal));
    } catch (error) {
      if (error instanceof LockHeldError) {
        return Response.json({ error: "somebody else is at it" }, { status: 409 });
      }
      if (error instanceof QuorumError) {
        const headers = { "retry-after": "1" };
        return Response.json({ error: "locks cannot be had" }, { status: 503, headers });
      }
      throw error;
    }
  };
}
