import { assert, assertEquals, assertFalse, assertLess } from "@std/assert";
import { createRedlock } from "../../mod.ts";
import {
  check,
  type FindingCode,
  formatHealthReport,
  type HealthReport,
} from "../../src/operate/mod.ts";
import { TRIED } from "../../src/redis_node/operated_node.ts";
import { startNodes } from "../../src/testing/mod.ts";
import { eventually } from "../support/eventually.ts";
import { type RedisServer, startServer } from "../support/servers.ts";
import { onAll, shareServers } from "../support/shared_servers.ts";

const shared = shareServers(5);

const PASSWORD = "s3cret-of-nobody";

/**
 * How long a busy machine may pause the process, in milliseconds; clocks that are apart are seconds
 * apart here.
 */
const PAUSE_MS = 1_000;

/**
 * What is found, without what all servers of tests have in common: they are young, and keep nothing
 * on disk.
 */
function codes({ findings }: HealthReport): FindingCode[] {
  const common: readonly FindingCode[] = ["RESTARTED", "NOT_PERSISTENT"];
  return findings.map(({ code }) => code).filter((code) => !common.includes(code));
}

/** On which of the nodes something is found, by their places in the list. */
function places({ findings, nodes }: HealthReport, wanted: FindingCode): number[] {
  const names = findings.filter(({ code }) => code === wanted).flatMap((finding) => finding.nodes);
  return names.map((name) => nodes.findIndex((node) => node.name === name));
}

Deno.test("check() finds nothing amiss with five masters, and leaves nothing behind", async () => {
  await using servers = shared.lend();
  await using redlock = createRedlock(servers.urls);
  const report = await check(redlock);
  assertEquals([codes(report), report.ok, report.quorum], [[], true, 3]);
  assertEquals(report.nodes.map(({ name }) => name), servers.urls);
  for (const [index, node] of report.nodes.entries()) {
    const info = String(await servers[index].command("INFO"));
    const field = (name: string) => new RegExp(`^${name}:(.*)\r$`, "mu").exec(info)?.[1];
    const version = field("valkey_version") ?? field("redis_version");
    assertEquals([node.version, node.runId], [version, field("run_id")]);
    assertEquals(
      [node.role, node.clustered, node.aofEnabled, node.appendfsync, node.maxmemoryPolicy],
      ["master", false, false, "everysec", "noeviction"],
    );
    assertEquals([node.reachable, node.refused], [true, undefined]);
    // It is one clock; a busy machine may pause the process between reading it and the time that
    // passed.
    assertLess(Math.abs(node.clockOffsetMs!), node.roundTripMs! / 2 + PAUSE_MS);
  }
  assertEquals(await onAll(servers, "DBSIZE"), [0, 0, 0, 0, 0]);
  await eventually(async () => {
    for (const list of await onAll(servers, "CLIENT", "LIST", "TYPE", "pubsub")) {
      assertEquals(list, "");
    }
  });
});

Deno.test("check() goes over the connections that locks use, and disturbs none of them", async () => {
  await using servers = shared.lend(3);
  await using redlock = createRedlock(servers.urls, { ttlMs: 5_000 });
  await using lock = await redlock.acquire("invoice:42");
  const calls = Array.from({ length: 50 }, async (_, index) => {
    const [, own] = await Promise.all([
      index % 10 === 0 ? check(redlock) : undefined,
      redlock.acquire(`job:${index}`, { waitMs: 0 }),
    ]);
    return await own.release();
  });
  assertEquals(await Promise.all(calls), Array(50).fill(true));
  await lock.extend();
  assert(lock.held);
});

Deno.test("check() finds a server that is listed under two names", async () => {
  await using servers = shared.lend(2);
  const [one, other] = servers.urls;
  await using redlock = createRedlock([one, other, one.replace("127.0.0.1", "localhost")]);
  const report = await check(redlock);
  assertEquals([codes(report), places(report, "SAME_SERVER")], [["SAME_SERVER"], [0, 2]]);
  assertFalse(report.ok);
});

/** Starts a load balancer: it gives each new connection to the next of some servers, in turns. */
function startBalancer(servers: readonly RedisServer[]) {
  const hostname = "127.0.0.1";
  const listener = Deno.listen({ hostname, port: 0 });
  const tasks: Promise<unknown>[] = [];
  const accepting = (async () => {
    let accepted = 0;
    for await (const client of listener) {
      const { port } = servers[accepted++ % servers.length];
      const server = await Deno.connect({ hostname, port });
      tasks.push(
        client.readable.pipeTo(server.writable).catch(() => {}),
        server.readable.pipeTo(client.writable).catch(() => {}),
      );
    }
  })();
  return {
    url: `redis://${hostname}:${(listener.addr as Deno.NetAddr).port}`,
    async [Symbol.asyncDispose]() {
      listener.close();
      await accepting;
      await Promise.all(tasks);
    },
  };
}

for (const waits of [false, true]) {
  const connections = waits ? "two connections" : "one connection";
  Deno.test(`check() finds a load balancer over two masters, with ${connections} open before`, async () => {
    await using servers = shared.lend(3);
    await using balancer = startBalancer(servers.slice(0, 2));
    await using direct = createRedlock([servers[2].url]);
    await using redlock = createRedlock([balancer.url, servers[2].url], {
      ttlMs: 5_000,
      nodeTimeoutMs: 2_000,
    });
    if (waits) {
      await using _held = await direct.acquire("invoice:42");
      await redlock.acquire("invoice:42", { waitMs: 50 }).catch(() => {});
    }
    const report = await check(redlock);
    assertEquals(places(report, "SEVERAL_SERVERS"), [0]);
    assertEquals(report.nodes.map(({ otherRunIds = [] }) => otherRunIds.length), [1, 0]);
    assertFalse(report.ok);
  });
}

Deno.test("check() finds a replica", async () => {
  await using servers = shared.lend(3);
  await servers[1].command("REPLICAOF", "127.0.0.1", servers[0].port);
  await using redlock = createRedlock(servers.urls);
  const report = await check(redlock);
  assertEquals([codes(report), places(report, "REPLICA")], [["REPLICA"], [1]]);
});

Deno.test("check() finds a node of a cluster and servers that may evict", async () => {
  await using cluster = await startServer({ config: ["cluster-enabled yes"] });
  await using evicting = await startServer({ config: ["maxmemory-policy allkeys-lru"] });
  await using full = await startServer({
    config: ["maxmemory-policy volatile-ttl", "maxmemory 100mb"],
  });
  await using redlock = createRedlock([cluster.url, evicting.url, full.url]);
  const report = await check(redlock);
  assertEquals(codes(report), ["CLUSTER_NODE", "MAY_EVICT", "MAY_EVICT"]);
  assertEquals(places(report, "CLUSTER_NODE"), [0]);
  assertEquals(places(report, "MAY_EVICT"), [2, 1]); // an error comes before a warning
});

for (
  const [command, ...expected] of [
    ["set", "NO_QUORUM", "ACQUIRE_REFUSED"],
    ["eval", "RELEASE_REFUSED"],
    ["evalsha", "RELEASE_REFUSED"],
    ["get", "RELEASE_REFUSED"],
    ["del", "RELEASE_REFUSED"],
    ["exists", "RELEASE_REFUSED"],
    ["pexpire", "RELEASE_REFUSED"],
    ["pttl", "RELEASE_REFUSED"],
    ["incr", "FENCING_REFUSED"],
    ["decr", "FENCING_REFUSED"],
    ["publish", "NOTIFY_REFUSED"],
    ["subscribe", "NOTIFY_REFUSED"],
    ["zadd", "NOTIFY_REFUSED"],
    ["zcard", "NOTIFY_REFUSED"],
    ["zrange", "NOTIFY_REFUSED"],
    ["zrank", "NOTIFY_REFUSED"],
    ["zrem", "NOTIFY_REFUSED"],
    ["zremrangebyscore", "NOTIFY_REFUSED"],
    ["zscore", "NOTIFY_REFUSED"],
    ["scan", "LIST_REFUSED"],
    ["info", "INFO_REFUSED"],
    ["time", "FENCING_REFUSED", "NOTIFY_REFUSED", "INFO_REFUSED"],
    ["config"],
  ] as const satisfies readonly (readonly [string, ...FindingCode[]])[]
) {
  Deno.test(`check() of an ACL user without ${command} reports the rest, and no credentials`, async () => {
    const users = [`locker on >${PASSWORD} ~* &* +@all -${command}`];
    await using server = await startServer({ users });
    await using redlock = createRedlock([`redis://locker:${PASSWORD}@127.0.0.1:${server.port}`]);
    const report = await check(redlock, { fencing: true });
    assertEquals<string[]>(codes(report).filter((it) => it !== "NODES_FEW"), expected);
    const [{ refused, version, clockOffsetMs }] = report.nodes;
    const inScripts = TRIED.includes(command.toUpperCase());
    assertEquals(refused, { [command.toUpperCase()]: inScripts ? "in scripts" : "NOPERM" });
    assertEquals(version === undefined, command === "info");
    assertEquals(clockOffsetMs === undefined, command === "time");
    for (const text of [JSON.stringify(report), formatHealthReport(report)]) {
      assertFalse(text.includes("locker") || text.includes(PASSWORD), text);
    }
  });
}

Deno.test("check() finds that the channels of an ACL user are others than those of waiting", async () => {
  const users = [`locker on >${PASSWORD} ~* resetchannels &mine:* +@all`];
  await using server = await startServer({ users });
  await using redlock = createRedlock([`redis://locker:${PASSWORD}@127.0.0.1:${server.port}`]);
  const report = await check(redlock);
  assertEquals(codes(report), ["NOTIFY_REFUSED", "NODES_FEW"]);
  assertEquals(report.nodes[0].refused, { PUBLISH: "NOPERM", SUBSCRIBE: "NOPERM" });
});

for (
  const [rules, options, expected] of [
    ["~app:* ~hasp:*", { keyPrefix: "app:" }, []],
    ["~app:* ~hasp:* -type", { keyPrefix: "app:" }, []], // only inspect() does without
    ["~app:* ~hasp:*", { keyPrefix: "lock:" }, ["NO_QUORUM", "ACQUIRE_REFUSED", "RELEASE_REFUSED"]],
    ["~app:* ~hasp:*", {}, ["NO_QUORUM", "ACQUIRE_REFUSED", "RELEASE_REFUSED"]], // as in the manual
    ["~app:*", { keyPrefix: "app:" }, ["FENCING_REFUSED", "NOTIFY_REFUSED"]],
    ["~app:* ~hasp:[qt]*", { keyPrefix: "app:", fencing: false }, ["NOTIFY_REFUSED"]],
    ["~app:* ~hasp:[qr]*", { keyPrefix: "app:", fencing: false }, ["NOTIFY_REFUSED"]],
    ["~app:* ~hasp:[qrt]*", { keyPrefix: "app:" }, ["FENCING_REFUSED"]],
    ["~app:* ~hasp:[qrt]*", { keyPrefix: "app:", fencing: false }, []],
  ] as const
) {
  const missing = expected.length > 0 ? expected.join() : "nothing";
  Deno.test(`check() with ${JSON.stringify(options)} of a user with ${rules} finds ${missing}`, async () => {
    const users = [`locker on >${PASSWORD} &* +@all ${rules}`];
    await using server = await startServer({ users });
    await using redlock = createRedlock([`redis://locker:${PASSWORD}@127.0.0.1:${server.port}`]);
    const report = await check(redlock, { fencing: true, ...options });
    assertEquals<string[]>(codes(report).filter((it) => it !== "NODES_FEW"), [...expected]);
  });
}

Deno.test("check() of a server that wants a password says so, with and without one", async () => {
  await using server = await startServer({ password: PASSWORD });
  const host = `127.0.0.1:${server.port}`;
  for (const address of [`redis://${host}`, `redis://:wrong-one@${host}`]) {
    await using redlock = createRedlock([address]);
    const report = await check(redlock);
    assertEquals(codes(report), ["NO_QUORUM", "NODE_UNREACHABLE", "NODES_FEW"]);
    assert(/NOAUTH|WRONGPASS/u.test(report.nodes[0].error!), report.nodes[0].error);
    assertFalse(JSON.stringify(report).includes("wrong-one"));
  }
});

Deno.test("check() of nodes in memory finds the one whose clock is ahead", async () => {
  await using nodes = await startNodes(3);
  await using redlock = createRedlock(nodes.addresses);
  assertEquals(codes(await check(redlock)), []);
  nodes.node(1).skewClock(5_000);
  const report = await check(redlock);
  assertEquals([codes(report), places(report, "NODE_CLOCK_APART")], [["NODE_CLOCK_APART"], [1]]);
  for (const node of nodes) node.skewClock(-5_000);
  const behind = await check(redlock);
  assertEquals(codes(behind), ["CLIENT_CLOCK_APART"]);
  assertLess(Math.abs(behind.nodes[0].clockOffsetMs! + 5_000), PAUSE_MS);
});
