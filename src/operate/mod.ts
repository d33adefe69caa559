/**
 * What operators do with a client: check the nodes, list what is locked, and take a lock away from
 * its holder.
 *
 * @example Check the nodes
 * ```ts
 * import { assert } from "@std/assert";
 * import { createRedlock } from "@hasp/redlock";
 * import { check } from "@hasp/redlock/operate";
 * import { startNodes } from "@hasp/redlock/testing";
 *
 * await using nodes = await startNodes(3);
 * await using redlock = createRedlock(nodes.addresses);
 * assert((await check(redlock)).ok);
 * ```
 *
 * @module
 */
export {
  type Finding,
  type FindingCode,
  formatHealthReport,
  type HealthReport,
  type NodeHealth,
  type Severity,
} from "./report.ts";
export { check } from "./check.ts";
export { forceRelease, type ForceReleaseOptions } from "./force_release.ts";
export { list, type ListOptions } from "./list.ts";
export type { ListedLock } from "../lock/inspection.ts";
