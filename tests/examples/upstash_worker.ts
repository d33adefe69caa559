/**
 * A Cloudflare Worker that locks over HTTP: `POST /jobs/42` does the job once, however many
 * requests ask for it.
 *
 * @module
 */

import { Redlock } from "@hasp/redlock";
import { upstashNode } from "@hasp/redlock/upstash";

/** The worker's variables. */
export interface Env {
  /** The REST URL and the token of each database, as a JSON array. */
  readonly DATABASES: string;
  /** Where the job leaves its result. */
  readonly STORE_URL: string;
}

export default {
  /** Answers 201 if this request did the job, 200 if it had been done before. */
  async fetch(request: Request, { DATABASES, STORE_URL }: Env): Promise<Response> {
    const databases: { url: string; token: string }[] = JSON.parse(DATABASES);
    await using redlock = new Redlock(databases.map(upstashNode));
    const id = new URL(request.url).pathname;
    const result = new URL(id, STORE_URL);
    const done = await redlock.using(`job:${id}`, { ttlMs: 10_000 }, async ({ signal }) => {
      const found = await fetch(result, { signal });
      await found.body?.cancel();
      if (found.ok) return false;
      const stored = await fetch(result, { method: "PUT", body: "done", signal });
      await stored.body?.cancel();
      if (!stored.ok) throw new Error(`The store answered ${stored.status}`);
      return true;
    });
    return Response.json({ id, done }, { status: done ? 201 : 200 });
  },
};
