/**
 * A Redis server in memory: its state, and one session per connection.
 *
 * @module
 */
import { type Clock, systemClock } from "../../time/clock.ts";
import { systemRandom } from "../../time/random.ts";
import type { Connect } from "../../transport/transport.ts";
import type { ServerState } from "../commands/command.ts";
import { CommandClock } from "./command_clock.ts";
import { Keyspace } from "./keyspace.ts";
import { type MemorySession, type MemorySessionOptions, ServerSession } from "./memory_session.ts";
import { MemoryTransport } from "./memory_transport.ts";
import { utf8ByteString } from "./replies.ts";
import { checkOptions } from "../../validate.ts";

/** The number of databases. */
const DATABASES = 16;
/** The names of all options of a server. */
export const MEMORY_REDIS_OPTION_NAMES: readonly string[] = ["clock", "password"];

/** Options of {@linkcode MemoryRedis} and of {@linkcode startNodes}. */
export interface MemoryRedisOptions {
  /**
   * Source of time; keys expire by its wall clock.
   *
   * @default {the clock of the runtime}
   */
  clock?: Clock | undefined;
  /**
   * Password that clients must log in with, as the user `default` or without a user name.
   *
   * @default {no login is required}
   */
  password?: string | undefined;
}

/** Options of {@linkcode MemoryRedis.restart}. */
export interface MemoryRestartOptions {
  /**
   * Whether the server keeps its keys, except those that have expired.
   *
   * @default {false}
   */
  keepData?: boolean | undefined;
}

/**
 * A server in memory that speaks RESP2 and RESP3, for tests. Its replies are byte for byte those of
 * Redis 7.0 for what this library and other lock libraries send. It supports these commands:
 *
 * - keys: GET, MGET, SET (NX, XX, PX, EX), DEL, EXISTS, PTTL, PEXPIRE, INCR, DECR, TYPE
 * - SCAN, in another order, with other cursors
 * - sorted sets: ZADD (NX, XX), ZREM, ZREMRANGEBYSCORE, ZCARD, ZRANGE (by rank, WITHSCORES), ZRANK,
 *   ZSCORE
 * - scripts: EVAL, EVALSHA and SCRIPT (LOAD, EXISTS, FLUSH), for every script in the subset of Lua
 *   that lock scripts use
 * - channels: PUBLISH, SUBSCRIBE, UNSUBSCRIBE, PUBSUB NUMSUB
 * - the connection: HELLO (2 and 3, with AUTH and SETNAME), PING, AUTH, SELECT, CLIENT (ID,
 *   GETNAME, SETNAME), RESET, QUIT
 * - the server: TIME, FLUSHALL, INFO and CONFIG GET, these two with the fields that lock libraries
 *   read
 *
 * It replies with an error to every other command.
 *
 * Scripts are compiled from their sources, which may have these parts of Lua 5.1:
 *
 * - all statements, but `for … in` only with `ipairs` and with `pairs` of a list, and no global
 *   variables
 * - functions, but without `...`, and not created in a loop
 * - `assert`, `error`, `tonumber`, `tostring`, `type`, `unpack`
 * - `math.abs`, `ceil`, `floor`, `huge`, `max`, `min`
 * - `string.find`, `format` (`%s`, `%d`, `%.0f`), `len`, `lower`, `match`, `sub`, `upper`
 * - `table.concat`, `insert` and `remove` (at the end)
 * - `redis.call`, `pcall`, `error_reply`, `log` (does nothing), `replicate_commands`,
 *   `status_reply`
 *
 * Anything else, and what depends on the order of a table's fields or on the length of a table with
 * holes, is an error that names the line and the construct: so a script is never answered otherwise
 * than by Redis. A script may have 64 KiB and take five million steps.
 *
 * It has no timer and no socket, so it need not be closed. {@linkcode startNodes} starts servers on
 * the network.
 *
 * @example Three nodes without any socket
 * ```ts
 * import { assert } from "@std/assert";
 * import { createRedlock } from "@hasp/redlock";
 * import { type Connect } from "@hasp/redlock/redis";
 * import { MemoryRedis } from "@hasp/redlock/testing";
 *
 * const hosts = ["node-1", "node-2", "node-3"];
 * const servers = new Map(hosts.map((host) => [host, new MemoryRedis()]));
 * const connect: Connect = (target, options) => {
 *   if (target.kind !== "tcp") throw new TypeError("Only TCP addresses are served");
 *   return servers.get(target.hostname)!.connect(target, options);
 * };
 * await using redlock = createRedlock(hosts.map((host) => `redis://${host}`), { connect });
 * await using lock = await redlock.acquire("invoice:42");
 * assert(lock.held);
 * ```
 */
export class MemoryRedis {
  readonly #state: ServerState;
  /** The id of the last connection since the start. */
  #lastId = 0;

  /**
   * Creates a server without keys.
   *
   * @param options The clock and the password.
   * @throws {TypeError} If an option is unknown.
   */
  constructor(options: MemoryRedisOptions = {}) {
    checkOptions("create server", options, MEMORY_REDIS_OPTION_NAMES);
    const { clock: wallClock = systemClock, password } = options;
    const clock = new CommandClock(wallClock);
    this.#state = {
      clock,
      password: password === undefined ? undefined : utf8ByteString(password),
      databases: Array.from({ length: DATABASES }, () => new Keyspace(clock)),
      scripts: new Map(),
      connections: new Set(),
      isFull: false,
      runId: systemRandom.value(),
      startedAtMs: clock.wallMs(),
    };
  }

  /**
   * Opens a connection, to use the server with another transport.
   *
   * @param options Callbacks for messages and for the end of the session.
   * @returns The connection.
   */
  session(options: MemorySessionOptions = {}): MemorySession {
    return new ServerSession(this.#state, ++this.#lastId, options);
  }

  /**
   * Connects to this server inside the process, whatever the target is: a value for the option
   * `connect` of a client.
   */
  readonly connect: Connect = (_target, { signal }) => {
    if (signal.aborted) return Promise.reject(signal.reason);
    return Promise.resolve(new MemoryTransport((options) => this.session(options)));
  };

  /**
   * Restarts the server, as after a crash: closes every connection, changes the `run_id`, and
   * deletes all scripts, and all keys unless they are to be kept.
   *
   * @param options Whether to keep the keys.
   */
  restart({ keepData = false }: MemoryRestartOptions = {}): void {
    for (const { close } of [...this.#state.connections]) close();
    this.#lastId = 0;
    this.#state.scripts.clear();
    this.#state.runId = systemRandom.value();
    this.#state.startedAtMs = this.#state.clock.wallMs();
    if (!keepData) this.flush();
  }

  /** Deletes every key of every database, as `FLUSHALL` does; connections and scripts stay. */
  flush(): void {
    for (const keys of this.#state.databases) keys.clear();
  }

  /**
   * Fills the memory of the server: it then refuses every command that may need more, as a Redis
   * does that has reached `maxmemory` with the policy `noeviction`. A script goes on if it has
   * changed something before. Stays over a restart.
   *
   * @param isFull Whether the memory is full; `false` makes room again.
   */
  fill(isFull: boolean = true): void {
    this.#state.isFull = isFull;
  }
}
