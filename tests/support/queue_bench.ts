/**
 * A server in memory with queues for keys, asked by the library's scripts.
 *
 * @module
 */
import type { Clock } from "../../src/time/clock.ts";
import { encodeCommand } from "../../src/redis/encoder.ts";
import { ACQUIRE_OR_WAIT } from "../../src/redis_node/scripts/acquire.ts";
import { LEAVE, queueOf } from "../../src/redis_node/scripts/queue.ts";
import { RELEASE, RELEASE_QUEUED } from "../../src/redis_node/scripts/release.ts";
import type { Script } from "../../src/redis_node/scripts/script.ts";
import { MemoryRedis, type MemorySession } from "../../src/testing/mod.ts";

/** The error of a command on a key of another type. */
export const WRONGTYPE = "WRONGTYPE Operation against a key holding the wrong kind of value";

/** A score of tickets of these tests, in microseconds: a little before the server's time. */
export const SCORE = 1_699_999_000_000_000;

const latin1 = new TextDecoder("latin1");

/** The reply of an acquisition: 1, 0 or an error; or a position in the queue. */
export type Position = readonly [pttl: number, ahead: number, length: number, score: number];

/** A server, some of whose tickets' clients are subscribed, and what these hear. */
export class QueueBench {
  nowMs = 1_700_000_000_000;
  readonly redis = new MemoryRedis({
    clock: { monotonicMs: () => this.nowMs, wallMs: () => this.nowMs } as Clock,
  });
  readonly session: MemorySession = this.redis.session();
  /** The messages that came, in order. */
  readonly messages: string[] = [];

  /** Clients with these ids are subscribed. */
  constructor(...ids: string[]) {
    for (const id of ids) {
      const onMessage = (bytes: Uint8Array) => {
        this.messages.push(new TextDecoder().decode(bytes).split("\r\n")[6]);
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

  /** Asks for keys, separated by blanks, with a ticket. */
  acquire(keys: string, ticket: string, score = SCORE, overdue = false): string | Position {
    const reply = this.#call(ACQUIRE_OR_WAIT, keys, "v", 1_000, ticket, overdue ? 1 : 0, score);
    const numbers = [...reply.matchAll(/^:(-?\d+)/gmu)].map(([, number]) => Number(number));
    if (numbers.length < 5) return reply;
    if (numbers[4] !== this.nowMs * 1_000) throw new Error(`the node's time is ${numbers[4]}`);
    return numbers.slice(0, 4) as unknown as Position;
  }

  /** Releases keys; with a ticket that leaves, or with its score stays. */
  release(keys: string, ticket?: string, score?: number): string {
    const args = [ticket, score].filter((arg) => arg !== undefined);
    const script = keys.includes(" ") || args.length > 0 ? RELEASE_QUEUED : RELEASE;
    return this.#call(script, keys, "v", ...args);
  }

  leave(keys: string, ticket: string): string {
    return this.#call(LEAVE, keys, ticket);
  }

  /** Puts tickets into the queue for a key, a microsecond apart. */
  enqueue(key: string, ...tickets: string[]): void {
    const pairs = tickets.flatMap((ticket, index) => [SCORE + index, ticket]);
    this.ask("ZADD", queueOf(key), ...pairs);
  }

  /** The tickets in the queue for a key. */
  queue(key: string): string[] {
    const words = this.ask("ZRANGE", queueOf(key), 0, -1).split("\r\n");
    return words.slice(1).filter((_, index) => index % 2 === 1);
  }

  /** Which of these keys are there. */
  standing(...keys: string[]): string[] {
    return keys.filter((key) => this.ask("EXISTS", key) === ":1");
  }
}
