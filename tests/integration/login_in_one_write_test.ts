/**
 * The first commands go out with the login: what that saves, and what a login that is refused
 * leaves behind.
 */

import { assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import { createRedlock, QuorumError } from "../../mod.ts";
import { ConnectionError } from "../../src/redis/mod.ts";
import { startProxy } from "../../src/testing/mod.ts";
import { connect } from "../../src/transport/default.ts";
import type { Connect } from "../../src/transport/transport.ts";
import { eventually } from "../support/eventually.ts";
import { type ServerGroup, startServers } from "../support/servers.ts";
import { onAll } from "../support/shared_servers.ts";

/**
 * Of one way through the proxy: long enough for all that is written at one time to arrive at one
 * time.
 */
const DELAY_MS = 20;

/**
 * A `connect` that counts the round trips of each connection: the writes of which the first follows
 * a read.
 */
function countingConnect(): { connect: Connect; roundTrips: number[] } {
  const roundTrips: number[] = [];
  return {
    roundTrips,
    connect: async (target, options) => {
      const transport = await connect(target, options);
      const index = roundTrips.push(0) - 1;
      let waits = false;
      return Object.assign(Object.create(transport), {
        async read(buffer: Uint8Array) {
          const count = await transport.read(buffer);
          waits = false;
          return count;
        },
        write(bytes: Uint8Array) {
          if (!waits) roundTrips[index]++;
          waits = true;
          return transport.write(bytes);
        },
        close: () => transport.close(),
        unref: () => transport.unref?.(),
      });
    },
  };
}

/** The round trips of the connections of a fresh client until it has its first lock. */
async function roundTripsOfFirstLock(servers: ServerGroup, suffix = ""): Promise<number[]> {
  await using stack = new AsyncDisposableStack();
  const addresses: string[] = [];
  for (const { url } of servers) {
    const proxy = stack.use(await startProxy(url));
    proxy.delay(DELAY_MS);
    addresses.push(url.replace(/:\d+$/u, `:${proxy.port}${suffix}`));
  }
  const { connect, roundTrips } = countingConnect();
  const redlock = stack.use(createRedlock(addresses, { connect, nodeTimeoutMs: 5_000 }));
  const lock = await redlock.acquire("invoice:42");
  const counted = [...roundTrips];
  await lock.release();
  return counted;
}

Deno.test("the first lock of a client takes as many round trips with a password as without one", async () => {
  await using open = await startServers(3);
  await using closed = await startServers(3, { password: "s3cret" });
  assertEquals(await roundTripsOfFirstLock(open), [1, 1, 1]);
  assertEquals(await roundTripsOfFirstLock(closed), [1, 1, 1]);
});

Deno.test("the first lock of a client in another database takes one round trip more, for the login", async () => {
  await using servers = await startServers(3, { password: "s3cret", rights: ["+select"] });
  const roundTrips = await roundTripsOfFirstLock(servers, "/3");
  assertEquals(roundTrips.toSorted().slice(1), [2, 2]); // the third node may be later than the lock
});

Deno.test("a refused login of a user who needs none gives no lock, and the keys behind it are deleted", async () => {
  await using servers = await startServers(3);
  const addresses = servers.map(({ port }) => `redis://:surplus@127.0.0.1:${port}`);
  await using redlock = createRedlock(addresses, { ttlMs: 600_000 });
  const error = await assertRejects(() => redlock.acquire("invoice:42"), QuorumError);
  const failure = error.votes.find((vote) => vote.error)!.error;
  assertInstanceOf(failure, ConnectionError);
  assertEquals(failure.outcome, "unknown");
  for (const server of servers) {
    await eventually(async () => assertEquals((await server.commandCounts()).set, 1));
  }
  await eventually(async () => {
    assertEquals(await onAll(servers, "EXISTS", "invoice:42"), [0, 0, 0]);
  });
});
