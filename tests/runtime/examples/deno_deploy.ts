/**
 * A handler for Deno Deploy: `POST /jobs/42` does the job once, however many requests and regions ask for it.
 *
 * @module
 */

import { createRedlock } from "@hasp/redlock";
import { connect } from "@hasp/redlock/redis";
import { once, sendInvoice } from "./once.ts";

const nodes = Deno.env.get("REDIS_NODES")!.split(",");
// One client for all requests: its connections are made when they are first needed, and kept.
const redlock = createRedlock(nodes);

/** Answers 201 where this request did the job, 200 where it was done already. */
async function fetch(request: Request): Promise<Response> {
  await using store = await connect(nodes[0]!);
  const id = new URL(request.url).pathname;
  const done = await once(redlock, store, id, sendInvoice);
  return Response.json({ id, done }, { status: done ? 201 : 200 });
}

export default { fetch } satisfies Deno.ServeDefaultExport;
