/**
 * Has requests add jobs with their locks, as in the example, and two workers of BullMQ do them, in
 * Node. Each job fails the first time, so that its second try finds the lock gone.
 *
 * Arguments: where BullMQ's module is, and the address of its server; the addresses of the nodes
 * come from the environment. When all jobs are done, one line is written: how many requests added a
 * job, were refused, or took the lock back because the queue had failed; how many tries the jobs
 * took; and how many of one account ran at once at most.
 */

import { createRedlock } from "@hasp/redlock";
import process from "node:process";
import { setTimeout } from "node:timers/promises";
import { addJob, jobProcessor } from "../../examples/bullmq_hand_over.ts";
import type { LockedJob } from "../../examples/take_over.ts";

/** The part of BullMQ that is used. */
interface BullMq {
  readonly Queue: new (name: string, options: object) => {
    add(name: string, data: LockedJob, options: object): Promise<unknown>;
    close(): Promise<void>;
  };
  readonly Worker: new (
    name: string,
    processor: (job: { data: LockedJob }) => Promise<void>,
    options: object,
  ) => { on(event: string, listener: () => void): void; close(): Promise<void> };
}

const ACCOUNTS = ["alice", "bob"];
const REQUESTS = 3;

const [module, storeUrl] = process.argv.slice(2) as [string, string];
const { Queue, Worker } = await import(module) as BullMq;
const { hostname: host, port } = new URL(storeUrl);
const options = { connection: { host, port: Number(port) }, prefix: crypto.randomUUID() };
const addresses = process.env.HASP_NODES!.split(",");
const [web, finisher] = [createRedlock(addresses), createRedlock(addresses)];

const tried = new Map<string, number>();
const running = new Map<string, number>();
let atOnce = 0;
let done = 0;
const allDone = Promise.withResolvers<void>();

async function work(account: string): Promise<void> {
  const before = tried.get(account) ?? 0;
  tried.set(account, before + 1);
  running.set(account, (running.get(account) ?? 0) + 1);
  atOnce = Math.max(atOnce, running.get(account)!);
  await setTimeout(20);
  running.set(account, running.get(account)! - 1);
  if (before === 0) throw new Error("the first try fails");
}

const queue = new Queue("invoices", options);
const broken = { add: () => Promise.reject(new Error("the queue is down")) };
const takenBack = await addJob(web, broken, "alice").catch(() => 1);
const requests = ACCOUNTS.flatMap((account) =>
  Array.from({ length: REQUESTS }, () => addJob(web, queue, account))
);
const added = (await Promise.all(requests)).filter(Boolean).length;
await web.close(); // what was handed over stays
const processor = jobProcessor(finisher, work);
const workers = [1, 2].map(() => new Worker("invoices", processor, options));
for (const worker of workers) {
  worker.on("completed", () => {
    if (++done === ACCOUNTS.length) allDone.resolve();
  });
}
await allDone.promise;
const tries = [...tried.values()].reduce((sum, count) => sum + count);
const refused = requests.length - added;
console.log(
  `${added} added, ${refused} refused, ${takenBack} taken back, ${tries} tries, ${atOnce} at once`,
);
await Promise.all([...workers, queue].map((it) => it.close()));
await finisher.close();
