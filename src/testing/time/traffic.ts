/**
 * What passes between clients and the servers of this process, so that a fake clock waits for it.
 *
 * @module
 */

/** Connections opened and closed and pieces of data, in either direction, since the process started. */
let passed = 0;

/** Called for everything that passes. */
export function countTraffic(): void {
  passed++;
}

/** Returns the count. */
export function trafficCount(): number {
  return passed;
}
