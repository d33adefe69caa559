/** Locks in shared mode on real servers. The simulator has the faults. */
import { assertEquals } from "@std/assert";
import { createRedlock } from "../../mod.ts";
import { forceRelease } from "../../src/operate/mod.ts";
import { ACQUIRE_SHARED, EXTEND_SHARED } from "../../src/redis_node/scripts/readers.ts";
import { RELEASE_QUEUED } from "../../src/redis_node/scripts/release.ts";
import { eventually } from "../support/eventually.ts";
import { startMonitor } from "../support/monitor.ts";
import { onAll, shareServers, warmUp } from "../support/shared_servers.ts";
import { TTL_MS } from "../support/times.ts";

const { test } = shareServers(5);
const READ = { mode: "shared" } as const;
const QUEUE = "hasp:queue:config";

test("a lock in shared mode costs each node two EVALSHA, and one beside it what it has always cost", async (servers) => {
  await using redlock = createRedlock(servers.urls);
  await warmUp(redlock, servers);
  await redlock.using("other", READ, () => {});
  await using stack = new AsyncDisposableStack();
  const monitors = await Promise.all(servers.map(startMonitor));
  for (const monitor of monitors) stack.use(monitor);
  for (let count = 0; count < 3; count++) await redlock.using("config", READ, () => {});
  for (const monitor of monitors) assertEquals(await monitor.take(), { evalsha: 6 });
  for (let count = 0; count < 3; count++) await redlock.using("config", () => {});
  await redlock.close();
  for (const monitor of monitors) assertEquals(await monitor.take(), { set: 3, evalsha: 3 });
});

test("inspect() of what thousands of readers hold counts them all, and breaks no connection", async (servers) => {
  const events: string[] = [];
  const onEvent = ({ type }: { type: string }) => void events.push(type);
  await using redlock = createRedlock(servers.urls, { ...READ, ttlMs: TTL_MS, onEvent });
  const lock = await redlock.acquire("config");
  const until = Date.now() + TTL_MS;
  const others = Array.from({ length: 5_000 }, (_, index) => [String(until), `reader ${index}`]);
  await onAll(servers, "ZADD", "hasp:readers:config", ...others.flat());
  assertEquals((await redlock.inspect("config")).holders.length, 5_001);
  assertEquals(await forceRelease(redlock, "config", { holder: lock.holder }), true);
  assertEquals(events.filter((type) => type === "node-disconnected"), []);
});

test("thousands of readers that crashed are dropped by one command", async (servers) => {
  await using redlock = createRedlock(servers.urls, READ);
  await warmUp(redlock, servers);
  const lock = await redlock.acquire("config");
  const others = Array.from({ length: 5_000 }, (_, index) => [String(1_000 + index), `r${index}`]);
  await onAll(servers, "ZADD", "hasp:readers:config", ...others.flat());
  for (const server of servers) await server.resetCommandCounts();
  await lock.extend();
  await eventually(async () => {
    assertEquals(await onAll(servers, "ZCARD", "hasp:readers:config"), [1, 1, 1, 1, 1]);
  });
  for (const server of servers) {
    const { zrem = 0, zremrangebyscore } = await server.commandCounts();
    assertEquals([zrem, zremrangebyscore], [0, 1]);
  }
  assertEquals(await lock.release(), true);
});

test("a reader is extended where it holds a key, also if another key is a writer's or free", async (servers) => {
  const command = (...args: (string | number)[]) => servers[0].command(...args);
  await command("EVAL", ACQUIRE_SHARED.source, 1, "mine", "v", TTL_MS, "");
  for (const [writer, reply] of [["writer", 0], ["", -1]] as const) {
    if (writer) await command("SET", "first", writer);
    else await command("DEL", "first");
    await command("PEXPIRE", "mine", TTL_MS / 2);
    const extend = ["EVAL", EXTEND_SHARED.source, 2, "first", "mine", "v", TTL_MS * 2];
    assertEquals(await command(...extend), reply);
    assertEquals(Number(await command("PTTL", "mine")) > TTL_MS, true);
  }
});

test("a late release deletes its other keys, also where readers' set is out of reach, and a reader looks behind the 64th ticket if and only if writers before it are gone", async (servers) => {
  const command = (...args: (string | number)[]) => servers[0].command(...args);
  await command("MSET", "config", "hasp:shared", "hasp:readers:config", "other type", "b", "v");
  assertEquals(await command("EVAL", RELEASE_QUEUED.source, 2, "config", "b", "v"), 0);
  assertEquals(await command("DEL", "b", "hasp:readers:config"), 1);
  const gone = Array.from({ length: 64 }, (_, n) => [n, `${n}:${n < 63 ? "" : "R"}1:50`]).flat();
  await command("ZADD", QUEUE, ...gone);
  const args = [1, "config", "v", TTL_MS, "", "reader:R1:50", 65, ""];
  const enter = ["EVAL", ACQUIRE_SHARED.source, ...args];
  assertEquals(await command(...enter), 1);
  await using writer = createRedlock(servers[0].url);
  const waiting = writer.acquire("config", { waitMs: TTL_MS });
  await eventually(async () => assertEquals(await command("ZCARD", QUEUE), 1));
  await command("ZADD", QUEUE, ...gone);
  assertEquals(Array.isArray(await command(...enter)), true);
  await command("ZADD", QUEUE, ...Array.from({ length: 64 }, (_, n) => [n, `${n}:R1:50`]).flat());
  assertEquals(Array.isArray(await command(...enter)), true);
  await command("DEL", "config", QUEUE);
  await (await waiting).release();
});
