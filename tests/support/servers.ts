/**
 * Real redis-server processes for tests and the bench: each on a free port of 127.0.0.1, in a
 * directory of its own, without persistence unless a `redis.conf` line asks for it, and stopped by
 * handle when the `await using` block ends, however it ends.
 *
 * @example Five nodes, one of them hung
 * ```ts
 * import { startServers } from "./servers.ts";
 *
 * await using servers = await startServers(5);
 * await servers[0].pause();
 * console.log(servers.urls, await servers[1].command("PING"));
 * ```
 */

import { setTimeout as delay } from "node:timers/promises";
import { findRedisServer } from "../../scripts/find_redis.ts";
import { restrictedUsers } from "./manual_user.ts";
import { reservePort } from "./ports.ts";
import { processStat } from "./processes.ts";
import { query, type QueryAddress, type QueryValue } from "./query.ts";

/** How long a server may take from its start to its first answer. */
const READY_WITHIN_MS = 30_000;

/** Pause between two looks at a server that is starting or stopping. */
const POLL_EVERY_MS = 3;

/** How many ports are tried before a start is given up. */
const PORTS_TRIED_MAX = 20;

/**
 * The user that {@linkcode RedisServer.command} logs in as where a password or users are
 * configured.
 */
const ADMIN_USER = "support-admin";
const ADMIN_PASSWORD = "support-admin";

/** Certificate files of a server that listens for TLS. */
export interface ServerTls {
  /** PEM file of the server's certificate. */
  certFile: string;
  /** PEM file of the certificate's private key. */
  keyFile: string;
  /**
   * PEM file of the authority that client certificates must come from; without it none is asked
   * for.
   */
  caFile?: string;
}

/** Options of {@linkcode startServer} and {@linkcode startServers}. */
export interface StartServerOptions {
  /** Further lines of `redis.conf`, for example `maxmemory 2mb` or `appendonly yes`. */
  config?: readonly string[];
  /** Password of the default user (`requirepass`); part of {@linkcode RedisServer.url} then. */
  password?: string;
  /** ACL rules, one user each, without the leading `user`: `alice on >secret ~lock:* &* +@all`. */
  users?: readonly string[];
  /** Listen on a Unix socket too, see {@linkcode RedisServer.socketPath}. @default false */
  unixSocket?: boolean;
  /** Listen for TLS on one more port, see {@linkcode RedisServer.tlsPort}. */
  tls?: ServerTls;
  /**
   * Rights of clients beside those of the manual's user, if they have no others (see
   * `manual_user.ts`): `+select` for addresses with a database, `+client|setname` for `clientName`,
   * or what a test itself sends over a client.
   */
  rights?: readonly string[];
  /** The server's executable. @default the one that `find_redis.ts` finds */
  executable?: string;
}

/** Options of {@linkcode RedisServer.restart}. */
export interface RestartOptions {
  /**
   * Start with the data the server had: saved first where it still runs, else what its own
   * persistence left on disk. @default false
   */
  keepData?: boolean;
}

/**
 * Several servers: an array of handles, a tuple where the count is a literal, disposed of as one.
 */
export type ServerGroup<Count extends number = number> = Servers<Count> & Group<RedisServer>;

type Servers<Count extends number, Tuple extends RedisServer[] = []> = number extends Count
  ? readonly RedisServer[]
  : Tuple["length"] extends Count ? Readonly<Tuple>
  : Servers<Count, [...Tuple, RedisServer]>;

class PortTakenError extends Error {}

const running = new Set<Deno.ChildProcess>();

// A process that ends without disposing (Deno.exit, an uncaught error) must not leave servers
// behind.
globalThis.addEventListener("unload", () => {
  for (const child of running) child.kill("SIGKILL");
});

let executable: Promise<string> | undefined;

/** One redis-server process. Made by {@linkcode startServer}. */
export class RedisServer implements AsyncDisposable {
  /** Address for clients, with the password of the default user where there is one. */
  readonly url: string;
  /** TCP port on 127.0.0.1; stays the same over restarts. */
  readonly port: number;
  /** TLS port on 127.0.0.1, where `tls` was asked for. */
  readonly tlsPort?: number;
  /** Path of the Unix socket, where `unixSocket` was asked for. */
  readonly socketPath?: string;
  /**
   * The server's own directory: `redis.conf`, `redis.log` and its data. Removed by {@linkcode
   * stop}.
   */
  readonly dir: string;
  /** Where tests have all rights. */
  readonly admin: QueryAddress;
  readonly #config: string;
  readonly #executable: string | undefined;
  readonly #ports = new DisposableStack();
  #child?: Deno.ChildProcess;
  #paused = false;

  /** Describes a server that is not started yet; tests call {@linkcode startServer} instead. */
  constructor(dir: string, options: StartServerOptions) {
    const { password, unixSocket = false, tls, config = [], rights } = options;
    const { port } = this.#ports.use(reservePort());
    const users = options.users ?? (password === undefined ? restrictedUsers(rights) : undefined);
    const guarded = password !== undefined || users !== undefined;
    this.#executable = options.executable;
    this.dir = dir;
    this.port = port;
    this.url = `redis://${
      password === undefined ? "" : `:${encodeURIComponent(password)}@`
    }127.0.0.1:${port}`;
    if (unixSocket) this.socketPath = `${dir}/redis.sock`;
    if (tls) this.tlsPort = this.#ports.use(reservePort()).port;
    this.admin = guarded ? { port, username: ADMIN_USER, password: ADMIN_PASSWORD } : { port };
    this.#config = [
      `port ${port}`,
      `bind 127.0.0.1`,
      `daemonize no`,
      `dir "${dir}"`,
      `save ""`,
      `appendonly no`,
      `loglevel warning`,
      `logfile "${dir}/redis.log"`,
      ...(unixSocket ? [`unixsocket "${this.socketPath}"`] : []),
      ...(tls ? tlsLines(tls, this.tlsPort!) : []),
      ...(guarded ? [`user ${ADMIN_USER} on >${ADMIN_PASSWORD} ~* &* +@all`] : []),
      ...(password === undefined ? [] : [`requirepass "${password}"`]),
      ...(users ?? []).map((rule) => `user ${rule}`),
      ...config,
    ].join("\n") + "\n";
  }

  /** Process id of the server. @throws {Error} If the server is not running. */
  get pid(): number {
    return this.#running().pid;
  }

  /**
   * Sends one command on a connection of its own and resolves to the reply.
   *
   * @throws {Error} If the reply is an error; its message is the reply's text.
   */
  command(...args: (string | number)[]): Promise<QueryValue> {
    return query(this.admin, args);
  }

  /** Calls per command since the start or {@linkcode resetCommandCounts}, names in lower case. */
  async commandCounts(): Promise<Record<string, number>> {
    const text = String(await this.command("INFO", "commandstats"));
    const counts: Record<string, number> = {};
    for (const [, name = "", calls] of text.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
      counts[name] = Number(calls);
    }
    return counts;
  }

  /** Sets all counts of {@linkcode commandCounts} to zero. */
  async resetCommandCounts(): Promise<void> {
    await this.command("CONFIG", "RESETSTAT");
  }

  /** Stops the process with its sockets left open (SIGSTOP): a hung node. Idempotent. */
  async pause(): Promise<void> {
    const { pid } = this.#running();
    Deno.kill(pid, "SIGSTOP");
    this.#paused = true;
    // A signal takes effect a moment after it was sent. Linux shows when; elsewhere no check is
    // made.
    while ((processStat(pid)?.state ?? "T") !== "T") await delay(POLL_EVERY_MS);
  }

  /** Lets a paused process go on (SIGCONT). Idempotent. */
  resume(): void {
    Deno.kill(this.pid, "SIGCONT");
    this.#paused = false;
  }

  /**
   * Kills the process at once (SIGKILL), as in a crash; {@linkcode restart} brings it back.
   * Idempotent.
   */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#child = undefined;
    this.#paused = false;
    try {
      child.kill("SIGKILL");
    } catch {
      // It ended by itself, after SHUTDOWN for example; its status is there to be read all the
      // same.
    }
    await child.status;
    running.delete(child);
  }

  /** Kills the server where it runs and starts it again on the same port. */
  async restart(options: RestartOptions = {}): Promise<void> {
    const { keepData = false } = options;
    if (keepData && this.#child !== undefined) {
      if (this.#paused) this.resume();
      await this.command("SAVE");
    }
    await this.kill();
    if (!keepData) await this.#removeData();
    await this.start();
  }

  /**
   * Starts a server that is not running. @throws {Error} If it does not answer in time, with its
   * log.
   */
  async start(): Promise<void> {
    const found = this.#executable ?? await (executable ??= findRedisServer());
    const file = `${this.dir}/redis.conf`;
    await Deno.writeTextFile(file, this.#config);
    const child = new Deno.Command(found, {
      args: [file],
      cwd: this.dir,
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    running.add(child);
    this.#child = child;
    try {
      await this.#ready(child);
    } catch (error) {
      await this.kill();
      throw error;
    } finally {
      if (!child.stderr.locked) await child.stderr.cancel();
    }
  }

  /** Kills the server, removes its directory and gives its ports back. Idempotent. */
  async stop(): Promise<void> {
    await this.kill();
    this.#ports.dispose();
    await Deno.remove(this.dir, { recursive: true }).catch((error) => {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    });
  }

  /** The same as {@linkcode stop}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #running(): Deno.ChildProcess {
    if (this.#child === undefined) throw new Error(`Server on port ${this.port} is not running`);
    return this.#child;
  }

  async #ready(child: Deno.ChildProcess): Promise<void> {
    let ended = false;
    child.status.then(() => ended = true);
    const giveUpAtMs = performance.now() + READY_WITHIN_MS;
    while (!ended && performance.now() < giveUpAtMs) {
      if (await this.#answers()) return;
      await delay(POLL_EVERY_MS);
    }
    const log = await Deno.readTextFile(`${this.dir}/redis.log`).catch(() => "");
    if (/address already in use|failed listening/i.test(log)) throw new PortTakenError(log);
    const output = ended ? await new Response(child.stderr).text() : "no answer in time";
    throw new Error(`Cannot start redis-server on port ${this.port}: ${output}${log}`);
  }

  /**
   * Whether a server answers on the port and is this one: the port may be another test's by now.
   */
  async #answers(): Promise<boolean> {
    try {
      await this.command("PING");
      const [, dir] = await this.command("CONFIG", "GET", "dir") as string[];
      return dir === this.dir;
    } catch {
      return false;
    }
  }

  async #removeData(): Promise<void> {
    for await (const entry of Deno.readDir(this.dir)) {
      if (entry.name === "redis.conf") continue;
      await Deno.remove(`${this.dir}/${entry.name}`, { recursive: true });
    }
  }
}

/**
 * Starts a redis-server and resolves once it answers.
 *
 * @throws {Error} If it does not start, with its own words.
 */
export async function startServer(options: StartServerOptions = {}): Promise<RedisServer> {
  for (let tried = 1;; tried++) {
    const dir = await Deno.realPath(await Deno.makeTempDir({ prefix: "redis-" }));
    const server = new RedisServer(dir, options);
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.stop();
      if (!(error instanceof PortTakenError) || tried === PORTS_TRIED_MAX) throw error;
    }
  }
}

/** Starts `count` servers at the same time. Where one fails to start the others are stopped. */
export async function startServers<Count extends number>(
  count: Count,
  options: StartServerOptions = {},
): Promise<ServerGroup<Count>> {
  const started = await Promise.allSettled(
    Array.from({ length: count }, () => startServer(options)),
  );
  const servers = started.filter((it) => it.status === "fulfilled").map((it) => it.value);
  const group = asGroup(servers, servers.map(({ url }) => url), (server) => server.stop());
  const failed = started.find((it) => it.status === "rejected");
  if (failed !== undefined) {
    await group[Symbol.asyncDispose]();
    throw failed.reason;
  }
  return group as unknown as ServerGroup<Count>;
}

/** What the servers' program says of itself, such as `Redis server v=7.0.15 …`. */
export async function serverVersion(): Promise<string> {
  const program = new Deno.Command(await findRedisServer(), { args: ["--version"] });
  return new TextDecoder().decode((await program.output()).stdout);
}

/** Several things that tests start: disposed of as one. */
export type Group<Item> = readonly Item[] & AsyncDisposable & {
  /** The addresses for clients, in the order of the items. */
  readonly urls: string[];
};

/** Makes a group, whose items all end at the same time. */
export function asGroup<Item>(
  items: Item[],
  urls: string[],
  end: (item: Item) => Promise<void>,
): Group<Item> {
  return Object.assign(items, {
    urls,
    async [Symbol.asyncDispose]() {
      await Promise.all(items.map(end));
    },
  });
}

function tlsLines(tls: ServerTls, port: number): string[] {
  return [
    `tls-port ${port}`,
    `tls-cert-file "${tls.certFile}"`,
    `tls-key-file "${tls.keyFile}"`,
    `tls-auth-clients ${tls.caFile === undefined ? "no" : "yes"}`,
    ...(tls.caFile === undefined ? [] : [`tls-ca-cert-file "${tls.caFile}"`]),
  ];
}
