/**
 * What can be done to a node that was started.
 *
 * @module
 */
import type { MemoryRestartOptions } from "./server/memory_redis.ts";

/** One node of {@linkcode startNodes}, and what can be done to it. */
export interface TestNode {
  /** Its address: `redis://127.0.0.1:port`, with the password in it where one was given. */
  readonly address: string;
  /** Its port on 127.0.0.1; stays the same over restarts. */
  readonly port: number;

  /**
   * Stops it at once, as in a crash: every connection is reset, new ones are refused, and what it had not served
   * is lost. Idempotent.
   *
   * @returns Resolves once nobody can reach it.
   */
  crash(): Promise<void>;

  /**
   * Starts it again on the same port, after a crash if it has not crashed yet. It does not hang any more and is not
   * cut off; how slow it is and what its clock says stay as they were.
   *
   * @param options Whether its keys are still there; by default they are not, as on a server without persistence.
   * @returns Resolves once it can be reached.
   * @throws {Error} If another program has taken the port in the meantime.
   */
  restart(options?: MemoryRestartOptions): Promise<void>;

  /**
   * Has it hang, like a process that was stopped: its port is open and takes connections, and nothing is answered.
   * What comes in the meantime is served when it goes on, in the order in which it came, even where the client has
   * left. Idempotent.
   *
   * @throws {Error} If it has crashed.
   */
  hang(): void;

  /**
   * Cuts it off from every client: connections stay and nothing gets through either way. Afterwards what was sent in
   * the meantime arrives, late, except where the client has given up the connection. Connections can still be made,
   * as the system makes them, but over them too nothing gets through. Idempotent.
   *
   * @throws {Error} If it has crashed.
   */
  partition(): void;

  /**
   * Ends {@linkcode hang} and {@linkcode partition}: everything that waits is served before this returns, or in its
   * time where the node is slow. Idempotent.
   *
   * @throws {Error} If it has crashed.
   */
  resume(): void;

  /**
   * Has it take its time: whatever is sent to it is served, and so answered, only after a delay.
   *
   * @param delayMs The delay in milliseconds, from 0, which is none, to 2^31 − 1. What waits already has its share.
   * @throws {RangeError} If it is out of range.
   */
  slow(delayMs: number): void;

  /**
   * Sets its wall clock, by which keys expire and `TIME` answers, apart from the clock that it was given.
   *
   * @param aheadMs How far it is ahead, in milliseconds; below 0, behind; 0 sets it right. Each call counts from the
   *   right time, not from what was set before.
   * @throws {RangeError} If it is no integer.
   */
  skewClock(aheadMs: number): void;

  /** Has it forget its keys, as `FLUSHALL` does; connections notice nothing. */
  flush(): void;
}
