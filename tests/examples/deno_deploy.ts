/**
 * A handler for Deno Deploy: `POST /jobs/42` does the job once, however many requests and regions
 * ask for it.
 *
 * @module
 */

import { createRedlock } from "@hasp/redlock";
import { RedisClient } from "@hasp/redlock/redis";
import { once, sendInvoice } from "./once.ts";

// All requests share these clients. They connect when a connection is first needed, and stay
// connected.
const redlock = createRedlock(Deno.env.get("HASP_NODES"));
const store = new RedisClient(Deno.env.get("STORE_URL")!);

// A lock of an instance that is killed stays until its TTL is over.
Deno.addSignalListener("SIGINT", () => void redlock.close().finally(() => Deno.exit()));

/** Answers 201 if this request did the job, 200 if it had been done before. */
async function fetch(request: Request): Promise<Response> {
  const id = new URL(request.url).pathname;
  const done = await once(redlock, store, id, sendInvoice);
  return Response.json({ id, done }, { status: done ? 201 : 200 });
}

export default { fetch } satisfies Deno.ServeDefaultExport;
