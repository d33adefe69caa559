import { assertEquals, assertInstanceOf, assertLess } from "@std/assert";
import { LockHeldError } from "../../../src/errors.ts";
import type { Lock } from "../../../src/lock/lock.ts";
import type { RedlockOptions } from "../../../src/options.ts";
import { DENIED, GRANTED } from "../../../src/quorum/outcome.ts";
import type { QuorumNode } from "../../../src/quorum/quorum_node.ts";
import { type Redlock, redlockOn } from "../../../src/redlock.ts";
import { TimerWheel } from "../../../src/time/timer_wheel.ts";
import { SeededRandom } from "../../simulation/support/seeded_random.ts";
import { Cluster, test, TTL_MS } from "../../support/cluster.ts";
import { advanceUntil, FakeClock } from "../../support/fake_clock.ts";

/** A round trip to a node that is far away, and to one that is near, in milliseconds. */
const FAR_MS = 80, NEAR_MS = 1;
/** How many servers there are. */
const SERVERS = 3;

/** What the servers hold, and how often they were asked. */
class Servers {
  readonly clock = new FakeClock();
  readonly holders: Map<string, string>[] = Array.from({ length: SERVERS }, () => new Map());
  asked = 0;

  /** A client to which each server is so far away, in milliseconds of a round trip. */
  client(random: SeededRandom, roundTripMs: (server: number) => number): Redlock {
    const nodes = this.holders.map((holders, server) => {
      const at = { ms: 0 };
      /** Runs something on the server and something here when the answer is back, both in order. */
      const send = (execute: () => boolean, answer: (done: boolean) => void) => {
        const tripMs = roundTripMs(server) / 2;
        at.ms = Math.max(at.ms, this.clock.nowMs + tripMs);
        this.clock.setTimer(() => {
          const done = execute();
          this.clock.setTimer(() => answer(done), tripMs);
        }, at.ms - this.clock.nowMs);
      };
      const node: Pick<QuorumNode, "name" | "ask"> = {
        name: `server ${server}`,
        ask: (question, request, index) => {
          const { keys: [key], value } = request;
          const releases = question === "release";
          if (!releases) this.asked++;
          const execute = () => {
            if (releases) return holders.get(key) === value && holders.delete(key);
            const free = !holders.has(key);
            if (free) holders.set(key, value);
            return free;
          };
          send(execute, (done) => request.answer(index, releases || done ? GRANTED : DENIED));
        },
      };
      return node as QuorumNode;
    });
    const wheel = new TimerWheel(this.clock, {
      value: () => random.integer(0, 2 ** 53).toString(16).padStart(40, "0"),
      fraction: () => random.fraction(),
    });
    return redlockOn(wheel, nodes, { ttlMs: 10_000, onEvent: () => {} });
  }
}

/**
 * Has as many clients try at one moment, in as many rounds; returns how many got a lock in each.
 */
async function winners(
  rounds: number,
  clients: number,
  locks: number,
  options: RedlockOptions,
  roundTripMs: (random: SeededRandom, client: number, server: number) => number,
): Promise<{ won: number[]; asked: number }> {
  const servers = new Servers();
  const random = new SeededRandom(`${clients} ${locks}`);
  const redlocks = Array.from({ length: clients }, (_, client) => {
    return servers.client(random, (server) => roundTripMs(random, client, server));
  });
  const won: number[] = [];
  const names = Array.from({ length: locks }, (_, index) => `lock ${index}`);
  for (let round = 0; round < rounds; round++) {
    const resource = options.any ? names : names[0];
    const all = redlocks.map((redlock) => redlock.tryAcquire(resource, options));
    const held = await advanceUntil(servers.clock, Promise.all(all), 10_000, 20);
    won.push(held.filter((lock) => lock?.held).length);
    const releases = held.map((lock) => lock?.release());
    await advanceUntil(servers.clock, Promise.all(releases), 10_000, 20);
    await servers.clock.advance(2 * FAR_MS);
    assertEquals(servers.holders.map(({ size }) => size), [0, 0, 0], "left behind");
  }
  return { won, asked: servers.asked / (SERVERS * rounds * clients) };
}

for (const any of [false, true]) {
  const what = any
    ? "six clients that try for any of two locks, two win"
    : "three clients, one wins";
  Deno.test(`of ${what} in 20 of 20 rounds, if they try at one moment, and each is near another node`, async () => {
    const [clients, locks] = any ? [6, 2] : [3, 1];
    const { won } = await winners(20, clients, locks, { any }, (random, client, server) => {
      return client % SERVERS === server ? NEAR_MS : random.between(FAR_MS - 2, FAR_MS + 2);
    });
    assertEquals(won, Array(20).fill(any ? 2 : 1));
  });
}

Deno.test("of 500 clients of one site that try at one moment exactly one wins, by little more than one attempt each", async () => {
  const { won, asked } = await winners(5, 500, 1, {}, (random) => random.between(0.4, 4));
  assertEquals(won, Array(5).fill(1));
  assertLess(asked, 1.2);
});

for (const how of ["tryAcquire()", "acquire() without waiting"]) {
  Deno.test(`${how} makes one attempt if a majority denies, and more if it was granted by too few nodes, five in all`, async () => {
    const ask = async (occupied: number[]) => {
      const cluster = new Cluster();
      for (const number of occupied) cluster.nodes[number].set("a", "another", 10 * TTL_MS);
      const attempt = how === "tryAcquire()" ? cluster.try() : cluster.refusal({ waitMs: 0 });
      const found: Lock | Error | undefined = await attempt;
      if (how !== "tryAcquire()") assertInstanceOf(found, LockHeldError);
      else assertEquals(found, undefined);
      return cluster.asked();
    };
    assertEquals(await ask([0, 1, 2]), [1, 1, 1]);
    assertEquals(await ask([1, 2]), [5, 5, 5]);
  });
}

test("tryAcquire() makes no third attempt if its second is denied by all", async (cluster) => {
  for (const number of [1, 2]) cluster.nodes[number].set("a", "another");
  const trying = cluster.redlock.tryAcquire("a");
  await cluster.advance(1);
  cluster.nodes[0].set("a", "another");
  assertEquals(await cluster.settle(trying), undefined);
  assertEquals(cluster.asked(), [2, 2, 2]);
});

test("tryAcquire() pauses no longer because its process stood still", async (cluster) => {
  for (const number of [1, 2]) cluster.nodes[number].set("a", "another");
  cluster.set("hang");
  const trying = cluster.redlock.tryAcquire("a");
  cluster.clock.block(60_000);
  cluster.resume();
  assertEquals(await cluster.settle(trying, 5_000), undefined);
});

test("tryAcquire() tries again if the node that granted it is the last to answer", async (cluster) => {
  for (const number of [0, 1]) cluster.nodes[number].set("a", "another", 10);
  cluster.set("hang", 2);
  const trying = cluster.redlock.tryAcquire("a");
  await cluster.advance(1);
  cluster.resume();
  assertEquals((await cluster.settle(trying))?.held, true);
});
