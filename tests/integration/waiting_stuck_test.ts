/**
 * A first in the queue that does not use its turn, on real processes: a free lock goes to the next
 * all the same.
 */
import { deadline } from "@std/async/deadline";
import { shareServers } from "../support/shared_servers.ts";
import { SLACK_MS, TTL_MS } from "../support/times.ts";
import {
  lineUp,
  openClients,
  queueOfLength,
  soon,
  startWaiter,
} from "../support/waiting_clients.ts";

const shared = shareServers(5);

const QUEUE = "hasp:queue:job";
/** Within what a free lock is taken, whatever the first in the queue does, in milliseconds. */
const TAKEN_WITHIN_MS = 1_500;

const FAULTS = ["stopped", "stopped and killed after it was notified", "killed"] as const;

for (const fault of FAULTS) {
  Deno.test(`a first in the queue that is ${fault} keeps a free lock from the next for 1.5 s at the most, whatever the TTL`, async () => {
    await using servers = shared.lend();
    await using clients = openClients(servers.urls, 2);
    const job = { urls: servers.urls, resource: "job", ttlMs: TTL_MS };
    await using first = await startWaiter(job);
    const lock = await clients[0].acquire("job");
    await first.write("ask");
    await queueOfLength(servers, QUEUE, 1);
    const { acquiring } = await lineUp(clients[1], "job", servers, 2);
    Deno.kill(first.pid, fault === "killed" ? "SIGKILL" : "SIGSTOP");
    await lock.release();
    if (fault.includes("killed after")) Deno.kill(first.pid, "SIGKILL");
    await (await soon(acquiring, TAKEN_WITHIN_MS)).release();
    await queueOfLength(servers, QUEUE, 0);
  });
}

for (const [count, fault] of [[5, "stopped"], [5, "killed"]] as const) {
  Deno.test(`${count} processes at the head of the queue that are ${fault} keep a free lock for 1.5 s at the most, beside one that subscribes to all channels`, async () => {
    await using servers = shared.lend();
    await using clients = openClients(servers.urls, 3, { ttlMs: TTL_MS, waitMs: TTL_MS });
    const job = { urls: servers.urls, resource: "job", ttlMs: TTL_MS };
    await using stack = new AsyncDisposableStack();
    for (const { hostname, port } of servers.urls.map((url) => new URL(url))) {
      const pattern = stack.use(await Deno.connect({ hostname, port: Number(port) }));
      await pattern.write(new TextEncoder().encode("PSUBSCRIBE *\r\n"));
    }
    const lock = await clients[0].acquire("job");
    const stuck = [];
    for (let place = 1; place <= count; place++) {
      const program = stack.use(await startWaiter(job));
      await program.write("ask");
      await queueOfLength(servers, QUEUE, place);
      stuck.push(program);
    }
    const { acquiring } = await lineUp(clients[1], "job", servers, count + 1);
    const next = await lineUp(clients[2], "job", servers, count + 2);
    for (const { pid } of stuck) Deno.kill(pid, fault === "stopped" ? "SIGSTOP" : "SIGKILL");
    await lock.release();
    await Promise.race([acquiring, next.acquiring].map((won) => soon(won, TAKEN_WITHIN_MS)));
    const released = [acquiring, next.acquiring].map(async (won) => (await won).release());
    await deadline(Promise.all(released), TAKEN_WITHIN_MS + SLACK_MS);
  });
}
