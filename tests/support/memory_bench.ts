/** A server in memory on faked time. */
import type { Clock } from "../../src/time/clock.ts";
import { type CommandArgument, commandArguments } from "../../src/redis/command_arguments.ts";
import { commandBytes } from "./command_bytes.ts";
import { MemoryRedis, type MemorySession } from "../../src/testing/mod.ts";

/** The server's clock in the beginning. */
const NOW_MS = 1_700_000_000_000;

const latin1 = new TextDecoder("latin1");

/** Sends one command on a session; returns the reply without its last line end. */
export function askOn(session: MemorySession, ...command: CommandArgument[]): string {
  return latin1.decode(session.push(commandBytes(commandArguments(command)))).trimEnd();
}

/** A server, and a session on it. */
export class MemoryBench {
  nowMs = NOW_MS;
  readonly redis = new MemoryRedis({
    clock: { monotonicMs: () => this.nowMs, wallMs: () => this.nowMs } as Clock,
  });
  readonly session: MemorySession = this.redis.session();

  ask(...command: (string | number)[]): string {
    return askOn(this.session, ...command);
  }
}
