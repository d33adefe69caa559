/**
 * The answers of an HTTP handler without the lock: 409 if another request holds it, 503 if too few
 * nodes answer.
 *
 * @module
 */

import { LockHeldError, QuorumError, type Redlock } from "@hasp/redlock";

/** Creates a handler that does its work for one request per path at a time. */
export function exclusive(
  redlock: Redlock,
  work: (signal: AbortSignal) => Promise<Response>,
): (request: Request) => Promise<Response> {
  return async (request) => {
    const { pathname } = new URL(request.url);
    try {
      // If the lock is lost, `signal` stops the work. A client that disconnects does not.
      return await redlock.using(pathname, { waitMs: 0 }, ({ signal }) => work(signal));
    } catch (error) {
      if (error instanceof LockHeldError) {
        return Response.json({ error: "already being processed" }, { status: 409 });
      }
      if (error instanceof QuorumError) {
        const headers = { "retry-after": "1" };
        return Response.json({ error: "lock service unavailable" }, { status: 503, headers });
      }
      throw error;
    }
  };
}
