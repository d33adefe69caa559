/**
 * What a node reports about itself, for `check()`.
 *
 * @module
 */

/**
 * What stands in place of the first word of a refusal, if the server accepts no further connection,
 * which a subscription needs.
 */
export const UNCONNECTED = "no further connection";
/** The same, if the server gives no reply to the command, although it answers others. */
export const SILENT = "no reply";

/**
 * What a node reports about itself, as plain data. A field is missing if the node did not report it
 * or refused the command.
 */
export interface NodeDiagnosis {
  /** Time from the question to the answer, in milliseconds, without connecting. */
  readonly roundTripMs: number;
  /**
   * How far the node's wall clock is ahead of this process's, in milliseconds, give or take half of
   * `roundTripMs`.
   */
  readonly clockOffsetMs?: number | undefined;
  /**
   * The name of the server software (`server_name`), such as `valkey`. Redis does not report one.
   */
  readonly serverName?: string | undefined;
  /** The version of the server software. */
  readonly version?: string | undefined;
  /**
   * `master`: it takes writes from clients alone. `replica`: it follows another server.
   * `active-replica`: it takes writes from clients and from another server, as KeyDB can.
   */
  readonly role?: "master" | "replica" | "active-replica" | undefined;
  /**
   * Identifies this run of this server: it changes with a restart, and is the same under every
   * address.
   */
  readonly runId?: string | undefined;
  /**
   * The run ids that further connections to the same address reported, without `runId`. Missing if
   * all reported `runId`. Else the address leads to several servers, for example through a load
   * balancer.
   */
  readonly otherRunIds?: readonly string[] | undefined;
  /** How long the server has been running, in milliseconds, rounded down to whole seconds. */
  readonly uptimeMs?: number | undefined;
  /**
   * The age of the creation marker that `restartGuardMs` goes by, in milliseconds; 0 if the node
   * has none: then the first lock with the guard sets it.
   */
  readonly markerAgeMs?: number | undefined;
  /** Whether the server runs in cluster mode (`cluster_enabled`). */
  readonly clustered?: boolean | undefined;
  /** Whether the server logs its writes to an append-only file (`aof_enabled`). */
  readonly aofEnabled?: boolean | undefined;
  /** When that file is flushed to disk (`appendfsync`): `always`, `everysec` or `no`. */
  readonly appendfsync?: string | undefined;
  /** Memory limit for data (`maxmemory`), in bytes; 0 means no limit. */
  readonly maxmemoryBytes?: number | undefined;
  /** What the server does at that limit (`maxmemory-policy`). */
  readonly maxmemoryPolicy?: string | undefined;
  /**
   * The commands that the node refused, each with the first word of its reply, as `{ SET: "OOM" }`,
   * or `in scripts`.
   */
  readonly refused?: Readonly<Record<string, string>> | undefined;
}
