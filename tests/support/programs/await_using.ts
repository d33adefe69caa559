/**
 * The part of `main_flow.ts` that Node understands from version 24 on.
 *
 * @module
 */
import type { Redlock } from "../../../mod.ts";

/** Holds a lock for one block; returns whether it was held within. */
export async function holdInBlock(redlock: Redlock, resource: string): Promise<boolean> {
  await using lock = await redlock.acquire(resource);
  return lock.held;
}
