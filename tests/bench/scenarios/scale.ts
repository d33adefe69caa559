/** Many locks, many clients, far nodes, and few nodes or many. */

import { startProxy } from "../../../src/testing/mod.ts";
import { type RedisServer, startServers } from "../../support/servers.ts";
import type { Figures } from "../measures.ts";
import { printTable, Samples } from "../table.ts";
import { WorkerProcess } from "../worker_process.ts";
import { type Bench, inRounds } from "./scenario.ts";

/**
 * Locks that are held at the same time, their TTL, and for how long they are measured: two
 * extensions of each.
 */
const KEPT_LOCKS = 10_000;
const KEPT_TTL_MS = 9_000;
const KEPT_MS = 2 * KEPT_TTL_MS / 3;
/** Clients with connections of their own, and for how long they do nothing. */
const CLIENTS = 1_000;
const IDLE_MS = 2_000;
/**
 * How far the nearest nodes are, in milliseconds for a command and its reply, and how many times as
 * far the others.
 */
const NEAR_MS = [1, 5, 20];
const FAR_FACTOR = 20;
/** How many nodes there are, and locks in flight on them. */
const NODE_COUNTS = [1, 3, 5, 7, 9];
const IN_FLIGHT = 100;

/** Measures what grows with locks, clients, distance and nodes. */
export async function scale(bench: Bench): Promise<void> {
  const samples = new Samples();
  await using servers = await startServers(Math.max(...NODE_COUNTS));
  await inRounds(bench, samples, "scale", async (worker) => {
    const figures = {
      ...await byNodes(worker, servers, bench.durationMs),
      ...await byDistance(worker, bench),
    };
    await worker.open(bench.servers.urls);
    if (worker.name !== "ours") return figures;
    return { ...figures, ...await manyLocks(worker, bench), ...await manyClients(bench) };
  });
  const row = (what: string, figure: string, digits = 0) => [
    what,
    ...["ours", "floor"].map((name) => {
      const value = samples.median(name, figure);
      return Number.isNaN(value) ? "–" : value.toFixed(digits);
    }),
  ];
  printTable(`Scale, ${bench.runtime}`, [
    ["", "ours", "floor"],
    row(`${KEPT_LOCKS} locks held, TTL ${KEPT_TTL_MS} ms: extensions per second`, "extensionsPerS"),
    row("… CPU of the client, ms per second", "cpuMsPerS"),
    row("… extensions per read of a server", "batched"),
    row("… lateness of an extension, p99, ms", "lateMs"),
    row("… locks lost", "lost"),
    row(`${CLIENTS} clients on five nodes: ms to connect, lock and release, each`, "clientMs", 1),
    row("… memory of the process, kB each", "clientKb"),
    row("… CPU of all while they do nothing, ms per second", "idleCpuMsPerS", 1),
    ...NEAR_MS.map((nearMs) =>
      row(
        `three nodes at ${nearMs} ms, two at ${nearMs * FAR_FACTOR} ms: a pair, p50, ms`,
        `near${nearMs}`,
        1,
      )
    ),
    ...NODE_COUNTS.flatMap((count) => [
      row(`N = ${count}: a pair, p50, µs`, `p50Us${count}`),
      row(`… pairs per second, ${IN_FLIGHT} in flight`, `rate${count}`),
    ]),
  ]);
}

async function byNodes(
  worker: WorkerProcess,
  servers: readonly RedisServer[] & { urls: readonly string[] },
  durationMs: number,
): Promise<Figures> {
  const figures: Figures = {};
  for (const count of NODE_COUNTS) {
    await worker.open(servers.urls.slice(0, count));
    // Closing may have cut off a release that a quorum did not wait for.
    for (const server of servers) await server.command("FLUSHALL");
    await worker.measure("pairs", { count: 200 }); // the first ones connect
    const alone = await worker.measure("sequential", { durationMs });
    const many = await worker.measure("concurrent", { durationMs, inFlight: IN_FLIGHT });
    figures[`p50Us${count}`] = alone.p50Us!;
    figures[`rate${count}`] = many.pairsPerS!;
  }
  return figures;
}

async function byDistance(worker: WorkerProcess, { servers, durationMs }: Bench): Promise<Figures> {
  for (const server of servers) await server.command("FLUSHALL");
  await using stack = new AsyncDisposableStack();
  const proxies = await Promise.all(servers.urls.map((url) => startProxy(url)));
  for (const proxy of proxies) stack.use(proxy);
  await worker.open(proxies.map(({ address }) => address));
  const figures: Figures = {};
  for (const nearMs of NEAR_MS) {
    proxies.forEach((proxy, index) => {
      proxy.delay(index < 3 ? nearMs : nearMs * FAR_FACTOR, "replies");
    });
    const { p50Us } = await worker.measure("sequential", {
      durationMs: Math.max(durationMs, FAR_FACTOR * nearMs),
    });
    figures[`near${nearMs}`] = p50Us! / 1_000;
  }
  return figures;
}

async function manyLocks(worker: WorkerProcess, { servers }: Bench): Promise<Figures> {
  await worker.measure("keep", { count: KEPT_LOCKS, ttlMs: KEPT_TTL_MS });
  const before = await readsOf(servers);
  const figures = await worker.measure("hold", { durationMs: KEPT_MS });
  const reads = await readsOf(servers) - before;
  await worker.measure("letGo", {});
  return { ...figures, batched: figures.extensions! * servers.length / reads };
}

/**
 * In a process of its own, because memory that a process was given once is no growth the next time.
 */
async function manyClients({ servers, runtime }: Bench): Promise<Figures> {
  await using worker = new WorkerProcess("ours", runtime);
  await worker.open(servers.urls);
  const connected = await worker.measure("connectMany", { clients: CLIENTS });
  const idle = await worker.measure("idle", { durationMs: IDLE_MS });
  await worker.measure("disconnectMany", {});
  return { ...connected, ...idle };
}

/** How often the servers have read from a client since their start, all together. */
async function readsOf(servers: readonly RedisServer[]): Promise<number> {
  const texts = await Promise.all(servers.map((server) => server.command("INFO", "stats")));
  return texts.reduce<number>(
    (sum, text) => sum + Number(/^total_reads_processed:(\d+)/mu.exec(String(text))![1]),
    0,
  );
}
