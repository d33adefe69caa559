/**
 * Many locks of one client at once, on real servers: nothing is refused for crowding, and nothing
 * stays.
 */
import { assertEquals, assertInstanceOf, assertLess, assertRejects } from "@std/assert";
import { createRedlock, type Lock, type Redlock, type RedlockOptions } from "../../mod.ts";
import { connect, type RedisClient, type Reply, ReplyError } from "../../src/redis/mod.ts";
import { ROUNDS_MAX } from "../../src/quorum/round.ts";
import { EXTEND } from "../../src/redis_node/scripts/extend.ts";
import { RELEASE } from "../../src/redis_node/scripts/release.ts";
import { eventually } from "../support/eventually.ts";
import type { FaultProxy } from "../../src/testing/mod.ts";
import { onAll, shareServers, startProxies } from "../support/shared_servers.ts";
import { type RedisServer, startServers } from "../support/servers.ts";

const { test } = shareServers(3);

/** More than a client has under way. */
const MANY = 3 * ROUNDS_MAX;
/** A TTL that no busy machine outlasts, so that no key is gone because of it. */
const LONG: RedlockOptions = {
  ttlMs: 600_000,
  waitMs: 600_000,
  nodeTimeoutMs: 20_000,
  notify: false,
};

/** Takes many locks, all in one tick. */
function acquireMany(redlock: Redlock, options: RedlockOptions = {}): Promise<Lock[]> {
  const resources = Array.from({ length: MANY }, (_, index) => `many:${index}`);
  return Promise.all(resources.map((resource) => redlock.acquire(resource, options)));
}

/** Waits until no key is left: a server that is slow executes the last releases after `close()`. */
function emptied(servers: readonly RedisServer[]): Promise<void> {
  return eventually(async () => assertEquals(await onAll(servers, "DBSIZE"), [0, 0, 0]));
}

test("a crowd of locks is taken in one tick, though no call may wait, and released in another, by few commands", async (servers) => {
  await using redlock = createRedlock(servers.urls, { ...LONG, waitMs: 0 });
  const locks = await acquireMany(redlock);
  await servers[0].resetCommandCounts();
  const released = await Promise.all(locks.map((lock) => lock.release()));
  assertEquals(released.filter((confirmed) => !confirmed).length, 0);
  assertLess((await servers[0].commandCounts()).evalsha, MANY / 16);
  await emptied(servers);
});

test("close() deletes the keys of a crowd of locks", async (servers) => {
  await using redlock = createRedlock(servers.urls, LONG);
  const locks = await acquireMany(redlock);
  await eventually(async () => { // a quorum decides, and one node may be behind
    assertEquals(await onAll(servers, "DBSIZE"), [MANY, MANY, MANY]);
  });
  await redlock.close();
  assertEquals(locks.filter(({ held }) => held).length, 0);
  await emptied(servers);
});

test("close() deletes the keys of a crowd whose releases wait for others", async (servers) => {
  await using redlock = createRedlock(servers.urls, LONG);
  const locks = await acquireMany(redlock);
  const released = Promise.allSettled(locks.map((lock) => lock.release()));
  await redlock.close();
  assertEquals((await released).length, MANY);
  await emptied(servers);
});

Deno.test("a node that was away gets all releases of a crowd when it is back", async () => {
  await using servers = await startServers(3);
  await using redlock = createRedlock(servers.urls, LONG);
  const locks = await acquireMany(redlock);
  await servers[2].pause();
  await Promise.all(locks.map((lock) => lock.release()));
  await servers[2].resume();
  await emptied(servers);
});

/** What happens to a crowd of locks when it is released or extended. */
interface Fault {
  readonly what: string;
  /** What every server is sent before. */
  readonly before?: readonly string[][];
  /** What happens while the requests are under way: then a release need not be confirmed. */
  readonly during?: (servers: readonly RedisServer[], proxies: readonly FaultProxy[]) => unknown;
  /** The queues that stay on every server. */
  readonly stays?: readonly string[];
}

const FAULTS: readonly Fault[] = [
  { what: "after the servers forgot the scripts", before: [["SCRIPT", "FLUSH"]] },
  {
    what: "while the servers have no memory left",
    before: [["CONFIG", "SET", "maxmemory", "1"]],
  },
  { what: "though the user may not MGET", before: [["ACL", "SETUSER", "default", "-mget"]] },
  {
    what: "beside waiters, and what is no queue",
    before: [
      ["ZADD", "hasp:queue:many:1", "1", "gone:1:50"],
      ["SET", "hasp:queue:many:2", "no queue"],
    ],
    stays: ["hasp:queue:many:2"],
  },
  {
    what: "though the connections are cut",
    during: (servers) => onAll(servers, "CLIENT", "KILL", "TYPE", "normal"),
  },
  {
    what: "though the replies are lost",
    async during(_, proxies) {
      for (const proxy of proxies) proxy.hang("replies");
      await eventually(() => proxies.every(({ buffered }) => buffered.replies > 0));
      for (const proxy of proxies) proxy.cut();
      await Promise.all(proxies.map((proxy) => proxy.resume()));
    },
  },
];

/** Locks of each kind: their requests go out in groups and alone. */
function acquireMixed(redlock: Redlock): Promise<Lock[]> {
  const names = Array.from({ length: 600 }, (_, index) => `many:${index}`);
  return Promise.all(names.flatMap((name) => [
    redlock.acquire(name),
    redlock.acquire(`read:${name}`, { mode: "shared" }),
    redlock.acquire([`one:${name}`, `other:${name}`], { any: true }),
    redlock.acquire([`first:${name}`, `second:${name}`]),
  ]));
}

/** Has another type stand under the key of a lock on the first server, which is not touched. */
async function replaceOne([server]: readonly RedisServer[]): Promise<void> {
  await server.command("DEL", "many:3");
  await server.command("RPUSH", "many:3", "no lock");
}

/** Why some of many calls failed: a few reasons, because all of them would be too long to print. */
function reasons(results: readonly PromiseSettledResult<unknown>[]): string[] {
  const failed = results.filter((result) => result.status === "rejected" || result.value === false);
  return failed.slice(0, 3).map((result) =>
    result.status === "rejected" ? String(result.reason) : "not confirmed"
  );
}

/** Waits until nothing is on the servers but what no lock of ours has set. */
async function expectNothingLeft(
  servers: readonly RedisServer[],
  stays: readonly string[] = [],
): Promise<void> {
  await eventually(async () => {
    const keys = (await onAll(servers, "KEYS", "*")) as string[][];
    const few = keys.map((of) => of.sort().slice(0, 5));
    assertEquals(few, [[...stays, "many:3"], [...stays], [...stays]]);
  });
}

for (const { what, before = [], during, stays } of FAULTS) {
  Deno.test(`a crowd, with readers and pools among it, is released ${what}`, async () => {
    await using servers = await startServers(3);
    await using proxies = await startProxies(servers);
    await using redlock = createRedlock(proxies.urls, { ...LONG, nodeTimeoutMs: 10_000 });
    const first = await acquireMixed(redlock);
    await Promise.all(first.map((lock) => lock.release())); // the servers know the scripts from now
    const locks = await acquireMixed(redlock);
    await replaceOne(servers);
    for (const command of before) await onAll(servers, ...command);
    const releases = Promise.allSettled(locks.map((lock) => lock.release()));
    await during?.(servers, proxies);
    const results = await releases;
    if (!during) assertEquals(reasons(results), []);
    await expectNothingLeft(servers, stays);
  });

  Deno.test(`a crowd, with readers and pools among it, is extended ${what}`, async () => {
    await using servers = await startServers(3);
    await using proxies = await startProxies(servers);
    await using redlock = createRedlock(proxies.urls, { ...LONG, ttlMs: 60_000 });
    const locks = await acquireMixed(redlock);
    await Promise.all(locks.map((lock) => lock.extend()));
    await replaceOne(servers);
    for (const command of before) await onAll(servers, ...command);
    const extensions = Promise.allSettled(locks.map((lock) => lock.extend()));
    await during?.(servers, proxies);
    assertEquals(reasons(await extensions), []);
    assertEquals(locks.filter(({ held, extensions }) => !held || extensions !== 2).length, 0);
  });
}

test("a crowd that extends itself at the same time loses nothing", async (servers) => {
  await using redlock = createRedlock(servers.urls, { ...LONG, ttlMs: 15_000, autoExtend: true });
  const locks = await acquireMany(redlock);
  await eventually(() => locks.every(({ extensions }) => extensions > 0));
  assertEquals(locks.filter(({ held }) => !held).length, 0);
});

// A script does for many keys what it does for one

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
  const [what, script, args] of [
    ["RELEASE", RELEASE, [VALUE]],
    ["EXTEND", EXTEND, [VALUE, "120000"]],
  ] as const
) {
  test(`${what} replies and does for each of many keys what it does for one`, async (servers) => {
    await using clients = new AsyncDisposableStack();
    const [first, second] = await Promise.all(
      servers.slice(0, 2).map(async (server) => {
        return clients.use(await connectWithout("exists", server)); // as good as a right that is there
      }),
    );
    const call = (client: RedisClient, names: string[], all: string[]) =>
      client.send(["EVAL", script.source, names.length, ...names, ...all]);
    const keys = CASES.map((_, index) => `key:${index}`);
    for (const server of servers.slice(0, 2)) {
      for (const [index, { state, queue }] of CASES.entries()) {
        const [key, name] = [keys[index], `hasp:queue:${keys[index]}`];
        if (state.length > 0) await server.command(...state.with(1, key));
        if (queue.length > 0) await server.command(...queue.with(1, name));
      }
    }
    const together = await call(first, keys, keys.flatMap(() => args)) as Reply[];
    const alone: unknown[] = [];
    for (const key of keys) {
      alone.push(await call(second, [key], [...args]).catch((error) => error));
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

test("RELEASE and EXTEND reply the error about one of the keys of a lock", async ([server]) => {
  await using client = await connect(server.url);
  for (const [script, args] of [[EXTEND, [VALUE, "120000"]], [RELEASE, [VALUE]]] as const) {
    await server.command("SET", "mine", VALUE, "PX", "60000");
    await server.command("RPUSH", "list", "x");
    for (const queue of ["DEL", "INCR"]) { // without and with waiters
      await server.command(queue, "hasp:queue:list");
      const called = client.send(["EVAL", script.source, 3, "mine", "list", "gone", ...args]);
      const error = await assertRejects(() => called, ReplyError);
      assertEquals(kindOf(error), "WRONGTYPE");
    }
  }
  assertEquals(await server.command("EXISTS", "mine"), 0);
});

test("RELEASE replies for many keys which of them it may not read", async ([server]) => {
  await using client = await connectWithout("get", server);
  using waiter = await Deno.connect({ port: server.port });
  await waiter.write(new TextEncoder().encode("SUBSCRIBE hasp:wake:x\r\n"));
  await waiter.read(new Uint8Array(100));
  await server.command("SET", "mine", VALUE);
  await server.command("ZADD", "hasp:queue:gone", `${Date.now()}000`, "x:1:50");
  const call = ["EVAL", RELEASE.source, 2, "mine", "gone", VALUE, OTHER];
  const [mine, gone] = await client.send(call) as Reply[];
  assertEquals(mine, 1);
  assertInstanceOf(gone, ReplyError);
});

/** A connection as a user who may do all but one. */
async function connectWithout(right: string, server: RedisServer): Promise<RedisClient> {
  await server.command("ACL", "SETUSER", right, "on", ">pw", "~*", "&*", "+@all", `-${right}`);
  return connect(server.url.replace("//", `//${right}:pw@`));
}

/** A reply, and of an error the first word. */
function kindOf(reply: unknown): unknown {
  return reply instanceof Error ? /WRONGTYPE/u.exec(reply.message)?.[0] ?? reply.message : reply;
}
