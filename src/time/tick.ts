/**
 * Ticks of the event loop, for clocks that are faked.
 *
 * @module
 */

/** Calls a function in a later tick, or after a delay in milliseconds. */
type Soon = (callback: () => void, delayMs?: number) => unknown;

/** The runtime's own functions: a test may fake them later. */
const { setImmediate, setTimeout } = globalThis as { setImmediate?: Soon; setTimeout: Soon };
const soon: Soon = setImmediate ?? setTimeout;

/** Resolves in the next tick of the event loop, after all promises that are settled now. */
export function nextTick(): Promise<void> {
  return new Promise((resolve) => soon(resolve));
}

/** Resolves after so many milliseconds of real time, at the earliest. */
export function realPause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
