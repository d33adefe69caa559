import { assert, assertEquals, assertGreater } from "@std/assert";
import { createRedlock, LockLostError, type Redlock, type RedlockOptions } from "../../mod.ts";
import { startServers } from "../support/servers.ts";
import { warmUp } from "../support/shared_servers.ts";

/**
 * How many locks are handed over to three clients each while servers are killed; 1 000 to be sure.
 */
const LOCKS = Number(Deno.env.get("HASP_LOCKS") ?? 60);
/** How many of them are on their way at a time. */
const AT_ONCE = 10;
const TAKERS = 3;
/** A TTL that no test outlives. */
const LONG_MS = 120_000;

/** Hands one lock over to all takers at once; returns who got it, and the other outcomes. */
async function handToAll(giver: Redlock, takers: readonly Redlock[], resource: string) {
  const given = await giver.acquire(resource);
  const token = given.handOver();
  const outcomes = await Promise.allSettled(takers.map((taker) => taker.adopt(token)));
  const adopted = outcomes.flatMap((it) => it.status === "fulfilled" ? [it.value] : []);
  const errors = outcomes.flatMap((it) => it.status === "rejected" ? [it.reason as Error] : []);
  return { given, adopted, errors };
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
