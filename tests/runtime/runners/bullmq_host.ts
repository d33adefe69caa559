/**
 * Runs the processor of the example in two workers of BullMQ, in Node.
 *
 * Arguments: where BullMQ's module is, and the address of its server; the addresses of the nodes
 * come from the environment. When all jobs are done, one line is written: how many there were, and
 * how many of one account ran at once at most.
 */

import { createRedlock } from "@hasp/redlock";
import process from "node:process";
import { setTimeout } from "node:timers/promises";
import { oneJobPerAccount } from "../../examples/bullmq_processor.ts";

interface Job {
  readonly data: { readonly account: string };
}

/** The part of BullMQ that is used. */
interface BullMq {
  readonly Queue: new (name: string, options: object) => {
    add(name: string, data: Job["data"]): Promise<unknown>;
    close(): Promise<void>;
  };
  readonly Worker: new (
    name: string,
    processor: (job: Job) => Promise<void>,
    options: object,
  ) => { on(event: string, listener: () => void): void; close(): Promise<void> };
}

const QUEUES = ["invoices", "refunds"];
const ACCOUNTS = ["alice", "bob"];

const [module, storeUrl] = process.argv.slice(2) as [string, string];
const { Queue, Worker } = await import(module) as BullMq;
const { hostname: host, port } = new URL(storeUrl);
const options = { connection: { host, port: Number(port) }, prefix: crypto.randomUUID() };
const redlock = createRedlock(process.env.HASP_NODES!.split(","));

const running = new Map<string, number>();
let atOnce = 0;
const allDone = Promise.withResolvers<void>();
let done = 0;

async function work({ data: { account } }: Job): Promise<void> {
  running.set(account, (running.get(account) ?? 0) + 1);
  atOnce = Math.max(atOnce, running.get(account)!);
  await setTimeout(20);
  running.set(account, running.get(account)! - 1);
}

const processor = oneJobPerAccount<Job>(redlock, work);
const queues = QUEUES.map((name) => new Queue(name, options));
const workers = QUEUES.map((name) => new Worker(name, processor, { ...options, concurrency: 4 }));
for (const worker of workers) {
  worker.on("completed", () => {
    if (++done === 2 * QUEUES.length * ACCOUNTS.length) allDone.resolve();
  });
}
for (const queue of [...queues, ...queues]) {
  for (const account of ACCOUNTS) await queue.add("job", { account });
}
await allDone.promise;
console.log(`${done} jobs, ${atOnce} at once`);
await Promise.all([...workers, ...queues].map((it) => it.close()));
await redlock.close();
