/**
 * A Redis server in memory: its state, and one session for each of its connections.
 *
 * @module
 */
import { type Clock, systemClock } from "../../time/clock.ts";
import { systemRandom } from "../../time/random.ts";
import type { Connect } from "../../transport/transport.ts";
import type { ServerState } from "../commands/command.ts";
import { Keyspace } from "./keyspace.ts";
import { type MemorySession, type MemorySessionOptions, ServerSession } from "./memory_session.ts";
import { MemoryTransport } from "./memory_transport.ts";
import { utf8ByteString } from "./replies.ts";

/** How many databases there are. */
const DATABASES = 16;

/** What a {@linkcode MemoryRedis} can be given. */
export interface MemoryRedisOptions {
  /** Where time comes from; keys expire by its wall clock. The runtime's own clock by default. */
  clock?: Clock;
  /** The password that clients must log in with, as the user `default` or as none; left out: none is needed. */
  password?: string;
}

/** What a {@linkcode MemoryRedis.restart} leaves as it was. */
export interface MemoryRestartOptions {
  /** Whether the keys are still there afterwards, those whose time is over excepted. `false` by default. */
  keepData?: boolean;
}

/**
 * A RESP2 server in memory, for tests. It answers what this library and other lock libraries send byte for byte as
 * Redis 7.0 does, and whatever else it knows too:
 *
 * - keys: GET, SET (NX, XX, PX, EX), DEL, EXISTS, PTTL, PEXPIRE, INCR
 * - lists: LPUSH, RPUSH, LPOP, RPOP, LLEN, LRANGE, LREM, LPOS
 * - scripts: EVAL, EVALSHA and SCRIPT (LOAD, EXISTS, FLUSH), for the scripts of this library and of node-redlock 4 and 5
 * - channels: PUBLISH, SUBSCRIBE, UNSUBSCRIBE
 * - the connection: PING, AUTH, SELECT, CLIENT (ID, GETNAME, SETNAME), RESET, QUIT
 * - the server: TIME, FLUSHALL, INFO and CONFIG GET, these two with the fields that lock libraries read
 *
 * Every other command is unknown to it, HELLO too, as to a server that speaks RESP2 alone.
 *
 * It holds no timer and no socket, so there is nothing to close. {@linkcode startNodes} puts it on the network.
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
  readonly #clock: Clock;
  readonly #password: string | undefined;
  readonly #sessions: Set<MemorySession> = new Set();
  #state: ServerState;
  #connections = 0;

  /**
   * Makes a server without any key.
   *
   * @param options Its clock and password.
   */
  constructor(options: MemoryRedisOptions = {}) {
    const { clock = systemClock, password } = options;
    this.#clock = clock;
    this.#password = password === undefined ? undefined : utf8ByteString(password);
    this.#state = this.#freshState();
  }

  /**
   * Opens a connection, for a transport of your own.
   *
   * @param options Where to hand what comes unasked.
   */
  session(options: MemorySessionOptions = {}): MemorySession {
    const session: MemorySession = new ServerSession(this.#state, ++this.#connections, {
      onMessage: options.onMessage?.bind(options),
      onEnd: () => {
        this.#sessions.delete(session);
        options.onEnd?.();
      },
    });
    this.#sessions.add(session);
    return session;
  }

  /** Connects to this server inside the process, whatever the target; for the client's option of that name. */
  readonly connect: Connect = (_target, { signal }) => {
    if (signal.aborted) return Promise.reject(signal.reason);
    return Promise.resolve(new MemoryTransport((options) => this.session(options)));
  };

  /**
   * Ends every connection and starts anew, with another `run_id`, without any script, and without any key unless
   * they are to be kept: what a client sees of a server that crashed and came back.
   *
   * @param options Whether the keys are kept.
   */
  restart({ keepData = false }: MemoryRestartOptions = {}): void {
    for (const session of [...this.#sessions]) session.close();
    this.#connections = 0;
    this.#state = this.#freshState(keepData ? this.#state.databases : undefined);
  }

  /** Deletes every key of every database, as `FLUSHALL` does; connections and scripts stay. */
  flush(): void {
    for (const keys of this.#state.databases) keys.clear();
  }

  #freshState(databases?: readonly Keyspace[]): ServerState {
    const clock = this.#clock;
    return {
      clock,
      password: this.#password,
      databases: databases ?? Array.from({ length: DATABASES }, () => new Keyspace(clock)),
      scripts: new Set(),
      runId: systemRandom.value(),
      startedAtMs: clock.wallMs(),
    };
  }
}
