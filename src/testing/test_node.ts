/**
 * What a test can do to a node.
 *
 * @module
 */
import type { MemoryRestartOptions } from "./server/memory_redis.ts";

/** One node of {@linkcode startNodes}, and the faults that a test can cause on it. */
export interface TestNode {
  /** The address of the node: `redis://127.0.0.1:port`, with the password if there is one. */
  readonly address: string;
  /** The port of the node on 127.0.0.1; it stays the same when the node restarts. */
  readonly port: number;

  /**
   * Crashes the node: resets its connections, refuses new ones, and drops commands that it has not
   * executed. Idempotent.
   *
   * @returns A promise that resolves when the node cannot be reached any more.
   */
  crash(): Promise<void>;

  /**
   * Restarts the node on the same port, after a crash if it is still running. Ends {@linkcode hang}
   * and {@linkcode partition}; the settings of {@linkcode slow}, {@linkcode skewClock} and
   * {@linkcode fill} stay.
   *
   * @param options Whether the node keeps its keys; by default it loses them, as a server without
   * persistence does.
   * @returns A promise that resolves when the node accepts connections.
   * @throws {Error} If another program has taken the port meanwhile, or the nodes were closed.
   */
  restart(options?: MemoryRestartOptions): Promise<void>;

  /**
   * Stops the node like a process that received SIGSTOP: it accepts connections and answers
   * nothing. After {@linkcode resume}, it executes the commands that it received meanwhile, in
   * their order, even those of clients that have disconnected. Idempotent.
   *
   * @throws {Error} If the node has crashed.
   */
  hang(): void;

  /**
   * Cuts the node off from every client: connections stay open, but no data passes in either
   * direction. After {@linkcode resume} the delayed data arrives, except on connections that the
   * client has closed. The operating system still accepts new connections, but no data passes on
   * them either. Idempotent.
   *
   * @throws {Error} If the node has crashed.
   */
  partition(): void;

  /**
   * Ends {@linkcode hang} and {@linkcode partition}. The node executes all delayed commands before
   * this returns, or after their delay if it is slow. Idempotent.
   *
   * @throws {Error} If the node has crashed.
   */
  resume(): void;

  /**
   * Delays every command, and so its reply. Commands that already wait keep their old delay.
   *
   * @param delayMs The delay in milliseconds, from 0 (no delay) to 2^31 − 1.
   * @throws {RangeError} If `delayMs` is out of range.
   */
  slow(delayMs: number): void;

  /**
   * Sets the node's wall clock ahead or behind. Keys expire by this clock, and `TIME` reports it.
   *
   * @param aheadMs The difference to the right time, in milliseconds; negative if the clock is
   * behind, 0 to correct it. Each call replaces the last one.
   * @throws {RangeError} If `aheadMs` is not a safe integer.
   */
  skewClock(aheadMs: number): void;

  /**
   * Fills the node's memory: the node then refuses what may need more, with an error that begins
   * with `OOM`, as a Redis does that has reached `maxmemory` with the policy `noeviction`. It still
   * answers reads, releases and extensions. Stays over a restart.
   *
   * @param isFull Whether the memory is full, by default; `false` makes room again.
   */
  fill(isFull?: boolean): void;

  /** Deletes all keys, as `FLUSHALL` does; connections stay open. */
  flush(): void;
}
