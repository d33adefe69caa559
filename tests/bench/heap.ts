/** How much a worker keeps of its heap. */

import process from "node:process";

/** The bytes in use after a collection, where the runtime can be asked for one. */
export async function heapBytes(): Promise<number> {
  const { gc, Bun } = globalThis as {
    gc?: () => void;
    Bun?: { gc(sync: boolean): void };
  };
  // Collected twice, with a turn of the event loop between: what a finished turn still held is free
  // then.
  for (let i = 0; i < 2; i++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    if (Bun !== undefined) Bun.gc(true);
    else gc?.();
  }
  return process.memoryUsage().heapUsed;
}
