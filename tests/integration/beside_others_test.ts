/** Pools, readers and writers beside a client without a library, on real servers that fail. */
import { setTimeout as delay } from "node:timers/promises";
import { assert, assertEquals, assertGreater } from "@std/assert";
import { type Redlock, slots } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import { type RedisServer, startServers } from "../support/servers.ts";
import { onAll } from "../support/shared_servers.ts";
import { TTL_MS } from "../support/times.ts";
import { openClients } from "../support/waiting_clients.ts";

const NAMES = slots("gpu", 3);
const CALLS = 30;

/** Who is at work on which resource: readers together, or one writer alone. */
class Work {
  readonly #inside = new Set<{ name: string; reads: boolean }>();
  /** How many were at work: writers in all, and readers at the same time. */
  writes = 0;
  mostReaders = 0;

  async do(name: string, reads: boolean): Promise<void> {
    const others = [...this.#inside].filter((other) => other.name === name);
    if (others.some((other) => !reads || !other.reads)) throw new Error(`${name} has two holders`);
    if (reads) this.mostReaders = Math.max(this.mostReaders, others.length + 1);
    else this.writes++;
    const own = { name, reads };
    this.#inside.add(own);
    await delay(5);
    this.#inside.delete(own);
  }
}

/** Locks `name` by a plain SET on all of `servers`, and releases it by the well-known script. */
async function lockPlainly(servers: readonly RedisServer[], name: string, work: Work) {
  const value = crypto.randomUUID();
  const replies = await onAll(servers, "SET", name, value, "NX", "PX", TTL_MS);
  const granted = replies.every((reply) => reply === "OK");
  if (granted) await work.do(name, false);
  const script = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1])";
  await onAll(servers, "EVAL", script, 1, name, value);
  return granted;
}

/** Has two servers hang in turn until `isOver`; the second is killed in one of the turns. */
async function hangInTurn([first, second]: readonly RedisServer[], isOver: () => boolean) {
  for (let turn = 0; !isOver(); turn++) {
    if (turn === 3) await second.kill();
    const server = turn < 3 && turn % 2 > 0 ? second : first;
    await server.pause();
    await delay(150);
    server.resume();
    await delay(100);
  }
}

Deno.test("callers of one, of any, readers and a plain client exclude each other while servers hang and one is killed", async () => {
  await using servers = await startServers(5);
  const options = { ttlMs: TTL_MS, waitMs: TTL_MS, nodeTimeoutMs: 300 };
  await using clients = openClients(servers.urls, 9, options);
  const work = new Work();
  let over = false;
  const callOften = async (client: Redlock, index: number) => {
    for (let count = 0; count < CALLS; count++) {
      const name = NAMES[(index + count) % 3];
      const write = ({ resources }: { resources: readonly string[] }) =>
        work.do(resources[0], false);
      if (index < 3) await client.using(name, write);
      else if (index < 6) await client.using(NAMES, { any: true }, write);
      else await client.using(NAMES[0], { mode: "shared" }, () => work.do(NAMES[0], true));
    }
  };
  let granted = 0;
  const lockOften = async () => {
    for (let count = 0; !over; count++) {
      if (await lockPlainly(servers.slice(2), NAMES[count % 3], work)) granted++;
      await delay(20);
    }
  };
  const calling = Promise.all(clients.map(callOften)).finally(() => over = true);
  // all of them, because the servers must not be stopped before
  const outcomes = [calling, hangInTurn(servers, () => over), lockOften()];
  for (const outcome of await Promise.allSettled(outcomes)) {
    if (outcome.status === "rejected") throw outcome.reason;
  }
  assertEquals(work.writes, 6 * CALLS + granted);
  assertGreater(work.mostReaders, 1);
  assert(granted > 0);
  const living = servers.filter((_, index) => index !== 1);
  const left = NAMES.flatMap((name) => [name, `hasp:queue:${name}`, `hasp:readers:${name}`]);
  await eventually(async () => assertEquals(await onAll(living, "EXISTS", ...left), [0, 0, 0, 0]));
});
