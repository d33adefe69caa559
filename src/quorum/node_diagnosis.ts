/**
 * What a node reports about itself, for `check()`.
 *
 * @module
 */

/** A command that a node was tried with. */
export type TriedCommand = "CONFIG" | "EVALSHA" | "INFO" | "PUBLISH" | "SUBSCRIBE" | "TIME";

/** What a node tells of itself, as plain data. Whatever is left out it does not tell, or was not let tell. */
export interface NodeDiagnosis {
  /** From the question to the answer, in milliseconds, without connecting. */
  readonly roundTripMs: number;
  /** By how much its wall clock is ahead of this process's, in milliseconds; right to half of `roundTripMs`. */
  readonly clockOffsetMs?: number;
  /** The version of its software. */
  readonly version?: string;
  /** Whether it decides by itself or follows another. */
  readonly role?: "master" | "replica";
  /** Tells this run of this server from every other: a restart changes it, another name does not. */
  readonly runId?: string;
  /** Since when it runs, in milliseconds, to a second. */
  readonly uptimeMs?: number;
  /** Whether it is one node of a cluster. */
  readonly clustered?: boolean;
  /** Whether it writes down what it does (`aof_enabled`). */
  readonly aofEnabled?: boolean;
  /** When that reaches the disk (`appendfsync`): `always`, `everysec` or `no`. */
  readonly appendfsync?: string;
  /** The most memory it takes for its keys (`maxmemory`), in bytes; 0 for any amount. */
  readonly maxmemoryBytes?: number;
  /** What it does when that is full (`maxmemory-policy`). */
  readonly maxmemoryPolicy?: string;
  /** The commands that it refused, each with the first word of its reply, such as `NOPERM`. */
  readonly refused?: Readonly<Partial<Record<TriedCommand, string>>>;
}
