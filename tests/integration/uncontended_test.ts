import { assertEquals, assertGreater, assertLessOrEqual } from "@std/assert";
import { createRedlock } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import { gone, onAll, shareServers } from "../support/shared_servers.ts";

const shared = shareServers(5, { rights: ["+select"] });

for (const count of [1, 2, 3, 4, 5]) {
  Deno.test(`acquire() sets the value on all of ${count} nodes, and release() deletes it`, async () => {
    await using servers = shared.lend(count);
    await using redlock = createRedlock(servers.urls);
    const lock = await redlock.acquire("free");
    await eventually(async () =>
      assertEquals(await onAll(servers, "GET", "free"), Array(count).fill(lock.value))
    );
    assertEquals(await lock.release(), true);
    await eventually(async () =>
      assertEquals(await onAll(servers, "EXISTS", "free"), Array(count).fill(0))
    );
  });
}

Deno.test("acquire() sets keys that expire at the TTL", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: 20_000 });
  await using _lock = await redlock.acquire("expiring");
  await eventually(async () => {
    for (const pttl of await onAll(servers, "PTTL", "expiring")) {
      assertGreater(Number(pttl), 10_000);
      assertLessOrEqual(Number(pttl), 20_000);
    }
  });
});

Deno.test("acquire() gives a lock that is held, with the votes that won it", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: 10_000 });
  await using lock = await redlock.acquire("described");
  assertEquals(lock.resources, ["described"]);
  assertEquals(lock.held, true);
  assertGreater(lock.remainingMs(), 5_000);
  assertLessOrEqual(lock.remainingMs(), 10_000 - 100 - 2);
  assertEquals(lock.extensions, 0);
  assertEquals(lock.signal.aborted, false);
  await eventually(() =>
    assertEquals(
      lock.votes.map(({ node, outcome }) => `${node} ${outcome}`),
      servers.urls.map((url) => `${url} granted`),
    )
  );
});

Deno.test("acquire() locks several resources with one value on every node", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  const lock = await redlock.acquire(["from", "to"]);
  for (const key of ["from", "to"]) {
    await eventually(async () =>
      assertEquals(await onAll(servers, "GET", key), Array(5).fill(lock.value))
    );
  }
  assertEquals(lock.resources, ["from", "to"]);
  assertEquals(await lock.release(), true);
  await eventually(async () =>
    assertEquals(await onAll(servers, "EXISTS", "from", "to"), [0, 0, 0, 0, 0])
  );
});

Deno.test("inspect() distinguishes a held resource, and for how long, from a free one", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ttlMs: 20_000 });
  const lock = await redlock.acquire("inspected");
  const held = await redlock.inspect("inspected");
  assertEquals(held.held, true);
  assertGreater(held.remainingMs, 10_000);
  assertLessOrEqual(held.remainingMs, 20_000);
  await lock.release();
  await gone(servers, "inspected");
  const { held: stillHeld, remainingMs, votes } = await redlock.inspect("inspected");
  assertEquals([stillHeld, remainingMs], [false, 0]);
  assertEquals(votes.map(({ outcome }) => outcome), Array(5).fill("free"));
});

Deno.test("inspect() does not count keys of different values as one lock", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls);
  for (const [index, server] of servers.entries()) {
    await server.command("SET", "split", `contender ${index}`, "PX", 60_000);
  }
  const { held, votes } = await redlock.inspect("split");
  assertEquals(held, false);
  assertEquals(votes.map(({ outcome }) => outcome), ["held", "held", "held"]);
});
