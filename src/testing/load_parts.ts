/**
 * Loads what the library loads on demand, because time that a test moves does not wait for modules.
 *
 * @module
 */
import { LOCK_PARTS } from "../lock/parts.ts";
import { NODE_PARTS } from "../redis_node/parts.ts";
import { connect } from "../transport/default.ts";
import { warning } from "../warnings.ts";

/** Loads the transport of the runtime, and every part of a lock client that has to do with time. */
export async function loadParts(): Promise<void> {
  const parts = [...LOCK_PARTS, ...NODE_PARTS, warning];
  // Nothing is opened, because the signal has aborted. The call that needs a part reports if it cannot be loaded.
  const target = { kind: "tcp", hostname: "127.0.0.1", port: 1 } as const;
  const opening = connect(target, { signal: AbortSignal.abort() });
  await Promise.allSettled([opening, ...parts.map((part) => part.load())]);
}
