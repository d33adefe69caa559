/**
 * A client for a server in memory that does what clients do to commands: delays, loses, repeats and
 * reorders them.
 */
import { connect, type RedisClient } from "../../src/redis/mod.ts";
import { MemoryRedis, type MemoryRedisOptions } from "../../src/testing/mod.ts";

/** What becomes of one command. */
export interface Fate {
  /** How often the server executes it before the reply. @default 1 */
  readonly times?: number;
  /** Whether the reply is lost: the call settles by its signal alone. @default false */
  readonly loses?: boolean;
  /** What the call rejects with instead. */
  readonly error?: Error | undefined;
  /** The command goes out when this resolves. */
  readonly after?: Promise<unknown>;
}

/** See the module. */
export class FakeClient implements AsyncDisposable {
  /** The server. */
  readonly server: MemoryRedis;
  /** The commands, in the order in which they were given to the client. */
  readonly sent: string[][] = [];
  /** Decides what becomes of a command; the default lets it pass. */
  fate: (args: readonly string[]) => Fate = () => ({});
  readonly #client: RedisClient;
  #pending = 0;
  /** Most commands that were under way at once. */
  pendingMax = 0;

  constructor(server: MemoryRedis, client: RedisClient) {
    this.server = server;
    this.#client = client;
  }

  /** Connects to a new server. */
  static async open(options?: MemoryRedisOptions): Promise<FakeClient> {
    const server = new MemoryRedis(options);
    return new FakeClient(server, await connect("redis://memory", { connect: server.connect }));
  }

  /** The function for `commandNode`. */
  readonly send = async (args: string[], signal?: AbortSignal): Promise<unknown> => {
    this.sent.push(args);
    this.pendingMax = Math.max(this.pendingMax, ++this.#pending);
    try {
      const { times = 1, loses = false, error, after } = this.fate(args);
      if (after) await after;
      let reply: unknown;
      for (let time = 0; time < times; time++) reply = await this.#client.send(args);
      if (error) throw error;
      if (loses) await new Promise((_, reject) => signal?.addEventListener("abort", reject));
      return reply;
    } finally {
      this.#pending--;
    }
  };

  /** The commands of one name. */
  named(name: string): string[][] {
    return this.sent.filter(([first]) => first === name);
  }

  /** What the server has under a key. */
  value(key: string): Promise<unknown> {
    return this.#client.send(["GET", key]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#client.close();
  }
}
