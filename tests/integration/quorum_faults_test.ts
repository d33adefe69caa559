import { assert, assertEquals, assertGreater, assertLess, assertRejects } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import {
  ConnectionError,
  createRedlock,
  type Lock,
  QuorumError,
  type Redlock,
  ReplyError,
} from "../../mod.ts";
import { eventually } from "../support/eventually.ts";
import { type RedisServer, startServer, startServers } from "../support/servers.ts";
import {
  type LentServers,
  onAll,
  type ProxyGroup,
  shareServers,
  startProxies,
  warmUp,
} from "../support/shared_servers.ts";

const shared = shareServers(5);

/** What a noisy machine may add to a time. */
const SLACK_MS = 700;

/** How long the client may wait for one node: so long that a test notices if it does. */
const LONG_NODE_TIMEOUT_MS = 5_000;

const TTL_MS = 60_000;

/** A way for the first `count` nodes to fail. */
interface Fault {
  name: string;
  /** Whether servers are killed, which must be a test's own then. */
  kills?: boolean;
  strike(servers: readonly RedisServer[], proxies: ProxyGroup, count: number): Promise<void>;
}

const FAULTS: Fault[] = [
  {
    name: "hung",
    async strike(servers, _proxies, count) {
      await Promise.all(servers.slice(0, count).map((server) => server.pause()));
    },
  },
  {
    name: "killed",
    kills: true,
    async strike(servers, _proxies, count) {
      await Promise.all(servers.slice(0, count).map((server) => server.kill()));
    },
  },
  {
    name: "refusing connections",
    async strike(_servers, proxies, count) {
      for (const proxy of proxies.slice(0, count)) {
        await proxy.refuse();
        proxy.cut();
      }
    },
  },
  {
    name: "accepting connections that lead nowhere",
    strike(_servers, proxies, count) {
      for (const proxy of proxies.slice(0, count)) {
        proxy.stall();
        proxy.cut();
      }
      return Promise.resolve();
    },
  },
  {
    name: "read-only",
    async strike(servers, _proxies, count) {
      await onAll(servers.slice(0, count), "REPLICAOF", "127.0.0.1", 1);
    },
  },
  {
    name: "without enough replicas",
    async strike(servers, _proxies, count) {
      await onAll(servers.slice(0, count), "CONFIG", "SET", "min-replicas-to-write", 1);
    },
  },
  {
    name: "slow by 500 ms",
    strike(_servers, proxies, count) {
      for (const proxy of proxies.slice(0, count)) proxy.delay({ repliesMs: 500 });
      return Promise.resolve();
    },
  },
];

/** What a slow node must not be waited for. */
const UNSLOWED_MS = 450;

function lendOrStart({ kills = false }: Fault): LentServers | ReturnType<typeof startServers<5>> {
  return kills ? startServers(5) : shared.lend();
}

async function acquireAndRelease(redlock: Redlock, resource: string): Promise<void> {
  const lock = await deadline(redlock.acquire(resource), SLACK_MS);
  assertEquals(lock.held, true);
  await deadline(lock.extend(), SLACK_MS);
  assertEquals(await deadline(lock.release(), SLACK_MS), true);
}

for (const fault of FAULTS) {
  for (const count of [1, 2]) {
    Deno.test(`acquire(), extend() and release() settle as ever with ${count} of five nodes ${fault.name}`, async () => {
      await using servers = await lendOrStart(fault);
      await using proxies = startProxies(servers);
      await using redlock = createRedlock(proxies.urls, {
        ttlMs: TTL_MS,
        nodeTimeoutMs: LONG_NODE_TIMEOUT_MS,
      });
      await warmUp(redlock, servers);
      await fault.strike(servers, proxies, count);
      let fastestMs = Infinity;
      for (let round = 0; round < 3; round++) {
        const startMs = performance.now();
        await acquireAndRelease(redlock, `round ${round}`);
        fastestMs = Math.min(fastestMs, performance.now() - startMs);
      }
      assertLess(fastestMs, UNSLOWED_MS);
    });
  }

  Deno.test(`release() settles as ever with two of five nodes ${fault.name} since the lock was acquired`, async () => {
    await using servers = await lendOrStart(fault);
    await using proxies = startProxies(servers);
    await using redlock = createRedlock(proxies.urls, {
      ttlMs: TTL_MS,
      nodeTimeoutMs: LONG_NODE_TIMEOUT_MS,
    });
    const lock = await redlock.acquire("held");
    await eventually(async () =>
      assertEquals(await onAll(servers, "GET", "held"), Array(5).fill(lock.value))
    );
    await fault.strike(servers, proxies, 2);
    await deadline(lock.extend(), SLACK_MS);
    assertEquals([lock.held, lock.extensions], [true, 1]);
    assertEquals(await deadline(lock.release(), SLACK_MS), true);
    await eventually(async () =>
      assertEquals(await onAll(servers.slice(2), "EXISTS", "held"), [0, 0, 0])
    );
  });

  Deno.test(`acquire() of a fresh client settles as ever with two of five nodes ${fault.name}`, async () => {
    await using servers = await lendOrStart(fault);
    await using proxies = startProxies(servers);
    await fault.strike(servers, proxies, 2);
    await using redlock = createRedlock(proxies.urls, {
      ttlMs: TTL_MS,
      nodeTimeoutMs: LONG_NODE_TIMEOUT_MS,
    });
    await acquireAndRelease(redlock, "fresh");
  });

  if (fault.name.startsWith("slow")) continue;
  Deno.test(`using() keeps its lock with two of five nodes ${fault.name} since it was acquired`, async () => {
    await using servers = await lendOrStart(fault);
    await using proxies = startProxies(servers);
    await using redlock = createRedlock(proxies.urls, { ttlMs: 360 });
    const extensions = await deadline(
      redlock.using("kept", async (lock) => {
        await fault.strike(servers, proxies, 2);
        await eventually(() => lock.extensions >= 4 || lock.signal.aborted);
        assertEquals([lock.held, lock.signal.reason], [true, undefined]);
        return lock.extensions;
      }),
      5_000,
    );
    assertGreater(extensions, 3);
  });
}

for (const connected of [true, false]) {
  const client = connected ? "a client with connections" : "a fresh client";

  Deno.test(`acquire() of ${client} with three of five nodes hung fails within waitMs and one nodeTimeoutMs`, async () => {
    await using servers = shared.lend();
    await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: 100 });
    if (connected) await warmUp(redlock, servers);
    await Promise.all(servers.slice(0, 3).map((server) => server.pause()));
    const error = await assertRejects(
      () => deadline(redlock.acquire("hung", { waitMs: 200 }), 200 + 100 + SLACK_MS),
      QuorumError,
    );
    assertEquals(
      error.message,
      'Cannot acquire lock "hung": 2 of 5 nodes granted it, 3 timed out, 3 are needed',
    );
    assertEquals(error.code, "NO_QUORUM");
    assertEquals(error.resources, ["hung"]);
    assertEquals(
      error.votes.map(({ outcome }) => outcome),
      ["timed-out", "timed-out", "timed-out", "granted", "granted"],
    );
  });

  Deno.test(`tryAcquire() of ${client} with three of five nodes hung fails within one nodeTimeoutMs`, async () => {
    await using servers = shared.lend();
    await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: 100 });
    if (connected) await warmUp(redlock, servers);
    await Promise.all(servers.slice(0, 3).map((server) => server.pause()));
    await assertRejects(
      () => deadline(redlock.tryAcquire("hung"), 100 + SLACK_MS),
      QuorumError,
      'Cannot acquire lock "hung": 2 of 5 nodes granted it, 3 timed out, 3 are needed',
    );
  });

  Deno.test(`tryAcquire() of ${client} with all nodes hung fails within one nodeTimeoutMs`, async () => {
    await using servers = shared.lend();
    await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: 100 });
    if (connected) await warmUp(redlock, servers);
    await Promise.all(servers.map((server) => server.pause()));
    await assertRejects(
      () => deadline(redlock.tryAcquire("hung"), 100 + SLACK_MS),
      QuorumError,
      'Cannot acquire lock "hung": 0 of 5 nodes granted it, 5 timed out, 3 are needed',
    );
  });
}

Deno.test("tryAcquire() of a fresh client that logs in waits for hung nodes up to connectTimeoutMs", async () => {
  await using servers = shared.lend();
  // The database is selected before anything else, and that is not answered.
  await using redlock = createRedlock(servers.urls.map((url) => `${url}/1`), {
    nodeTimeoutMs: 200,
    connectTimeoutMs: 300,
  });
  await Promise.all(servers.slice(0, 3).map((server) => server.pause()));
  await assertRejects(
    () => deadline(redlock.tryAcquire("hung"), 300 + 200 + SLACK_MS),
    QuorumError,
    'Cannot acquire lock "hung": 2 of 5 nodes granted it, 3 failed, 3 are needed',
  );
});

Deno.test("tryAcquire() with three of five nodes killed fails at once, and names the nodes' errors", async () => {
  await using servers = await startServers(5);
  await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: LONG_NODE_TIMEOUT_MS });
  await warmUp(redlock, servers);
  await Promise.all(servers.slice(0, 3).map((server) => server.kill()));
  const error = await assertRejects(
    () => deadline(redlock.tryAcquire("killed"), SLACK_MS),
    QuorumError,
  );
  const failed = error.votes.filter(({ outcome }) => outcome === "failed");
  assertEquals(failed.map(({ node }) => node), servers.urls.slice(0, 3));
  for (const vote of failed) assert(vote.error instanceof ConnectionError);
  assert(error.cause instanceof AggregateError);
  assertEquals(error.cause.errors, failed.map((vote) => vote.error));
});

Deno.test("acquire() gets its lock as soon as a quorum is back", async () => {
  await using servers = await startServers(5);
  await using redlock = createRedlock(servers.urls, { retryDelayMaxMs: 100, nodeTimeoutMs: 100 });
  await warmUp(redlock, servers);
  await servers[0].pause();
  await Promise.all(servers.slice(1, 4).map((server) => server.kill()));
  let attempts = 0;
  const acquiring = redlock.acquire("waited for", {
    onEvent: ({ type }) => {
      if (type === "attempt") attempts++;
    },
  });
  await eventually(() => attempts >= 2);
  servers[0].resume();
  await servers[1].start();
  await using lock = await deadline(acquiring, 5_000);
  assertEquals(lock.held, true);
});

Deno.test("createRedlock() does not throw where no server can be reached, and the lock works once they are there", async () => {
  await using servers = await startServers(3);
  await Promise.all(servers.map((server) => server.kill()));
  await using redlock = createRedlock(servers.urls, { retryDelayMaxMs: 100 });
  const error = await assertRejects(
    () => deadline(redlock.tryAcquire("nowhere"), SLACK_MS),
    QuorumError,
  );
  assertEquals(
    error.message.replace(/[23] failed/, "all failed"),
    'Cannot acquire lock "nowhere": 0 of 3 nodes granted it, all failed, 2 are needed',
  );
  await Promise.all(servers.map((server) => server.start()));
  await using lock = await deadline(redlock.acquire("nowhere"), 5_000);
  assertEquals(lock.held, true);
});

/** Error replies, and how a server is brought to give them to `SET`. */
const ERRORS: [string, (server: RedisServer) => Promise<unknown>][] = [
  ["READONLY", (server) => server.command("REPLICAOF", "127.0.0.1", 1)],
  ["NOREPLICAS", (server) => server.command("CONFIG", "SET", "min-replicas-to-write", 1)],
  ["OOM", (server) => server.command("CONFIG", "SET", "maxmemory", 1)],
  ["NOPERM", (server) => server.command("ACL", "SETUSER", "default", "-set", "-eval", "-evalsha")],
  ["NOAUTH", (server) => server.command("CONFIG", "SET", "requirepass", "secret")],
  ["MISCONF", async (server) => {
    await server.command("CONFIG", "SET", "save", "1 1");
    await Deno.mkdir(`${server.dir}/dump.rdb`); // what can't be written over
    await server.command("SET", "unsaved", "1");
    await eventually(async () => {
      await server.command("BGSAVE").catch(() => {});
      return await server.command("SET", "unsaved", "2").then(
        () => false,
        (error) => assert(error.message.startsWith("MISCONF")),
      );
    });
  }],
  ["CLUSTERDOWN", (server) => server.command("PING")],
];

for (const [prefix, bringAbout] of ERRORS) {
  Deno.test(`tryAcquire() reports ${prefix} as a node's error, never as held by another`, async () => {
    const config = prefix === "CLUSTERDOWN" ? ["cluster-enabled yes"] : [];
    await using server = await startServer({ config });
    await bringAbout(server);
    await using redlock = createRedlock([server.url]);
    const error = await assertRejects(() => redlock.tryAcquire("erring"), QuorumError);
    assertEquals(
      error.message,
      'Cannot acquire lock "erring": 0 of 1 nodes granted it, 1 failed, 1 are needed',
    );
    const [vote] = error.votes;
    assertEquals(vote.outcome, "failed");
    assert(vote.error instanceof ReplyError);
    assertEquals(vote.error.prefix, prefix);
    assertEquals(vote.error.message.split(" ", 1), [prefix]);
    assert(!error.message.includes("secret"));
  });
}

Deno.test("tryAcquire() reports BUSY as a node's error, never as held by another", async () => {
  await using server = await startServer({ config: ["busy-reply-threshold 1"] });
  await using redlock = createRedlock([server.url]);
  const busy = server.command("EVAL", "while true do end", 0).catch(() => {});
  await eventually(() =>
    server.command("PING").then(() => false, (error) => assert(error.message.startsWith("BUSY")))
  );
  const error = await assertRejects(() => redlock.tryAcquire("erring"), QuorumError);
  assertEquals((error.votes[0].error as ReplyError).prefix, "BUSY");
  await server.command("SCRIPT", "KILL");
  await busy;
});

Deno.test("inspect() throws where too few nodes can be asked, and never calls the resource free", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: 200 });
  await warmUp(redlock, servers);
  await Promise.all(servers.slice(0, 3).map((server) => server.pause()));
  const error = await assertRejects(
    () => deadline(redlock.inspect("unknown"), 200 + SLACK_MS),
    QuorumError,
  );
  assertEquals(
    error.message,
    'Cannot inspect lock "unknown": 2 of 5 nodes granted it, 3 timed out, 3 are needed',
  );
});

Deno.test("inspect() throws where all servers are down", async () => {
  await using servers = await startServers(3);
  await Promise.all(servers.map((server) => server.kill()));
  await using redlock = createRedlock(servers.urls);
  await assertRejects(
    () => deadline(redlock.inspect("unknown"), SLACK_MS),
    QuorumError,
    'Cannot inspect lock "unknown": 0 of 3 nodes granted it, 3 failed, 2 are needed',
  );
});

Deno.test("inspect() throws where the missing nodes could make a quorum of a key", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: 200 });
  await onAll(servers.slice(2, 3), "SET", "undecided", "another", "PX", TTL_MS);
  await Promise.all(servers.slice(0, 2).map((server) => server.pause()));
  await assertRejects(
    () => deadline(redlock.inspect("undecided"), 200 + SLACK_MS),
    QuorumError,
    'Cannot inspect lock "undecided": 2 of 5 nodes granted it, 1 denied, 2 timed out, 3 are needed',
  );
});

Deno.test("inspect() tells held and free with two of five nodes hung", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls, { nodeTimeoutMs: 200 });
  await onAll(servers, "SET", "held", "another", "PX", TTL_MS);
  await Promise.all(servers.slice(0, 2).map((server) => server.pause()));
  const [held, free] = await deadline(
    Promise.all([redlock.inspect("held"), redlock.inspect("free")]),
    200 + SLACK_MS,
  );
  assertEquals([held.held, free.held], [true, false]);
});

/** Collects garbage as a test needs it, and returns how much of the heap is in use. */
function heapUsedBytes(): number {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  return Deno.memoryUsage().heapUsed;
}

for (const state of ["dead", "hung"]) {
  Deno.test(`acquire() and release() by the thousand with a ${state} node of five don't fill the heap`, async () => {
    await using servers = await startServers(5);
    await using redlock = createRedlock(servers.urls);
    const rounds = async (count: number) => {
      for (let round = 0; round < count; round += 50) {
        await Promise.all(Array.from({ length: 50 }, async (_, index) => {
          const lock: Lock = await redlock.acquire(`heap ${round + index}`);
          assertEquals(await lock.release(), true);
        }));
      }
    };
    if (state === "dead") await servers[4].kill();
    else await servers[4].pause();
    // The commands to a hung node wait for their replies, up to a limit that these reach.
    await rounds(26_000);
    const beforeBytes = heapUsedBytes();
    await rounds(20_000);
    const grownBytes = heapUsedBytes() - beforeBytes;
    assertLess(grownBytes / 20_000, 400); // peers keep 5 to 9 kB for each
  });
}
