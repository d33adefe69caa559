/**
 * A route of Next's edge runtime that does a job for one request at a time: `app/jobs/route.js`.
 *
 * @module
 */

import { LockHeldError, Redlock } from "@hasp/redlock";
import { upstashNode } from "@hasp/redlock/upstash";

export const runtime = "edge";

/** Answers 200 if this request did the job, 409 if another one is doing it. */
export async function POST() {
  const { UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token } = process.env;
  const redlock = new Redlock([upstashNode({ url, token })]);
  try {
    const done = await redlock.using("job", { waitMs: 0 }, (lock) => lock.held);
    return Response.json({ done });
  } catch (error) {
    if (!(error instanceof LockHeldError)) throw error;
    return Response.json({ done: false }, { status: 409 });
  } finally {
    await redlock.close();
  }
}
