/**
 * What people take in place of this library, beside it: etcd and PostgreSQL, each on this machine
 * and with a client of its own. What is not installed is left out.
 *
 * All of them are one hop of loopback away, which hides what distance would cost. They promise
 * different things after a crash: etcd and rows of PostgreSQL are on disk before a lock is granted,
 * advisory locks and Redis without persistence are in memory.
 *
 * @module
 */

import { join } from "node:path";
import { createRedlock } from "../../../mod.ts";
import { reservePort } from "../../support/ports.ts";
import { startServers } from "../../support/servers.ts";
import type { Contender } from "../contenders/contender.ts";
import { measures } from "../measures.ts";
import { Samples } from "../table.ts";
import type { Bench } from "./scenario.ts";

/** Locks in flight at which throughput is measured. */
const IN_FLIGHT = 100;
/** Connections that PostgreSQL gets from its client, which sends several queries on each. */
const CONNECTIONS = 10;
/** How long a server may take to start, in milliseconds. */
const START_MS = 30_000;
const TTL_S = 30;

/** Something that locks: a resource is locked and unlocked. */
interface Engine extends AsyncDisposable {
  readonly name: string;
  pair(resource: string): Promise<void>;
}

/** Measures what is installed. */
export async function engines(bench: Bench): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir({ prefix: "hasp-bench-" });
  stack.defer(() => Deno.remove(folder, { recursive: true }));
  const running: Engine[] = [];
  for (const start of [() => ours(3), () => ours(5), () => etcd(folder), ...postgres(folder)]) {
    try {
      running.push(stack.use(await start()));
    } catch (error) {
      console.error(`Left out: ${error instanceof Error ? error.message : error}`);
    }
  }
  const samples = new Samples(running[0]?.name);
  for (const engine of running) await once(engine, bench.durationMs); // lets its code be compiled
  for (let round = 0; round < bench.rounds; round++) {
    for (let index = 0; index < running.length; index++) {
      const engine = running[(index + round) % running.length]!;
      samples.add(engine.name, await once(engine, bench.durationMs));
    }
  }
  samples.print(`A lock and its end, on this machine (ratio to ${running[0]?.name})`, [
    { figure: "p50Us", title: "one at a time, p50 µs" },
    { figure: "rate", title: `pairs/s, ${IN_FLIGHT} in flight` },
  ]);
}

async function once(engine: Engine, durationMs: number) {
  const contender = engine as Partial<Contender> as Contender; // nothing else of it is asked
  const { p50Us } = await measures.sequential!(contender, { durationMs });
  const { pairsPerS } = await measures.concurrent!(contender, { durationMs, inFlight: IN_FLIGHT });
  return { p50Us: p50Us!, rate: pairsPerS! };
}

async function ours(count: 3 | 5): Promise<Engine> {
  const servers = await startServers(count);
  const redlock = createRedlock(servers.urls);
  return {
    name: `Hasp, ${count} nodes`,
    async pair(resource) {
      const lock = await redlock.acquire(resource, { ttlMs: 1_000 * TTL_S });
      await lock.release();
    },
    async [Symbol.asyncDispose]() {
      await redlock.close();
      await servers[Symbol.asyncDispose]();
    },
  };
}

/**
 * Three members of etcd, asked through the JSON gateway of the first; a lock is a key with the
 * lease of its client.
 */
async function etcd(folder: string): Promise<Engine> {
  const ports = Array.from({ length: 6 }, freePort);
  const members = [0, 1, 2].map((index) => ({
    name: `m${index}`,
    client: `http://127.0.0.1:${ports[2 * index]}`,
    peer: `http://127.0.0.1:${ports[2 * index + 1]}`,
  }));
  const cluster = members.map(({ name, peer }) => `${name}=${peer}`).join(",");
  const stack = new AsyncDisposableStack();
  for (const { name, client, peer } of members) {
    start(stack, "etcd", [
      ...["--name", name, "--data-dir", join(folder, name), "--initial-cluster", cluster],
      ...["--listen-client-urls", client, "--advertise-client-urls", client],
      ...["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer],
      ...["--log-level", "error"],
    ]);
  }
  const ask = async (path: string, body: object) => {
    const response = await fetch(`${members[0]!.client}/v3/${path}`, {
      method: "POST",
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`etcd answers ${response.status}`);
    return await response.json();
  };
  const { ID: lease } = await eventually(() => ask("lease/grant", { TTL: TTL_S * 100 }));
  return {
    name: "etcd, 3 members, on disk",
    async pair(resource) {
      const key = btoa(resource);
      const { succeeded } = await ask("kv/txn", {
        compare: [{ key, target: "CREATE", result: "EQUAL", create_revision: "0" }],
        success: [{ request_put: { key, value: key, lease } }],
      });
      if (!succeeded) throw new Error(`"${resource}" is held`);
      await ask("kv/deleterange", { key });
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** Advisory locks of one PostgreSQL server, and rows of a table with a primary key. */
function postgres(folder: string): (() => Promise<Engine>)[] {
  const server = Promise.withResolvers<PostgresServer>();
  server.promise.catch(() => {}); // it is awaited below
  return [
    async () => {
      try {
        server.resolve(await startPostgres(folder));
      } catch (error) {
        server.reject(error);
      }
      const { sql, stop } = await server.promise;
      const sessions = await Promise.all(Array.from({ length: CONNECTIONS }, () => sql.reserve()));
      let next = 0;
      return {
        name: "PostgreSQL, advisory locks",
        async pair(resource) {
          const session = sessions[next++ % CONNECTIONS]!; // which has the lock, and must end it
          const [row] =
            await session`select pg_try_advisory_lock(hashtextextended(${resource}, 0)) as ok`;
          if (!row!.ok) throw new Error(`"${resource}" is held`);
          await session`select pg_advisory_unlock(hashtextextended(${resource}, 0))`;
        },
        [Symbol.asyncDispose]: stop,
      };
    },
    async () => {
      const { rows } = await server.promise;
      await rows`create table locks (name text primary key, holder text not null)`;
      return {
        name: "PostgreSQL, rows, on disk",
        async pair(resource) {
          const taken = await rows`
            insert into locks values (${resource}, 'me') on conflict do nothing returning 1`;
          if (taken.length !== 1) throw new Error(`"${resource}" is held`);
          await rows`delete from locks where name = ${resource} and holder = 'me'`;
        },
        [Symbol.asyncDispose]: () => Promise.resolve(),
      };
    },
  ];
}

type Sql = ReturnType<typeof import("postgres")>;

interface PostgresServer {
  /** For sessions with advisory locks, and for rows. */
  readonly sql: Sql;
  readonly rows: Sql;
  stop(): Promise<void>;
}

async function startPostgres(folder: string): Promise<PostgresServer> {
  const programs = await postgresPrograms();
  const data = join(folder, "postgres");
  const port = freePort();
  const isRoot = Deno.uid() === 0; // as which PostgreSQL does not run
  const asUser = isRoot
    ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    : [];
  await Deno.mkdir(data);
  if (isRoot) {
    await run(["chmod", "o+x", folder]);
    await run(["chown", "postgres", data]);
  }
  await run([...asUser, join(programs, "initdb"), "-D", data, "-U", "bench", "-A", "trust"]);
  const stack = new AsyncDisposableStack();
  const args = ["-D", data, "-p", String(port), "-h", "127.0.0.1", "-k", ""];
  const [program, ...words] = [...asUser, join(programs, "postgres"), ...args];
  start(stack, program!, words, "SIGINT");
  const { default: connect } = await import("postgres");
  const client = () =>
    connect({ host: "127.0.0.1", port, user: "bench", database: "postgres", max: CONNECTIONS });
  const [sql, rows] = [client(), client()];
  await eventually(() => sql`select 1`);
  return {
    sql,
    rows,
    async stop() {
      await Promise.all([sql.end({ timeout: 1 }), rows.end({ timeout: 1 })]);
      await stack.disposeAsync();
    },
  };
}

/** Where the programs of PostgreSQL are: Debian does not put them on the path. */
async function postgresPrograms(): Promise<string> {
  const base = "/usr/lib/postgresql";
  const versions = await Array.fromAsync(Deno.readDir(base)).catch(() => []);
  const newest = versions.map(({ name }) => Number(name)).sort((one, other) => other - one)[0];
  if (newest === undefined) throw new Error(`PostgreSQL is not installed in ${base}`);
  return join(base, String(newest), "bin");
}

function freePort(): number {
  using reserved = reservePort();
  return reserved.port;
}

async function run(words: readonly string[]): Promise<void> {
  const [program, ...args] = words;
  const { success, stderr } = await new Deno.Command(program!, { args, stdout: "null" }).output();
  if (!success) throw new Error(`${program} fails: ${new TextDecoder().decode(stderr).trim()}`);
}

/** Starts a server, which ends with the stack. */
function start(
  stack: AsyncDisposableStack,
  program: string,
  args: readonly string[],
  signal: Deno.Signal = "SIGTERM",
): void {
  const options: Deno.CommandOptions = { args: [...args], stdout: "null", stderr: "null" };
  const child = new Deno.Command(program, options).spawn();
  stack.defer(async () => {
    child.kill(signal);
    await child.status;
  });
}

/** Repeats what fails until a server is ready. */
async function eventually<T>(act: () => Promise<T>): Promise<T> {
  const endMs = performance.now() + START_MS;
  for (;;) {
    try {
      return await act();
    } catch (error) {
      if (performance.now() > endMs) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
