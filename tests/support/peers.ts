/**
 * Other people's Redlock clients, the real npm packages, behind one small interface.
 *
 * @module
 */

import { deadline } from "@std/async/deadline";
import { Redis } from "ioredis";
import Redlock4 from "redlock4";
import Redlock5 from "redlock5";

/** The packages, by the names of `deno.json`. */
export type PeerName = "redlock4" | "redlock5";

/** A lock that a peer holds. */
export interface PeerLock {
  /** Releases it in whatever way the peer does. */
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

interface Client4 {
  lock(resources: string[], ttlMs: number): Promise<Lock4>;
  on(event: "clientError", listener: () => void): void;
}

interface Lock4 {
  unlock(): Promise<unknown>;
  extend(ttlMs: number): Promise<Lock4>;
}

interface Client5 {
  acquire(resources: string[], ttlMs: number): Promise<PeerLock>;
  on(event: "error", listener: () => void): void;
}

/** Neither retries, because the tests look at single attempts. */
const OPTIONS = { retryCount: 0 };

/** How long an attempt of a peer may take, in milliseconds. */
const SETTLE_WITHIN_MS = 15_000;

/** Connects a peer to the servers. */
export async function openPeer(name: PeerName, urls: readonly string[]): Promise<Peer> {
  const clients = urls.map((url) => new Redis(url, { lazyConnect: true }));
  await Promise.all(clients.map((client) => client.connect()));
  const attempt = name === "redlock4" ? attempt4(clients) : attempt5(clients);
  return {
    tryAcquire: (resources, ttlMs) =>
      deadline(attempt(resources, ttlMs).catch(() => undefined), SETTLE_WITHIN_MS),
    async [Symbol.asyncDispose]() {
      await Promise.all(clients.map((client) => {
        const ended = new Promise<void>((resolve) => client.once("end", () => resolve()));
        client.disconnect();
        return ended;
      }));
    },
  };
}

function attempt4(clients: Redis[]) {
  const Constructor = Redlock4 as unknown as new (clients: Redis[], options: object) => Client4;
  const redlock = new Constructor(clients, OPTIONS);
  redlock.on("clientError", () => {});
  const wrap = (lock: Lock4): PeerLock => ({
    release: async () => await lock.unlock(),
    extend: async (ttlMs) => wrap(await lock.extend(ttlMs)),
  });
  return async (resources: string[], ttlMs: number) => wrap(await redlock.lock(resources, ttlMs));
}

function attempt5(clients: Redis[]) {
  const Constructor = Redlock5 as unknown as new (clients: Redis[], options: object) => Client5;
  const redlock = new Constructor(clients, OPTIONS);
  redlock.on("error", () => {});
  return (resources: string[], ttlMs: number) => redlock.acquire(resources, ttlMs);
}
