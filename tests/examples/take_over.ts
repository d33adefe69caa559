/**
 * How the consumer of a queue gets the lock of a message: what the examples of hand-over have in
 * common.
 *
 * @module
 */

import { type Lock, LockLostError, type Redlock } from "@hasp/redlock";

/** What is in a message; the token is a secret. */
export interface LockedJob {
  readonly resource: string;
  readonly token: string;
}

/** Adopts the lock of a message. If the message comes again, or too late, acquires another. */
export async function takeOver(redlock: Redlock, { resource, token }: LockedJob): Promise<Lock> {
  const options = { autoExtend: true };
  try {
    return await redlock.adopt(token, options);
  } catch (error) {
    if (!(error instanceof LockLostError)) throw error;
    return await redlock.acquire(resource, options);
  }
}
