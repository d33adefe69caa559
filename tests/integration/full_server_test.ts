/**
 * What a holder may still do on servers that have no memory left and evict nothing, as the manual
 * asks.
 */

import { assert, assertEquals, assertGreater, assertRejects } from "@std/assert";
import { createRedlock, QuorumError, type Redlock, type RedlockOptions } from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import { type ServerGroup, startServers } from "../support/servers.ts";
import { gone, onAll, warmUp } from "../support/shared_servers.ts";

const TTL_MS = 60_000;

/** Has servers refuse whatever could take more memory, until {@linkcode empty}. */
async function fill(servers: ServerGroup): Promise<void> {
  await onAll(servers, "CONFIG", "SET", "maxmemory", 1);
}

async function empty(servers: ServerGroup): Promise<void> {
  await onAll(servers, "CONFIG", "SET", "maxmemory", 0);
}

async function freeInMs(servers: ServerGroup, key: string): Promise<number> {
  return Math.min(...(await onAll(servers, "PTTL", key)).map(Number));
}

async function assertFull(redlock: Redlock): Promise<void> {
  await assertRejects(() => redlock.tryAcquire("other"), QuorumError, "OOM");
}

for (const mode of ["exclusive", "shared"] as const) {
  Deno.test(`the holder of a lock in ${mode} mode extends and releases it on full servers`, async () => {
    await using servers = await startServers(3);
    await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS, mode });
    await warmUp(redlock, servers);
    const [kept, lock] = [
      await redlock.acquire("kept", { atLeastMs: 30_000 }),
      await redlock.acquire("a"),
    ];
    await fill(servers);
    await assertFull(redlock);
    await lock.extend({ ttlMs: 2 * TTL_MS });
    assertGreater(lock.remainingMs(), TTL_MS);
    assertGreater(await freeInMs(servers, "a"), TTL_MS);
    assertEquals([await lock.release(), await kept.release()], [true, true]);
    await gone(servers, "a");
    const keptMs = await freeInMs(servers, "kept");
    assert(keptMs > 0 && keptMs <= 30_000, `${keptMs}`);
    await empty(servers);
    assert(await redlock.tryAcquire("other"));
  });

  Deno.test(`a call that waits for a lock in ${mode} mode gets it on full servers`, async () => {
    await using servers = await startServers(1);
    await using redlock = createRedlock(servers.urls, { ttlMs: TTL_MS });
    await using other = createRedlock(servers.urls, { ttlMs: TTL_MS, mode });
    const lock = await redlock.acquire("a");
    const waiting = other.acquire("a", { waitMs: 10_000 });
    await eventually(async () => {
      assertEquals(await servers[0].command("ZCARD", "hasp:queue:a"), 1);
    });
    await fill(servers);
    await lock.release();
    assert(await (await waiting).release());
  });
}

for (const options of [{}, { fencing: true }] satisfies RedlockOptions[]) {
  const how = "fencing" in options ? " with a fencing token" : "";
  Deno.test(`a lock is adopted${how}, and given back, on full servers`, async () => {
    await using servers = await startServers(3);
    await using giver = createRedlock(servers.urls, { ttlMs: TTL_MS, ...options });
    await using taker = createRedlock(servers.urls, { ttlMs: 2 * TTL_MS, ...options });
    for (const redlock of [giver, taker]) await warmUp(redlock, servers);
    const given = await giver.acquire(["a", "b"]);
    // The counters of no two nodes agree, so that they are raised to one token.
    for (const index of options.fencing ? servers.keys() : []) {
      await servers[index].command("SET", "hasp:fence:a", given.fencingToken! + 5 * index);
    }
    await fill(servers);
    await assertFull(taker);
    const stop = new AbortController();
    const token = given.handOver();
    await servers[2].pause();
    await servers[1].pause();
    const rejected = assertRejects(() => taker.adopt(token, { signal: stop.signal }));
    await eventually(async () => {
      assert(await servers[0].command("GET", "a") !== given.value);
    });
    stop.abort();
    await rejected;
    servers[1].resume();
    servers[2].resume();
    const lock = await taker.adopt(token, { waitMs: TTL_MS });
    assert(lock.held);
    assertGreater(await freeInMs(servers, "b"), TTL_MS);
    if (options.fencing) assertGreater(lock.fencingToken!, given.fencingToken!);
    assert(await lock.release());
    for (const key of ["a", "b"]) await gone(servers, key);
  });
}
