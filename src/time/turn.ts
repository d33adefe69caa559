/**
 * Turns of the event loop, for clocks that are faked.
 *
 * @module
 */

/** Calls a function in another turn. */
type Soon = (callback: () => void) => unknown;

/** The runtime's own functions: a test may fake them later. */
const { setImmediate, setTimeout } = globalThis as { setImmediate?: Soon; setTimeout: Soon };
const soon: Soon = setImmediate ?? setTimeout;

/** Resolves in the next turn of the event loop, after all promises that are settled now. */
export function turn(): Promise<void> {
  return new Promise((resolve) => soon(resolve));
}
