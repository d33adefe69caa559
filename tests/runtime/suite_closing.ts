/**
 * `close()` from listeners, while other calls are decided by what came in the same read.
 *
 * @module
 */

import type { Lock, Redlock, RedlockEvent } from "../../mod.ts";
import type { Context, Library, Register } from "./context.ts";
import { expect, expectSame } from "./expect.ts";

/** How often a client is closed by each event. */
const RUNS = 5;
const TTL_MS = 60_000;

/** What makes the client emit an event, beside calls for locks of its own. */
type Cause = (redlock: Redlock, held: Lock) => Promise<unknown>;

/** Registers these cases. */
export function registerCloseAnywhere(
  test: Register,
  { main, redis }: Library,
  { urls }: Context,
  resource: (name: string) => string,
): void {
  const theirs = resource("theirs-anywhere");
  const causes: Record<string, Cause> = {
    "attempt": (redlock) => redlock.tryAcquire(theirs),
    "acquired": (redlock) => redlock.acquire(resource("one-more")),
    "denied": (redlock) => redlock.tryAcquire(theirs),
    "extended": (_, held) => held.extend(),
    "lost": async (_, held) => {
      await onAll("DEL", ...held.resources);
      await held.extend();
    },
    "released": (_, held) => held.release(),
    "node-connected": () => Promise.resolve(),
  };

  async function onAll(...command: string[]): Promise<unknown[]> {
    const clients = await Promise.all(urls.map((url) => redis.connect(url)));
    try {
      return await Promise.all(clients.map((client) => client.send(command)));
    } finally {
      await Promise.all(clients.map((client) => client.close()));
    }
  }

  for (const [type, cause] of Object.entries(causes)) {
    test(`close() by a listener of ${type} leaves no key`, async () => {
      await using other = main.createRedlock(urls);
      await using _theirs = await other.acquire(theirs, { ttlMs: TTL_MS, autoExtend: true });
      for (let run = 0; run < RUNS; run++) {
        const names = ["held", "one-more", "a", "b", "c", "d", "e", "f"].map(resource);
        let closing: Promise<void> | undefined;
        let armed = type === "node-connected";
        const onEvent = (event: RedlockEvent) => {
          if (armed && event.type === type) closing ??= redlock.close();
        };
        await using redlock: Redlock = main.createRedlock(urls, { ttlMs: TTL_MS, onEvent });
        const [held, , ...others] = names;
        const lock = await redlock.acquire(held!).catch(() => undefined); // closed already
        armed = true;
        const calls = [
          lock && cause(redlock, lock),
          ...others.slice(0, 2).map((name) => redlock.acquire(name)),
          ...others.slice(2, 4).map((name) => redlock.tryAcquire(name)),
          ...others.slice(4).map((name) =>
            redlock.using(name, ({ signal }) => {
              expectSame(signal.aborted, false, "a signal that has aborted before the routine ran");
              return new Promise<void>((resolve) =>
                signal.addEventListener("abort", () => resolve())
              );
            })
          ),
        ];
        const settled = Promise.allSettled(calls);
        while (!closing) await new Promise((resolve) => setTimeout(resolve, 1));
        await closing;
        for (const result of await settled) {
          const error = result.status === "rejected" ? result.reason : undefined;
          expect(!error || error instanceof main.RedlockError, `run ${run}: ${error}`);
        }
        const left = await onAll("EXISTS", ...names);
        expectSame(left.join(), "0,0,0,0,0", `keys that are left on each server in run ${run}`);
      }
    });
  }
}
