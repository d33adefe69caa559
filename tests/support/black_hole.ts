/**
 * A port that takes no connection and refuses none: the listener's queue is full, so the system drops what comes.
 *
 * @module
 */

/** How long a connection may take that finds room in the queue, in milliseconds. */
const ROOM_MS = 300;
/** More connections than any system queues up. */
const QUEUE_LENGTH_MAX = 10_000;

/** A running one. Made by {@linkcode startBlackHole}. */
export interface BlackHole extends Disposable {
  /** The port on 127.0.0.1. */
  readonly port: number;
}

/** Fills up a listener's queue, and accepts nobody. */
export async function startBlackHole(): Promise<BlackHole> {
  using stack = new DisposableStack();
  const listener = stack.use(Deno.listen({ hostname: "127.0.0.1", port: 0 }));
  const { port } = listener.addr as Deno.NetAddr;
  for (let length = 0; length < QUEUE_LENGTH_MAX; length++) {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), ROOM_MS);
    try {
      const { signal } = controller;
      stack.use(await Deno.connect({ hostname: "127.0.0.1", port, signal }));
    } catch {
      const filled = stack.move();
      return { port, [Symbol.dispose]: () => filled.dispose() };
    } finally {
      clearTimeout(timer);
    }
  }
  throw new Error("Cannot fill up the queue of a listener");
}
