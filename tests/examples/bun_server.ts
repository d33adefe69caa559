/**
 * A server in Bun: `POST /jobs/42` does the job once, however many requests and servers ask for it.
 *
 * @module
 */

import { createRedlock } from "@hasp/redlock";
import { RedisClient } from "@hasp/redlock/redis";
import process from "node:process";
import { once, sendInvoice } from "./once.ts";

/** The part of Bun's API that is used here. */
declare const Bun: {
  serve(options: {
    hostname: string;
    port: number;
    fetch(request: Request): Promise<Response>;
  }): { readonly url: URL };
};

const redlock = createRedlock(process.env.HASP_NODES);
const store = new RedisClient(process.env.STORE_URL!);

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: Number(process.env.PORT ?? 3000),
  /** Answers 201 if this request did the job, 200 if it had been done before. */
  async fetch(request) {
    const id = new URL(request.url).pathname;
    const done = await once(redlock, store, id, sendInvoice);
    return Response.json({ id, done }, { status: done ? 201 : 200 });
  },
});
console.log(`Listening on ${server.url}`);
