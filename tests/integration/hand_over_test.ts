import { assert, assertEquals, assertGreater } from "@std/assert";
import { createRedlock, LockLostError, type Redlock, type RedlockOptions } from "../../mod.ts";
import { handOverToken } from "../../src/lock/hand_over_token.ts";
import { startNodes } from "../../src/testing/mod.ts";
import { eventually } from "../support/eventually.ts";
import { startServers } from "../support/servers.ts";
import { gone, onAll, shareServers, warmUp } from "../support/shared_servers.ts";

const shared = shareServers(3);

/**
 * How many locks are handed over to three clients each while servers are killed; 1 000 to be sure.
 */
const LOCKS = Number(Deno.env.get("HASP_LOCKS") ?? 60);
/** How many of them are on their way at a time. */
const AT_ONCE = 10;
const TAKERS = 3;
/** A TTL that no test outlives. */
const LONG_MS = 120_000;

/**
 * Hands one lock over to all takers at once; returns the values with which they got it, and the
 * other outcomes.
 */
async function handToAll(giver: Redlock, takers: readonly Redlock[], resource: string) {
  const given = await giver.acquire(resource);
  const token = given.handOver();
  const outcomes = await Promise.allSettled(takers.map((taker) => taker.adopt(token)));
  const adopted = outcomes.flatMap((it) => it.status === "fulfilled" ? [it.value] : []);
  const errors = outcomes.flatMap((it) => it.status === "rejected" ? [it.reason as Error] : []);
  return { given, token, adopted, errors };
}

for (const options of [{}, { fencing: true }] satisfies RedlockOptions[]) {
  const what = "fencing" in options ? "with fencing tokens" : "without fencing tokens";
  Deno.test(`each of ${LOCKS} locks ${what} that three clients adopt at once gets exactly one holder, with two of five servers killed half-way`, async () => {
    await using servers = await startServers(5);
    const open = () => createRedlock(servers.urls, { ttlMs: LONG_MS, onEvent() {}, ...options });
    await using giver = open();
    const takers = Array.from({ length: TAKERS }, open);
    await using stack = new AsyncDisposableStack();
    for (const taker of takers) stack.use(taker);
    for (const redlock of [giver, ...takers]) await warmUp(redlock, servers);
    const adopters: number[] = [];
    let next = 0;
    const handAll = async () => {
      while (next < LOCKS) {
        const number = next++;
        if (number === LOCKS / 2) await Promise.all(servers.slice(0, 2).map((it) => it.kill()));
        const { given, adopted, errors } = await handToAll(giver, takers, `job:${number}`);
        adopters.push(adopted.length);
        for (const error of errors) assert(error instanceof LockLostError, String(error));
        for (const lock of adopted) {
          assert(lock.held && lock.value !== given.value);
          if (options.fencing) assertGreater(lock.fencingToken!, given.fencingToken!);
          assert(await lock.release());
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, handAll));
    assertEquals(adopters, new Array(LOCKS).fill(1));
  });
}

Deno.test("a lock that is handed over keeps its keys, and is adopted with other ones by one client once", async () => {
  await using servers = shared.lend();
  await using giver = createRedlock(servers.urls, { ttlMs: LONG_MS });
  await using taker = createRedlock(servers.urls, { ttlMs: 2 * LONG_MS });
  await using lock = await giver.acquire(["invoice:42", "invoice:43"]);
  const token = lock.handOver();
  assertEquals([lock.held, await lock.release()], [false, false]);
  for (const key of lock.resources) {
    assertEquals(new Set(await onAll(servers, "GET", key)), new Set([lock.value]));
  }
  const adopted = await taker.adopt(token);
  await eventually(async () => {
    for (const key of lock.resources) {
      assertEquals(new Set(await onAll(servers, "GET", key)), new Set([adopted.value]));
      for (const pttl of await onAll(servers, "PTTL", key)) assertGreater(Number(pttl), LONG_MS);
    }
  });
  assertEquals(await taker.tryAcquire("invoice:42"), undefined);
  assert(await adopted.release());
  await gone(servers, "invoice:42");
  await gone(servers, "invoice:43");
});

Deno.test("a lock can be adopted by a process that the former holder's end does not reach", async () => {
  await using servers = shared.lend();
  const giver = createRedlock(servers.urls, { ttlMs: LONG_MS });
  const token = (await giver.acquire("job")).handOver();
  await giver.close();
  await using taker = createRedlock(servers.urls);
  assert((await taker.adopt(token)).held);
});

Deno.test("the token, and nothing of what the former holder sends late, reaches the adopted lock", async () => {
  await using nodes = await startNodes(3);
  await using giver = createRedlock(nodes.addresses, { ttlMs: LONG_MS, nodeTimeoutMs: 5_000 });
  await using taker = createRedlock(nodes.addresses, { ttlMs: LONG_MS });
  const lock = await giver.acquire("job");
  const extending = lock.extend().catch(() => {});
  const token = lock.handOver();
  const { value, resources } = lock;
  assertEquals(token, handOverToken({ value, ttlMs: LONG_MS, keptMs: 0, resources }));
  const adopted = await taker.adopt(token);
  await extending;
  await adopted.extend();
  assert(await adopted.release());
});
