/** Many who want one lock: what is sent for each, how fast it is handed on, and in which order. */

import { once } from "node:events";
import { createConnection } from "node:net";
import { connect } from "../../../src/redis/mod.ts";
import type { Figures } from "../measures.ts";
import { median } from "../statistics.ts";
import { printTable, Samples } from "../table.ts";
import { WorkerProcess } from "../worker_process.ts";
import { type Bench, inRounds } from "./scenario.ts";

const CALLS = 100;
const CALLS_MANY = 300;
const WORK_MS = 20;
/** Processes that want one lock, and how often each. */
const PROCESSES = 20;
const TURNS = 10;
/** Hand-offs between two clients, of which the median is taken. */
const HAND_OFFS = 60;
/** Round trips of a bare connection, of which the median is taken. */
const ROUND_TRIPS = 100;
/** The published example of a lock that polls: so many requests in the first 300 ms of one job. */
const EXAMPLE_MS = 300;
const EXAMPLE_REQUESTS = 594;
/** Resources that one client waits for at a time. */
const STANDING_BY = 1_000;
/** Rounds here, each of which takes some ten seconds. */
const ROUNDS_MAX = 3;

/** Measures 100 callers of one resource, in one client and in 100. */
export async function waiting(bench: Bench): Promise<void> {
  const samples = new Samples();
  const rounds = Math.min(bench.rounds, ROUNDS_MAX);
  await inRounds({ ...bench, rounds }, samples, "waiting", async (worker) => {
    if (worker.name === "floor") return { roundTripUs: await roundTripUs(bench) };
    try {
      return await measured(bench, worker);
    } finally {
      for (const server of bench.servers) await server.command("FLUSHALL");
      await worker.measure("disperse", {});
      await worker.open(bench.servers.urls);
    }
  });
  samples.print(
    `${CALLS} callers of one resource, ${WORK_MS} ms work: commands sent per lock`,
    [
      { figure: "shared", title: "one client", digits: 1, absolute: true, goal: "≤ 11" },
      {
        figure: "first",
        title: "100 clients, first time",
        digits: 1,
        absolute: true,
        goal: "≤ 26",
      },
      { figure: "own", title: "100 clients", digits: 1, absolute: true, goal: "≤ 16" },
      { figure: "steady", title: "… steadily", digits: 1, absolute: true, goal: "≤ 15" },
      { figure: "many", title: "300 clients", digits: 1, absolute: true, goal: "≤ 16" },
    ],
  );
  samples.print("… the longest gap between a release and the next hold, ms", [
    {
      figure: "firstGap",
      title: "100 clients, first time",
      digits: 1,
      absolute: true,
      goal: "≤ 4 round trips",
    },
    { figure: "firstUsualGap", title: "19 of 20 within", digits: 1, absolute: true },
    {
      figure: "steadyGap",
      title: "100 clients, steadily",
      digits: 1,
      absolute: true,
      goal: "≤ 3 round trips",
    },
    { figure: "steadyUsualGap", title: "19 of 20 within", digits: 1, absolute: true },
  ]);
  samples.print("… with 100 clients: who got it, and when", [
    { figure: "got", title: "got it", absolute: true, goal: "100" },
    { figure: "outOfOrder", title: "out of order", absolute: true, goal: "few" },
    { figure: "total", title: "total, × the work", digits: 2, absolute: true, goal: "≤ 1.1" },
    {
      figure: "longestWait",
      title: "longest / median wait",
      digits: 2,
      absolute: true,
      goal: "≤ 2.2",
    },
    { figure: "handOffUs", title: "hand-off µs", absolute: true },
    { figure: "twoHandOffUs", title: "… between two, µs", absolute: true, goal: "≤ 700" },
    { figure: "roundTripUs", title: "bare round trip µs", absolute: true },
  ]);
  const ratio = samples.median("ours", "handOffUs") / samples.median("floor", "roundTripUs");
  console.log(`  hand-off of ours in round trips of a bare connection: ${ratio.toFixed(1)} (≤ 2)`);
  printTable(`The published example: ${CALLS} callers, 300 ms work, commands in the first 300 ms`, [
    ["", "commands", "to each node"],
    ["polling each 50 ms, one node", String(EXAMPLE_REQUESTS), String(EXAMPLE_REQUESTS)],
    ["ours, one client, five nodes", ...await example(bench, 0)],
    ["ours, 100 clients, five nodes", ...await example(bench, 1)],
  ]);
  printTable(`${PROCESSES} processes, one resource, ${TURNS} turns each, ${WORK_MS / 4} ms work`, [
    ["commands sent per lock", "asks in vain per lock", "total, × the work"],
    await processes(bench),
  ]);
  printTable(`One client waits for ${STANDING_BY} resources`, [
    ["bytes of heap each", "commands to line up, each", "subscriptions of both on a node"],
    await standBy(bench),
  ]);
}

async function measured(bench: Bench, worker: WorkerProcess): Promise<Figures> {
  const sent = async (calls: number, workMs: number, turns = 1) => {
    await resetCounts(bench);
    const figures = await worker.measure("contend", { calls, workMs, turns });
    return { ...figures, perLock: await commandsSent(bench, worker) / figures.locks! } as Figures;
  };
  await worker.measure("gather", { own: 0 });
  const shared = await sent(CALLS, WORK_MS);
  await worker.measure("gather", { own: 1, clients: CALLS });
  const first = await sent(CALLS, 1);
  const own = await sent(CALLS, WORK_MS);
  const steady = await sent(CALLS, 1, TURNS);
  const two = await worker.measure("handOff", { count: HAND_OFFS });
  let many = NaN;
  if (worker.name === "ours") {
    await worker.measure("disperse", {});
    await worker.measure("gather", { own: 1, clients: CALLS_MANY });
    await worker.measure("contend", { calls: CALLS_MANY, workMs: 0 });
    many = (await sent(CALLS_MANY, 1)).perLock!;
  }
  return {
    shared: shared.perLock!,
    first: first.perLock!,
    firstGap: first.longestGapMs!,
    firstUsualGap: first.usualGapMs!,
    own: own.perLock!,
    steady: steady.perLock!,
    steadyGap: steady.longestGapMs!,
    steadyUsualGap: steady.usualGapMs!,
    many,
    got: own.got!,
    outOfOrder: own.outOfOrder!,
    total: own.totalMs! / (CALLS * WORK_MS),
    longestWait: own.longestWait!,
    handOffUs: own.handOffUs!,
    twoHandOffUs: two.handOffUs!,
  };
}

/** What it costs processes that share no client to take one lock in turn. */
async function processes(bench: Bench): Promise<string[]> {
  if (!bench.workers.some(({ name }) => name === "ours")) return ["–", "–", "–"];
  await using stack = new AsyncDisposableStack();
  const workers = Array.from({ length: PROCESSES }, () => {
    return stack.use(new WorkerProcess("ours", bench.runtime));
  });
  await Promise.all(workers.map((worker) => worker.open(bench.servers.urls)));
  const all = (count: number) =>
    Promise.all(
      workers.map((worker) => worker.measure("takeTurns", { count, workMs: WORK_MS / 4 })),
    );
  await all(2);
  await resetCounts(bench);
  const startMs = performance.now();
  await all(TURNS);
  const totalMs = performance.now() - startMs;
  const perLock = await commandsSent(bench, workers[0]!) / (PROCESSES * TURNS);
  return [
    perLock.toFixed(1),
    Math.max(0, perLock / bench.servers.length - 3).toFixed(2),
    (totalMs / (PROCESSES * TURNS * WORK_MS / 4)).toFixed(2),
  ];
}

/** What it costs one client to wait for many resources: heap, commands to line up, connections. */
async function standBy(bench: Bench): Promise<string[]> {
  const worker = bench.workers.find(({ name }) => name === "ours");
  if (!worker) return ["–", "–", "–"];
  await worker.measure("gather", { own: 1, clients: 2 });
  await worker.measure("handOff", { count: 2 });
  await resetCounts(bench);
  const standing = worker.measure("standBy", { count: STANDING_BY, settleMs: 1_000 });
  await new Promise((resolve) => setTimeout(resolve, 900));
  const commands = await commandsSent(bench, worker);
  const list = String(await bench.servers[0]!.command("CLIENT", "LIST", "TYPE", "pubsub"));
  const { bytes } = await standing;
  await worker.measure("disperse", {});
  return [
    String(Math.round(bytes!)),
    (commands / STANDING_BY - bench.servers.length).toFixed(1),
    String(list.split("\n").filter((line) => line !== "").length),
  ];
}

/** Commands sent, to all nodes and to each, while the first of all callers works. */
async function example(bench: Bench, own: number): Promise<string[]> {
  const worker = bench.workers.find(({ name }) => name === "ours");
  if (!worker) return ["–", "–"];
  await worker.measure("gather", { own, clients: CALLS });
  await worker.measure("contend", { calls: CALLS, workMs: 0 });
  await resetCounts(bench);
  const contending = worker.measure("contend", {
    calls: CALLS,
    firstWorkMs: EXAMPLE_MS + 100,
    workMs: 0,
  });
  await new Promise((resolve) => setTimeout(resolve, EXAMPLE_MS));
  const commands = await commandsSent(bench, worker);
  await contending;
  await worker.measure("disperse", {});
  return [String(commands), String(Math.round(commands / bench.servers.length))];
}

/** Has the servers log every command; more than any of the contenders sends in one measurement. */
async function resetCounts({ servers }: Bench): Promise<void> {
  for (const server of servers) {
    await server.command("CONFIG", "SET", "slowlog-max-len", "200000");
    await server.command("CONFIG", "SET", "slowlog-log-slower-than", "0");
    await server.command("SLOWLOG", "RESET");
  }
}

/**
 * Commands about locks that clients have sent to all servers. What scripts call is logged, too: of
 * ours, no script sets a key with NX, and peers set keys in scripts alone.
 */
async function commandsSent({ servers }: Bench, { name }: WorkerProcess): Promise<number> {
  let total = 0;
  for (const server of servers) {
    await server.command("CONFIG", "SET", "slowlog-log-slower-than", "-1");
    await using client = await connect(server.url);
    const entries = await client.send(["SLOWLOG", "GET", -1]) as LogEntry[];
    total += entries.filter(([, , , [command, ...args]]) =>
      /^eval(?:sha)?$/iu.test(command!) ||
      name === "ours" && command === "SET" && args.includes("NX")
    ).length;
  }
  return total;
}

/** What a server logs of a command. */
type LogEntry = [id: number, atS: number, tookUs: number, args: string[]];

async function roundTripUs({ servers }: Bench): Promise<number> {
  const { port, hostname } = new URL(servers.urls[0]!);
  const socket = createConnection({ port: Number(port), host: hostname, noDelay: true });
  await once(socket, "connect");
  const samplesUs: number[] = [];
  for (let index = 0; index < ROUND_TRIPS; index++) {
    // as idle as between two hand-offs
    await new Promise((resolve) => setTimeout(resolve, WORK_MS));
    const startMs = performance.now();
    socket.write("PING\r\n");
    await once(socket, "data");
    samplesUs.push((performance.now() - startMs) * 1_000);
  }
  socket.destroy();
  return median(samplesUs);
}
