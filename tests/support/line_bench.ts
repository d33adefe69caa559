/**
 * A server in memory on which some wait for keys, asked by the library's scripts.
 *
 * @module
 */
import type { Clock } from "../../src/time/clock.ts";
import { encodeCommand } from "../../src/redis/encoder.ts";
import { ACQUIRE_OR_WAIT } from "../../src/redis_node/scripts/acquire.ts";
import { LEAVE } from "../../src/redis_node/scripts/queue.ts";
import { RELEASE } from "../../src/redis_node/scripts/release.ts";
import type { Script } from "../../src/redis_node/scripts/script.ts";
import { MemoryRedis, type MemorySession } from "../../src/testing/mod.ts";

/** What a command says of a key of another type. */
export const WRONGTYPE = "WRONGTYPE Operation against a key holding the wrong kind of value";

const latin1 = new TextDecoder("latin1");

/** A server on which some wait, and what the listeners among them hear. */
export class LineBench {
  nowMs = 1_700_000_000_000;
  readonly redis = new MemoryRedis({
    clock: { monotonicMs: () => this.nowMs, wallMs: () => this.nowMs } as Clock,
  });
  readonly session: MemorySession = this.redis.session();
  /** Who was told, and what. */
  readonly told: string[] = [];

  /** Clients with these ids listen. */
  constructor(...ids: string[]) {
    for (const id of ids) {
      const onMessage = (bytes: Uint8Array) => {
        const words = new TextDecoder().decode(bytes).split("\r\n");
        this.told.push(`${words[4].slice("hasp:wake:".length)} < ${words[6]}`);
      };
      this.redis.session({ onMessage }).push(encodeCommand(["SUBSCRIBE", `hasp:wake:${id}`]));
    }
  }

  ask(...command: (string | number)[]): string {
    return latin1.decode(this.session.push(encodeCommand(command))).trimEnd();
  }

  #call({ source }: Script, keys: string, ...args: (string | number)[]): string {
    const names = keys.split(" ");
    return this.ask("EVAL", source, names.length, ...names, ...args);
  }

  /** Asks for keys or a place: 1, or the life of the key in the way, how many are ahead, and how many there are. */
  acquire(keys: string, entry: string, claim: 0 | 1 | 2 = 0, ttlMs = 1_000): string {
    const reply = this.#call(ACQUIRE_OR_WAIT, keys, "v", ttlMs, entry, claim);
    return reply.replace(/^\*3\r\n/u, "").replaceAll(/^:/gmu, "").replaceAll("\r\n", " ");
  }

  release(keys: string, entry?: string, what?: "leave" | "stay"): string {
    return this.#call(RELEASE, keys, "v", ...(entry === undefined ? [] : [entry, what!]));
  }

  leave(keys: string, entry: string): string {
    return this.#call(LEAVE, keys, entry);
  }

  /** Puts entries into the line for a key. */
  lineUp(key: string, ...entries: string[]): void {
    this.ask("RPUSH", `{${key}}:waiters`, ...entries);
  }

  /** The line for a key. */
  line(key: string): string[] {
    const words = this.ask("LRANGE", `{${key}}:waiters`, 0, -1).split("\r\n");
    return words.slice(1).filter((_, index) => index % 2 === 1);
  }

  /** Which of these keys are there. */
  standing(...keys: string[]): string[] {
    return keys.filter((key) => this.ask("EXISTS", key) === ":1");
  }
}
