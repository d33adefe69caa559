/**
 * A Cloudflare Worker: `POST /jobs/42` does the job once, however many requests ask for it.
 *
 * @module
 */

import { createRedlock } from "@hasp/redlock";
import { connect } from "@hasp/redlock/redis";
import { once, sendInvoice } from "./once.ts";

/** The worker's variables. */
export interface Env {
  /** Addresses of the nodes, with commas in between. */
  readonly REDIS_NODES: string;
  /** Address of the Redis server that the job writes to. */
  readonly STORE_URL: string;
}

export default {
  /** Answers 201 where this request did the job, 200 where it was done already. */
  async fetch(request: Request, env: Env): Promise<Response> {
    // A worker's connections belong to one request, so each makes clients of its own and closes them.
    await using redlock = createRedlock(env.REDIS_NODES.split(","));
    await using store = await connect(env.STORE_URL);
    const id = new URL(request.url).pathname;
    const done = await once(redlock, store, id, sendInvoice);
    return Response.json({ id, done }, { status: done ? 201 : 200 });
  },
};
