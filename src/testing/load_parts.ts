/**
 * Loads what the library loads on demand, because time that a test moves does not wait for modules.
 *
 * @module
 */
import * as lockParts from "../lock/parts.ts";
import * as nodeParts from "../redis_node/parts.ts";

/** Loads every part of a lock client that has to do with time. */
export async function loadParts(): Promise<void> {
  const parts = [...Object.values(lockParts), ...Object.values(nodeParts)];
  await Promise.allSettled(parts.map((part) => part.load())); // the call that needs a part reports its failure
}
