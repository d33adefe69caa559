import { assert, assertEquals, assertInstanceOf, assertMatch, assertRejects } from "@std/assert";
import { deadline } from "@std/async/deadline";
import { createRedlock, type Lock, QuorumError, type Vote } from "../../mod.ts";
import { check } from "../../src/operate/mod.ts";
import { ReplyError } from "../../src/redis/mod.ts";
import { eventually } from "../support/eventually.ts";
import { answering, startFakeServer } from "../support/fake_server.ts";
import { onAll, shareServers } from "../support/shared_servers.ts";
import {
  type RedisServer,
  serverVersion,
  startServer,
  type StartServerOptions,
} from "../support/servers.ts";

const shared = shareServers(2);
const { test } = shared;

const END_MS = 30_000;

/** A node that answers with errors. */
interface ErringNode {
  readonly url: string;
  readonly stop: () => PromiseLike<void>;
}

/** One kind of error, from a server that has every reason for it. */
interface Failing {
  /** The first word of the error. */
  readonly prefix: string;
  /** What goes on in the server. */
  readonly reason: string;
  /** The whole text of the error. */
  readonly text: RegExp;
  start(): Promise<ErringNode>;
}

const FAILINGS: readonly Failing[] = [
  {
    prefix: "LOADING",
    reason: "a server that still reads its data from disk",
    text: /^LOADING \w+ is loading the dataset in memory$/,
    async start() {
      const server = await startServer({
        config: ["key-load-delay 20000", "loading-process-events-interval-bytes 1024"],
      });
      const fill = "for i = 1, 400 do redis.call('SET', 'key:' .. i, string.rep('x', 4096)) end";
      await server.command("EVAL", fill, 0);
      // It is not ready for another eight seconds, and then a test does not need it any more.
      const restarting = server.restart({ keepData: true }).catch(() => {});
      await eventually(async () => {
        const error = await assertRejects(() => server.command("PING"), Error);
        return error.message.startsWith("LOADING");
      });
      return {
        url: server.url,
        async stop() {
          await server.stop();
          await restarting;
        },
      };
    },
  },
  {
    prefix: "READONLY",
    reason: "a replica",
    text: /^READONLY You can't write against a read only replica\.$/,
    start: () =>
      startErring({}, (server) => server.command("REPLICAOF", "127.0.0.1", shared.lend()[0]!.port)),
  },
  {
    prefix: "MISCONF",
    reason: "a server that cannot save",
    text: /^MISCONF /,
    start: () =>
      startErring({ config: ["save 3600 1"] }, async (server) => {
        await Deno.mkdir(`${server.dir}/dump.rdb`); // a file cannot take the place of a folder
        await server.command("BGSAVE");
        await eventually(async () => {
          const text = String(await server.command("INFO", "persistence"));
          return text.includes("rdb_last_bgsave_status:err");
        });
      }),
  },
  {
    prefix: "OOM",
    reason: "a server whose memory is full",
    text: /^OOM command not allowed when used memory > 'maxmemory'\.?$/,
    start: () => startErring({ config: ["maxmemory 1kb", "maxmemory-policy noeviction"] }),
  },
  {
    prefix: "NOAUTH",
    reason: "a server that wants a password",
    text: /^NOAUTH Authentication required\.$/,
    start: () => startErring({ password: "secret" }, undefined, ""),
  },
  {
    prefix: "NOPERM",
    reason: "a server on which the user may not set this key",
    text: /^NOPERM .*key/,
    start: () =>
      startErring({ users: ["locker on >secret ~other:* &* +@all"] }, undefined, "locker:secret@"),
  },
  {
    prefix: "BUSY",
    reason: "a server that is busy with somebody's endless script",
    text: /^BUSY \w+ is busy running a script\./,
    async start() {
      const node = await startErring({ config: ["lua-time-limit 5"] }, async (server) => {
        endless.set(server.url, server.command("EVAL", "while true do end", 0).catch(() => null));
        await eventually(async () => {
          const error = await assertRejects(() => server.command("PING"), Error);
          return error.message.startsWith("BUSY");
        });
      });
      return {
        url: node.url,
        async stop() {
          await node.stop();
          await endless.get(node.url);
        },
      };
    },
  },
  {
    prefix: "CLUSTERDOWN",
    reason: "a cluster's server without its slots",
    text: /^CLUSTERDOWN Hash slot not served$/,
    start: () => startErring({ config: ["cluster-enabled yes"] }),
  },
  {
    prefix: "NOREPLICAS",
    reason: "a server that misses its replicas",
    text: /^NOREPLICAS Not enough good replicas to write\.$/,
    start: () => startErring({ config: ["min-replicas-to-write 1"] }),
  },
  {
    prefix: "MASTERDOWN",
    reason: "a replica that has lost its master",
    text: /^MASTERDOWN /,
    start: () => {
      const server = startFakeServer(
        answering(
          "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n",
        ),
      );
      return Promise.resolve({ url: server.url, stop: () => server[Symbol.asyncDispose]() });
    },
  },
];

/** The scripts that keep servers busy, by the servers' addresses. */
const endless = new Map<string, Promise<unknown>>();

/** Redis 6 cannot be asked to answer early while it loads. */
const old = (await serverVersion()).startsWith("Redis server v=6.");

/** Errors of every write, which `check()` reports with what helps. */
const UNWRITABLE = ["MISCONF", "OOM", "NOREPLICAS"];

for (const { prefix, reason, text, start } of FAILINGS) {
  if (old && prefix === "LOADING") continue;
  test(`${prefix}: ${reason} fails one vote of three, and the lock works`, async (servers) => {
    await using erring = await startAll(1, start);
    await using redlock = createRedlock([...erring.urls, ...servers.urls], { ttlMs: 20_000 });
    const lock = await redlock.acquire("invoice:42", { waitMs: 0 });
    await eventually(() => assertFailed(lock, prefix, text));
    await lock.extend();
    assertEquals(await redlock.tryAcquire("invoice:42"), undefined);
    assert(await lock.release());
    const several = await redlock.acquire(["invoice:42", "invoice:43"], { waitMs: 0 });
    assert(await several.release());
    if (UNWRITABLE.includes(prefix)) {
      const report = await check(redlock);
      assertEquals(report.nodes.map(({ refused }) => refused?.SET), [prefix, undefined, undefined]);
    }
    await eventually(async () => assertEquals(await onAll(servers, "DBSIZE"), [0, 0]));
  });
}

test("MOVED: a cluster's shard that does not own the slot fails its vote, and the lock works", async (servers) => {
  const config = ["cluster-enabled yes", "cluster-node-timeout 1000"];
  await using owner = await startServer({ config });
  await using shard = await startServer({ config });
  await owner.command("CLUSTER", "ADDSLOTS", ...Array(16_384).keys());
  await shard.command("CLUSTER", "MEET", "127.0.0.1", owner.port);
  await eventually(async () => {
    const error = await assertRejects(() => shard.command("GET", "invoice:42"), Error);
    return error.message.startsWith("MOVED");
  }, 15_000);

  await using redlock = createRedlock([shard.url, ...servers.urls]);
  const lock = await redlock.acquire("invoice:42", { waitMs: 0 });
  const text = new RegExp(
    `^MOVED \\d+ 127.0.0.1:${owner.port}: the server is a node of a cluster, `,
  );
  await eventually(() => assertFailed(lock, "MOVED", text));
  assert(await lock.release());

  await using alone = createRedlock([shard.url]);
  const failing = deadline(alone.acquire("invoice:42", { waitMs: END_MS * 2 }), END_MS); // at once
  const error = await assertRejects(() => failing, QuorumError);
  assertMatch(error.message, /; permanent error: redis:.*: MOVED .* commandNode\(\) .* hash tag /);
  assertReplied(error.votes[0]!, "MOVED", text);
  assertEquals(await owner.command("DBSIZE"), 0); // nobody followed it
});

Deno.test("CROSSSLOT: a cluster's server fails its vote on several resources of several slots", async () => {
  await using server = await startServer({ config: ["cluster-enabled yes"] });
  await server.command("CLUSTER", "ADDSLOTS", ...Array(16_384).keys());
  await eventually(async () => {
    const info = String(await server.command("CLUSTER", "INFO"));
    return info.includes("cluster_state:ok");
  });
  await using redlock = createRedlock([server.url], { waitMs: 0 });
  const error = await assertRejects(() => redlock.acquire(["one", "two"]), QuorumError);
  assertReplied(
    error.votes[0]!,
    "CROSSSLOT",
    /^CROSSSLOT Keys in request don't hash to the same slot: the server is a node of a cluster, /,
  );
});

test("WRONGTYPE: a key of another type fails the extension's and the release's vote and is not deleted", async (servers) => {
  await using third = await startServer();
  const votes: Vote[] = [];
  await using redlock = createRedlock([third.url, ...servers.urls], {
    onEvent: (event) => {
      if (event.type === "extended" || event.type === "released") votes.push(...event.votes);
    },
  });
  const lock = await redlock.acquire("invoice:42");
  await eventually(async () => await third.command("EXISTS", "invoice:42") === 1);
  await third.command("DEL", "invoice:42");
  await third.command("RPUSH", "invoice:42", "somebody's list");
  await lock.extend();
  assert(lock.held);
  assertEquals(await lock.release(), true);
  await eventually(async () => assertEquals(await onAll(servers, "DBSIZE"), [0, 0]));
  for (const vote of votes.filter(({ node }) => node === third.url)) {
    assertMatch(vote.error!.message, /\bWRONGTYPE Operation against a key/);
  }
  assertEquals(await third.command("LRANGE", "invoice:42", 0, -1), ["somebody's list"]);
});

test("an error that is no word Redis uses is a failed vote all the same", async (servers) => {
  await using fake = startFakeServer(answering("-\r\n"));
  await using redlock = createRedlock([fake.url, ...servers.urls]);
  const lock = await redlock.acquire("invoice:42", { waitMs: 0 });
  await eventually(() => assertFailed(lock, "", /^$/));
  assert(await lock.release());
});

async function startErring(
  options: StartServerOptions,
  prepare?: (server: RedisServer) => Promise<unknown>,
  login?: string,
): Promise<ErringNode> {
  const server = await startServer(options);
  try {
    await prepare?.(server);
  } catch (error) {
    await server.stop();
    throw error;
  }
  const url = login === undefined ? server.url : `redis://${login}127.0.0.1:${server.port}`;
  return { url, stop: () => server.stop() };
}

async function startAll(count: number, start: Failing["start"]) {
  const started = await Promise.all(Array.from({ length: count }, start));
  return {
    urls: started.map(({ url }) => url),
    async [Symbol.asyncDispose]() {
      await Promise.all(started.map((node) => node.stop()));
    },
  };
}

/** Asserts that of three nodes the first failed and the others granted. */
function assertFailed(lock: Lock, prefix: string, text: RegExp): void {
  const [first, ...others] = lock.votes;
  assertReplied(first!, prefix, text);
  assertEquals(others.map(({ outcome }) => outcome), ["granted", "granted"]);
}

function assertReplied({ outcome, error }: Vote, prefix: string, text: RegExp): void {
  assertEquals(outcome, "failed");
  assertInstanceOf(error, ReplyError);
  assertEquals(error.prefix, prefix);
  assertMatch(error.message, text);
}
