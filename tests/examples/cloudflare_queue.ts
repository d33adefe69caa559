/**
 * A Cloudflare Worker that takes the lock of a job in a request, and does the job when its message
 * comes out of a queue.
 *
 * @module
 */

import { createRedlock } from "@hasp/redlock";
import { connect } from "@hasp/redlock/redis";
import { sendInvoice } from "./once.ts";
import { type LockedJob, takeOver } from "./take_over.ts";

/** `JOBS` is the producer of the queue that the worker also consumes. */
type Env = Record<"HASP_NODES" | "STORE_URL", string> & { JOBS: Queue };
type Queue = { send(job: LockedJob): Promise<unknown> };
type Batch = { messages: { id: string; body: LockedJob; ack(): void; retry(): void }[] };
const open = ({ HASP_NODES }: Env) => createRedlock(HASP_NODES, { notify: false });

export default {
  /** Answers 202 if this request has begun the job, 409 if it is under way. */
  async fetch({ url }: Request, env: Env): Promise<Response> {
    await using redlock = open(env); // closing it leaves what was handed over
    const lock = await redlock.tryAcquire(new URL(url).pathname, { ttlMs: 300_000 });
    if (!lock) return new Response("under way", { status: 409 });
    const [resource, token] = [lock.resources[0], lock.handOver()];
    await env.JOBS.send({ resource, token }).catch(async (error) => {
      await (await redlock.adopt(token)).release(); // the queue does not have the job
      throw error;
    });
    return new Response("begun", { status: 202 });
  },
  async queue({ messages }: Batch, env: Env): Promise<void> {
    await using redlock = open(env);
    await using store = await connect(env.STORE_URL);
    for (const message of messages) {
      try {
        await using lock = await takeOver(redlock, message.body);
        const done = `done:${message.body.resource}:${message.id}`;
        if (await store.send(["EXISTS", done]) === 0) await sendInvoice(lock.signal);
        await store.send(["SET", done, "1", "EX", 86_400]);
        message.ack();
      } catch {
        message.retry();
      }
    }
  },
};
