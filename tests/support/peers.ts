/** Other people's Redlock clients, the real npm packages, behind one small interface. */

import { deadline } from "@std/async/deadline";
import { Redis } from "ioredis";
import Redlock4 from "redlock4";
import Redlock5 from "redlock5";

const PACKAGES = { redlock4: Redlock4, redlock5: Redlock5 };

/** The packages, by the names of `deno.json`. */
export type PeerName = keyof typeof PACKAGES;

/** A lock that a peer holds. */
export interface PeerLock {
  release(): Promise<unknown>;
  /** Extends it, and returns the lock to use from then on. */
  extend(ttlMs: number): Promise<PeerLock>;
}

/** A lock client of a peer. Made by {@linkcode openPeer}. */
export interface Peer extends AsyncDisposable {
  /**
   * One attempt; `undefined` where it fails, for whatever reason.
   *
   * @throws {Error} If it does not settle in time, as peers may when a node hangs.
   */
  tryAcquire(resources: string[], ttlMs: number): Promise<PeerLock | undefined>;
}

/** What both packages are, by the calls that they have in common. */
interface Client<Lock> {
  acquire(resources: string[], ttlMs: number): Promise<Lock>;
  release(lock: Lock): Promise<unknown>;
  extend(lock: Lock, ttlMs: number): Promise<Lock>;
  on(event: "clientError" | "error", listener: () => void): void;
}

/** Makes a client whose locks are nobody else's business. */
type Constructor = new (clients: Redis[], options: object) => Client<object>;

/** Neither retries, because the tests look at single attempts. */
const OPTIONS = { retryCount: 0 };

/** How long an attempt of a peer may take, in milliseconds. */
const SETTLE_WITHIN_MS = 15_000;

/** Connects a peer to the servers. */
export async function openPeer(name: PeerName, urls: readonly string[]): Promise<Peer> {
  const clients = urls.map((url) => new Redis(url, { lazyConnect: true }));
  await Promise.all(clients.map((client) => client.connect()));
  const redlock = new (PACKAGES[name] as unknown as Constructor)(clients, OPTIONS);
  for (const event of ["clientError", "error"] as const) redlock.on(event, () => {});
  const wrap = (lock: object): PeerLock => ({
    release: () => redlock.release(lock),
    extend: async (ttlMs) => wrap(await redlock.extend(lock, ttlMs)),
  });
  return {
    tryAcquire: (resources, ttlMs) =>
      deadline(redlock.acquire(resources, ttlMs).then(wrap, () => undefined), SETTLE_WITHIN_MS),
    async [Symbol.asyncDispose]() {
      await Promise.all(clients.map((client) => {
        const ended = new Promise<void>((resolve) => client.once("end", () => resolve()));
        client.disconnect();
        return ended;
      }));
    },
  };
}
