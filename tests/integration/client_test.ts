import {
  assert,
  assertEquals,
  assertFalse,
  assertInstanceOf,
  assertMatch,
  assertRejects,
} from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, QuorumError, type Redlock } from "../../mod.ts";
import { connect, ConnectionError } from "../../src/redis/mod.ts";
import { eventually } from "../support/eventually.ts";
import { startProxy } from "../../src/testing/mod.ts";
import { onAll, shareServers } from "../support/shared_servers.ts";
import { type RedisServer, startServer, startServers } from "../support/servers.ts";
import { LONG_NODE_TIMEOUT_MS, TTL_MS } from "../support/times.ts";

const shared = shareServers(3, { rights: ["+client|setname", "+echo"] });
const { test } = shared;

/** A name that no resolver is asked about, as a label may have 63 characters. */
const NO_HOST = `${"a".repeat(64)}.invalid`;

/** What keeps a node from being used from the start. */
interface Trouble {
  readonly what: string;
  start(): Promise<{ url: string } & Partial<AsyncDisposable>>;
  /** Why such a node's vote has failed. */
  readonly cause: RegExp;
  /** Whether it does not answer at all. */
  readonly isSilent?: true;
}

/** Each node refuses on a port of its own, as two nodes must not have one address. */
let closedPort = 0;

const TROUBLES: readonly Trouble[] = [
  {
    what: "names that cannot be resolved",
    start: () => Promise.resolve({ url: `redis://${crypto.randomUUID()}${NO_HOST}` }),
    cause: /could not be made: .*(address|lookup)/,
  },
  {
    what: "ports that refuse",
    start: () => Promise.resolve({ url: `redis://127.0.0.1:${++closedPort}` }),
    cause: /could not be made: Connection refused/,
  },
  {
    what: "servers that speak no TLS",
    start: async () => {
      const server = await startServer();
      return {
        url: `rediss://127.0.0.1:${server.port}`,
        [Symbol.asyncDispose]: () => server.stop(),
      };
    },
    cause: /could not be made \(a server without TLS needs redis:\/\/\): /,
    isSilent: true,
  },
  {
    what: "servers that refuse the password",
    start: async () => {
      const server = await startServer({ password: "right-password" });
      return {
        url: `redis://:wrong-password@127.0.0.1:${server.port}`,
        [Symbol.asyncDispose]: () => server.stop(),
      };
    },
    cause: /was refused: WRONGPASS/,
  },
];

for (const { what, start, cause, isSilent } of TROUBLES) {
  Deno.test(`the lock works with two of five nodes being ${what}`, async () => {
    await using servers = shared.lend(3);
    await using troubles = await startAll(2, start);
    await using redlock = createRedlock([...troubles.urls, ...servers.urls], { ttlMs: 20_000 });
    await assertLockWorks(redlock);
  });

  Deno.test(`acquire() rejects with three of five nodes being ${what}`, async () => {
    await using servers = shared.lend(2);
    await using troubles = await startAll(3, start);
    await using redlock = createRedlock([...troubles.urls, ...servers.urls], {
      waitMs: 0,
      connectTimeoutMs: isSilent ? 400 : LONG_NODE_TIMEOUT_MS,
    });
    const error = await assertRejects(() => redlock.acquire("invoice:42"), QuorumError);
    // Three failures decide it, whether or not the others have answered by then.
    assertMatch(
      error.message,
      /^Cannot acquire lock "invoice:42": [012] of 5 nodes granted it, 3 failed, 3 are needed; (first|permanent) error: Connection to redis/,
    );
    const failed = error.votes.filter(({ outcome }) => outcome === "failed");
    assertEquals(failed.length, 3);
    for (const { error: failure } of failed) {
      assertInstanceOf(failure, ConnectionError);
      assertMatch(`${failure.message}: ${(failure.cause as Error).message}`, cause);
    }
    assertFalse(/right-password|wrong-password/.test(Deno.inspect(error, { depth: 9 })));
    await eventually(async () => {
      // what was granted is taken back
      assertEquals(await onAll(servers, "EXISTS", "invoice:42"), [0, 0]);
    });
  });
}

/** What may befall a node later. */
const STROKES: Record<string, (server: RedisServer) => Promise<unknown>> = {
  "die": (server) => server.kill(),
  "hang": (server) => server.pause(),
  "drop all connections": (server) => server.command("CLIENT", "KILL", "TYPE", "normal"),
  "ask for another password": async (server) => {
    await server.command("CONFIG", "SET", "requirepass", "another-password");
    await using admin = await connect(`redis://:another-password@127.0.0.1:${server.port}`);
    await admin.send(["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
  },
  "restart without their data": (server) => server.restart(),
};

for (const [what, strike] of Object.entries(STROKES)) {
  Deno.test(`the lock works, and one that is held goes on, when two of five nodes ${what}`, async () => {
    await using servers = await startServers(5, { rights: ["+client|kill"] });
    await using redlock = createRedlock(servers.urls, {
      ttlMs: TTL_MS,
      nodeTimeoutMs: LONG_NODE_TIMEOUT_MS,
    });
    await assertLockWorks(redlock);
    const lock = await redlock.acquire("held meanwhile");
    await eventually(() => assertEquals(lock.votes.length, 5));
    await Promise.all(servers.slice(0, 2).map(strike));
    await deadline(assertLockWorks(redlock), LONG_NODE_TIMEOUT_MS); // waits for no more than a quorum
    await lock.extend();
    assert(lock.held);
    assert(await lock.release());
  });
}

async function startAll(count: number, start: Trouble["start"]) {
  const started = await Promise.all(Array.from({ length: count }, start));
  return {
    urls: started.map(({ url }) => url),
    async [Symbol.asyncDispose]() {
      await Promise.all(started.map((trouble) => trouble[Symbol.asyncDispose]?.()));
    },
  };
}

async function assertLockWorks(redlock: Redlock): Promise<void> {
  const lock = await redlock.acquire("invoice:42", { waitMs: 0 });
  assert(lock.held);
  assertEquals(await redlock.tryAcquire("invoice:42"), undefined);
  await lock.extend();
  assertEquals(lock.extensions, 1);
  assertEquals(await lock.release(), true);
  const several = await redlock.acquire(["invoice:42", "invoice:43"], { waitMs: 0 });
  assertEquals(await several.release(), true);
}

for (const resource of ["one", ["one", "two", "three"]]) {
  const what = typeof resource === "string" ? "one resource" : "several resources";

  test(`acquire(), extend() and release() of ${what} work after SCRIPT FLUSH each`, async (servers) => {
    await using redlock = createRedlock(servers.urls);
    // Each script is sent whole the first time, then by its digest, and whole once more after
    // NOSCRIPT: no attempt is repeated for it.
    const scripts = what === "one resource" ? 2 : 3;
    for (const digests of [0, scripts]) {
      await onAll(servers, "SCRIPT", "FLUSH");
      await Promise.all(servers.map((server) => server.resetCommandCounts()));
      const lock = await redlock.acquire(resource, { waitMs: 0 });
      await eventually(() => lock.votes.length === 3);
      await onAll(servers, "SCRIPT", "FLUSH");
      await lock.extend();
      assertEquals(lock.extensions, 1);
      await onAll(servers, "SCRIPT", "FLUSH");
      assertEquals(await lock.release(), true);
      await eventually(async () => assertEquals(await onAll(servers, "DBSIZE"), [0, 0, 0]));
      for (const server of servers) {
        const { evalsha = 0, eval: whole } = await server.commandCounts();
        assertEquals({ evalsha, whole }, { evalsha: digests, whole: scripts });
      }
    }
  });

  test(`an attempt at ${what} that fails after SCRIPT FLUSH leaves no key`, async (servers) => {
    await using redlock = createRedlock(servers.urls);
    await onAll(servers.slice(0, 2), "SET", "one", "another's");
    await onAll(servers, "SCRIPT", "FLUSH");
    assertEquals(await redlock.tryAcquire(resource), undefined);
    await eventually(async () => {
      assertEquals(await onAll(servers, "GET", "one"), ["another's", "another's", null]);
      assertEquals(await onAll(servers, "DBSIZE"), [1, 1, 0]);
    });
  });
}

Deno.test("a client of a lock keeps one connection to each node, whatever is asked of it", async () => {
  await using servers = shared.lend(1);
  await using proxy = await startProxy(servers[0]!.url);
  await using redlock = createRedlock([proxy.address]);
  await Promise.all(Array.from({ length: 200 }, async (_, index) => {
    const lock = await redlock.acquire(`job:${index}`);
    await lock.extend();
    await lock.release();
  }));
  assertEquals(proxy.accepted, 1);
});
