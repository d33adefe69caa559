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
  /** The addresses of the nodes, separated by commas. */
  readonly HASP_NODES: string;
  /** The address of the Redis server that the job writes to. */
  readonly STORE_URL: string;
}

export default {
  /** Answers 201 if this request did the job, 200 if it had been done before. */
  async fetch(request: Request, env: Env): Promise<Response> {
    await using redlock = createRedlock(env.HASP_NODES, { notify: false });
    await using store = await connect(env.STORE_URL);
    const id = new URL(request.url).pathname;
    const done = await once(redlock, store, id, sendInvoice);
    return Response.json({ id, done }, { status: done ? 201 : 200 });
  },
};
