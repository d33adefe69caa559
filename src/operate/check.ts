/**
 * Checking how the nodes of a client are set up.
 *
 * @module
 */
import { check as checkNodes } from "../health/check.ts";
import type { HealthReport } from "../health/report.ts";
import type { RedlockOptions } from "../options.ts";
import { operated } from "../redis_node/operated_node.ts";
import { insideOf, type Redlock } from "../redlock.ts";

/**
 * Checks how every node is configured and whether locks work there, and reports problems: a server
 * that is listed twice, a replica, a full memory, a missing right, an eviction policy that may
 * delete locks, clocks that differ, and more. Changes nothing: the commands that it tries are about
 * keys that are missing. A node that does not answer is a finding, not an error; each node has
 * `nodeTimeoutMs` to answer, counted from when its first connection is ready.
 *
 * A report without findings is no proof: for example, two servers on one disk look independent.
 *
 * @param redlock The client whose nodes are checked.
 * @param options Options that replace the client's own for this call; only `ttlMs`, `driftFactor`,
 * `nodeTimeoutMs`, `keyPrefix`, `fencing` and `restartGuardMs` have an effect.
 * @returns What each node reports about itself, and the findings, each with advice.
 * @throws {RedlockError} If the client is closed (`CLOSED`).
 * @throws {TypeError} If `redlock` is no client, or an option is unknown or of the wrong type.
 * @throws {RangeError} If an option is out of range.
 */
export async function check(redlock: Redlock, options?: RedlockOptions): Promise<HealthReport> {
  const { client, options: defaults } = insideOf(redlock, "check nodes");
  const settings = defaults.resolve("check nodes", options);
  return await checkNodes(client, client.nodes.map(operated), settings);
}
