/**
 * A middleware for Hono: one request per path at a time, 409 for the others.
 *
 * @module
 */

import { LockHeldError, QuorumError, type Redlock } from "@hasp/redlock";
import type { MiddlewareHandler } from "hono";

/** What the handlers behind it find in their context. */
export interface Guarded {
  /** `lock.signal`: aborts if the lock is lost. */
  Variables: { signal: AbortSignal };
}

/** `app.post("/pay/:id", exclusive(redlock), (c) => pay(c.get("signal")))` */
export function exclusive(redlock: Redlock): MiddlewareHandler<Guarded> {
  return async (c, next): Promise<Response | void> => {
    try {
      await redlock.using(c.req.path, { waitMs: 0 }, async ({ signal }) => {
        c.set("signal", signal);
        await next(); // Hono turns an error of the handler into a response
      });
    } catch (error) {
      if (error instanceof LockHeldError) return c.json({ error: "already being processed" }, 409);
      if (error instanceof QuorumError) return c.json({ error: "lock service unavailable" }, 503);
      throw error;
    }
  };
}
