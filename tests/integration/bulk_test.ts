/**
 * Many locks of one client at once, on real servers: nothing is refused for crowding, and nothing
 * stays.
 */
import { assertEquals, assertGreater, assertLess } from "@std/assert";
import { createRedlock, type Lock, type Redlock, type RedlockOptions } from "../../mod.ts";
import { connect, type RedisClient, type Reply } from "../../src/redis/mod.ts";
import { ROUNDS_MAX } from "../../src/quorum/round.ts";
import { EXTEND } from "../../src/redis_node/scripts/extend.ts";
import { EXTEND_MANY, RELEASE_MANY } from "../../src/redis_node/scripts/group.ts";
import { RELEASE } from "../../src/redis_node/scripts/release.ts";
import type { Script } from "../../src/redis_node/scripts/script.ts";
import { eventually } from "../support/eventually.ts";
import { onAll, shareServers } from "../support/shared_servers.ts";
import { startServers } from "../support/servers.ts";

const shared = shareServers(3);

/** More than a client has under way. */
const MANY = 3 * ROUNDS_MAX;
/** A TTL that no busy machine outlasts, so that no key is gone because of it. */
const LONG: RedlockOptions = { ttlMs: 600_000, nodeTimeoutMs: 20_000, notify: false };

/** Takes many locks, all in one tick. */
function acquireMany(redlock: Redlock, options: RedlockOptions = {}): Promise<Lock[]> {
  const resources = Array.from({ length: MANY }, (_, index) => `many:${index}`);
  return Promise.all(resources.map((resource) => redlock.acquire(resource, options)));
}

Deno.test("a crowd of locks is taken in one tick, though no call may wait, and released in another", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ...LONG, waitMs: 0 });
  const locks = await acquireMany(redlock);
  const released = await Promise.all(locks.map((lock) => lock.release()));
  assertEquals(released.filter((confirmed) => !confirmed).length, 0);
  await eventually(async () => assertEquals(await onAll(servers, "DBSIZE"), [0, 0, 0]));
});

Deno.test("close() deletes the keys of a crowd of locks", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, LONG);
  const locks = await acquireMany(redlock);
  await eventually(async () => { // a quorum decides, and one node may be behind
    assertEquals(await onAll(servers, "DBSIZE"), [MANY, MANY, MANY]);
  });
  await redlock.close();
  assertEquals(locks.filter(({ held }) => held).length, 0);
  assertEquals(await onAll(servers, "DBSIZE"), [0, 0, 0]);
});

Deno.test("close() deletes the keys of a crowd whose releases wait for others", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, LONG);
  const locks = await acquireMany(redlock);
  const released = Promise.allSettled(locks.map((lock) => lock.release()));
  await redlock.close();
  assertEquals((await released).length, MANY);
  assertEquals(await onAll(servers, "DBSIZE"), [0, 0, 0]);
});

Deno.test("a node that was away gets all releases of a crowd when it is back", async () => {
  await using servers = await startServers(3);
  await using redlock = createRedlock(servers.urls, LONG);
  const locks = await acquireMany(redlock);
  await servers[2].pause();
  await Promise.all(locks.map((lock) => lock.release()));
  await servers[2].resume();
  await eventually(async () => assertEquals(await onAll(servers, "DBSIZE"), [0, 0, 0]));
});

/** What happens to every server while a crowd is held, and whether each release is confirmed. */
const FAULTS: readonly [what: string, confirmed: boolean, ...commands: readonly string[][]][] = [
  ["after the servers forgot the scripts", true, ["SCRIPT", "FLUSH"]],
  ["while the servers have no memory left", true, ["CONFIG", "SET", "maxmemory", "1"]],
  ["though the user may not MGET", true, ["ACL", "SETUSER", "default", "-mget"]],
  ["though the connections are cut", false, ["CLIENT", "KILL", "TYPE", "normal"]],
  [
    "beside waiters, and what is no queue",
    true,
    ["ZADD", "hasp:queue:many:1", "1", "gone:1:50"],
    ["SET", "hasp:queue:many:2", "no queue"],
  ],
];

for (const [what, confirmed, ...commands] of FAULTS) {
  Deno.test(`a crowd, with readers and pools among it, is released ${what}`, async () => {
    await using servers = await startServers(3);
    await using redlock = createRedlock(servers.urls, LONG);
    const names = Array.from({ length: 600 }, (_, index) => `many:${index}`);
    const acquire = () =>
      Promise.all(names.flatMap((name) => [
        redlock.acquire(name),
        redlock.acquire(`read:${name}`, { mode: "shared" }),
        redlock.acquire([`one:${name}`, `other:${name}`], { any: true }),
      ]));
    const first = await acquire();
    await Promise.all(first.map((lock) => lock.release())); // the servers know the scripts from now
    const locks = await acquire();
    const struck = commands.map((command) => onAll(servers, ...command));
    if (confirmed) await Promise.all(struck);
    const released = await Promise.allSettled(locks.map((lock) => lock.release()));
    if (confirmed) {
      const others = released.filter((result) => result.status !== "fulfilled" || !result.value);
      assertEquals(others, []);
    }
    await Promise.all(struck);
    await eventually(async () => {
      const keys = (await onAll(servers, "KEYS", "*")) as string[][];
      assertEquals(keys.map((of) => of.filter((key) => !key.startsWith("hasp:queue:"))), [
        [],
        [],
        [],
      ]);
    });
  });
}

Deno.test("a crowd that extends itself at the same time loses nothing", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { ...LONG, ttlMs: 9_000, autoExtend: true });
  const locks = await acquireMany(redlock);
  let leastMs = Infinity;
  await eventually(() => {
    leastMs = Math.min(leastMs, ...locks.map((lock) => lock.remainingMs()));
    return locks.every(({ extensions }) => extensions > 0);
  });
  assertEquals(locks.filter(({ held }) => !held).length, 0);
  assertGreater(leastMs, 0);
});

Deno.test("a crowd costs a server few commands to release", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, LONG);
  const locks = await acquireMany(redlock);
  const calls = async () => {
    const stats = String(await servers[0].command("INFO", "commandstats"));
    return [.../cmdstat_evalsha?:calls=(\d+)/gu[Symbol.matchAll](stats)]
      .reduce((total, [, count]) => total + Number(count), 0);
  };
  const before = await calls();
  await Promise.all(locks.map((lock) => lock.release()));
  assertLess(await calls() - before, MANY / 16);
});

// The scripts for many keys do what those for one do

const VALUE = "v".repeat(40);
const OTHER = "w".repeat(40);
/** What a key holds, as the commands that make it. */
const STATES: readonly (readonly string[])[] = [
  [],
  ["SET", "", VALUE, "PX", "60000"],
  ["SET", "", OTHER, "PX", "60000"],
  ["SET", "", VALUE, "PX", "600000"],
  ["SET", "", VALUE],
  ["RPUSH", "", "x"],
];
/** What a queue holds: nothing, somebody who is gone, and what is no queue. */
const QUEUES: readonly (readonly string[])[] = [
  [],
  ["ZADD", "", "1", "gone:1:50"],
  ["SET", "", "no queue"],
];
const CASES = STATES.flatMap((state) => QUEUES.map((queue) => ({ state, queue })));

for (
  const [what, many, one, args] of [
    ["RELEASE_MANY", RELEASE_MANY, RELEASE, [VALUE]],
    ["EXTEND_MANY", EXTEND_MANY, EXTEND, [VALUE, "120000"]],
  ] as const
) {
  Deno.test(`${what} replies and does for each key what ${what.slice(0, -5)} does for one`, async () => {
    await using servers = shared.lend();
    await using clients = new AsyncDisposableStack();
    const [first, second] = await Promise.all(servers.slice(0, 2).map(({ url }) => connect(url)));
    for (const client of [first, second]) clients.use(client);
    const call = (client: RedisClient, { source }: Script, names: string[], all: string[]) =>
      client.send(["EVAL", source, names.length, ...names, ...all]);
    const keys = CASES.map((_, index) => `key:${index}`);
    for (const server of servers.slice(0, 2)) {
      for (const [index, { state, queue }] of CASES.entries()) {
        const [key, name] = [keys[index], `hasp:queue:${keys[index]}`];
        if (state.length > 0) await server.command(...state.with(1, key));
        if (queue.length > 0) await server.command(...queue.with(1, name));
      }
    }
    const together = await call(first, many, keys, keys.flatMap(() => args)) as Reply[];
    const alone: unknown[] = [];
    for (const key of keys) {
      alone.push(await call(second, one, [key], [...args]).catch((error) => error));
    }
    assertEquals(together.map(kindOf), alone.map(kindOf));
    for (const key of keys.flatMap((name) => [name, `hasp:queue:${name}`])) {
      const [here, there] = await onAll(servers, "DUMP", key);
      assertEquals(String(here), String(there), key);
      const [life, other] = (await onAll(servers, "PTTL", key)).map(Number);
      assertLess(Math.abs(life - other), 10_000, key);
    }
  });
}

/** A reply, and of an error the first word. */
function kindOf(reply: unknown): unknown {
  return reply instanceof Error ? /WRONGTYPE/u.exec(reply.message)?.[0] ?? reply.message : reply;
}
