/**
 * A server in memory on faked time, asked by commands and by the library's scripts.
 *
 * @module
 */
import type { Clock } from "../../src/time/clock.ts";
import { type CommandArgument, commandArguments } from "../../src/redis/command_arguments.ts";
import { commandBytes } from "./command_bytes.ts";
import { ACQUIRE_OR_WAIT } from "../../src/redis_node/scripts/acquire.ts";
import { ACQUIRE_COUNTED, RAISE } from "../../src/redis_node/scripts/fencing.ts";
import { queueOf } from "../../src/redis_node/scripts/queue.ts";
import { RELEASE, RELEASE_QUEUED } from "../../src/redis_node/scripts/release.ts";
import type { Script } from "../../src/redis_node/scripts/script.ts";
import { MemoryRedis, type MemorySession } from "../../src/testing/mod.ts";

/** The error of a command on a key of another type. */
export const WRONGTYPE = "WRONGTYPE Operation against a key holding the wrong kind of value";

/** The server's clock in the beginning. */
export const NOW_MS = 1_700_000_000_000;

/** A score of tickets, in microseconds: a little before the server's time. */
export const SCORE = 1_699_999_000_000_000;

const latin1 = new TextDecoder("latin1");

/** The reply of an acquisition: 1, 0 or an error; or a position in the queue. */
export type Position = readonly [pttl: number, ahead: number, length: number, score: number];

/** Sends one command on a session; returns the reply without its last line end. */
export function askOn(session: MemorySession, ...command: CommandArgument[]): string {
  return latin1.decode(session.push(commandBytes(commandArguments(command)))).trimEnd();
}

/** A server, and the messages that some clients of tickets receive. */
export class MemoryBench {
  nowMs = NOW_MS;
  readonly redis = new MemoryRedis({
    clock: { monotonicMs: () => this.nowMs, wallMs: () => this.nowMs } as Clock,
  });
  readonly session: MemorySession = this.redis.session();
  /** The messages, in order. */
  readonly messages: string[] = [];

  /** Subscribes the clients with these ids. */
  constructor(...ids: string[]) {
    for (const id of ids) {
      const onMessage = (bytes: Uint8Array) => {
        this.messages.push(new TextDecoder().decode(bytes).split("\r\n")[6]);
      };
      askOn(this.redis.session({ onMessage }), "SUBSCRIBE", `hasp:wake:${id}`);
    }
  }

  ask(...command: (string | number)[]): string {
    return askOn(this.session, ...command);
  }

  /** Runs a script on keys, separated by blanks. */
  call({ source }: Script, keys: string, ...args: (string | number)[]): string {
    const names = keys.split(" ").filter(Boolean);
    return this.ask("EVAL", source, names.length, ...names, ...args);
  }

  // Queues

  /** Asks for keys with a ticket. */
  join(keys: string, ticket: string, score = SCORE, stuck = "", agreed = ""): string | Position {
    const reply = this.call(ACQUIRE_OR_WAIT, keys, "v", 1_000, "", ticket, stuck, score, agreed);
    const numbers = [...reply.matchAll(/^:(-?\d+)/gmu)].map(([, number]) => Number(number));
    if (numbers.length < 6) return reply;
    if (numbers[4] !== this.nowMs * 1_000) throw new Error(`The node's time is ${numbers[4]}`);
    return numbers.slice(0, 4) as unknown as Position;
  }

  /** Releases keys; a ticket leaves, or goes back with its score. */
  release(keys: string, ticket?: string, score?: number): string {
    const args = [ticket, score].filter((arg) => arg !== undefined);
    return this.call(keys.includes(" ") || ticket ? RELEASE_QUEUED : RELEASE, keys, "v", ...args);
  }

  leave(keys: string, ticket: string): string {
    return this.call(RELEASE_QUEUED, keys, "", ticket);
  }

  /** Puts tickets into the queues for keys, a microsecond apart. */
  enqueue(keys: string, ...tickets: string[]): void {
    const pairs = tickets.flatMap((ticket, index) => [SCORE + index, ticket]);
    for (const key of keys.split(" ")) this.ask("ZADD", queueOf(key), ...pairs);
  }

  /** The tickets in the queue for a key. */
  queue(key: string): string[] {
    const words = this.ask("ZRANGE", queueOf(key), 0, -1).split("\r\n");
    return words.slice(1).filter((_, index) => index % 2 === 1);
  }

  /** Returns which of these keys exist. */
  existing(...keys: string[]): string[] {
    return keys.filter((key) => this.ask("EXISTS", key) === ":1");
  }

  // Fencing tokens

  /** Acquires keys and counts; `script` takes one key or several. */
  count(script: Script, keys: string, hint: number, ticket = ""): string {
    if (script === ACQUIRE_COUNTED) return this.call(script, keys, "v", 1_000, hint);
    const standing = ticket === "" ? [] : [ticket, "", 5, ""];
    return this.call(script, keys, "v", 1_000, hint, ...standing);
  }

  raise(keys: string, token: number): string {
    return this.call(RAISE, keys, "v", token);
  }

  /** The counter of a key, and its life. */
  counter(key: string): string[] {
    const [, text = "none"] = this.ask("GET", `hasp:fence:${key}`).split("\r\n");
    return [text, this.ask("PTTL", `hasp:fence:${key}`)];
  }
}
